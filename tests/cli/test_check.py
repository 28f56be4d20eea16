"""`revarb check`."""

import matplotlib.image

import revarb
from support import small
from support.command_line import run, succeed, with_cells


def test_it_says_what_is_left_and_draws_it(capsys, folder, arx):
    out = succeed(capsys, "check", "arx.rgp", "train.csv", "-o", "picture.png", "--max-lag", "8")
    record = small.record(0)
    expected = arx.residuals(revarb.Series(record.u, record.y, 1.0, ["valve"], ["pressure"]), 8)
    (row,) = expected.summary().tables[0].rows
    assert out.splitlines()[0] == expected.sentence
    assert "train.csv\nresiduals one step ahead" in out and "wrote picture.png" in out
    assert all(text in " ".join(out.split()) for text in row)
    assert matplotlib.image.imread("picture.png").shape[1] > 800


def test_gaps_are_left_out_and_the_picture_has_a_default_name(capsys, folder, arx):
    with_cells(folder, "gaps.csv", "NaN", range(20, 30))
    out = run(capsys, "check", "arx.rgp", "gaps.csv")[1]
    used = 60 - arx.skip - 10 - 1  # without the first rows, the gap, and the value after it
    assert f"pressure {used}" in " ".join(out.split()) and (folder / "check.png").exists()
