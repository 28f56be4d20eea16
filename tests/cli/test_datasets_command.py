"""`revarb datasets`."""

from support.command_line import run


def test_datasets_are_fetched(capsys, recorded_data):
    code, out, _ = run(capsys, "datasets", "fetch", "drive")
    assert code == 0 and out.startswith("drive: ") and "drive.mat" in out
