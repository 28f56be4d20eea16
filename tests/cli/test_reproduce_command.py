"""`revarb reproduce`: the runner of all experiments, with quick models."""

import json

import pytest

from revarb.cli.reproduce.field import reproduce_field
from revarb.cli.reproduce.runner import Targets, run_experiment
from revarb.errors import InputError
from support.experiments import quick_table2


@pytest.mark.slow
def test_it_writes_rows_strips_and_a_page(recorded_data, tmp_path, capsys):
    run_experiment(quick_table2(), 2, 1, Targets(tmp_path / "t.json", tmp_path / "t.html", tmp_path / "p"))
    content = json.loads((tmp_path / "t.json").read_text())
    assert len(content["rows"]) == 1 + 2 * 2 + 2 and content["meta"]["table"] == "table2"
    page = (tmp_path / "t.html").read_text()
    assert "35_05 walk" in page and "35_24 run" in page and "53 channels" in page and "http" not in page
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [
        "motion_35_05_walk.png", "motion_35_21_run.png",
    ]  # fmt: skip
    out = capsys.readouterr().out
    assert "57 channels" in out and "Too long: 2 of 2 seed(s) failed" in out


def test_targets_are_checked_before_the_work_begins(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot create the folder"):
        Targets(tmp_path / "file" / "t.json").check()
    with pytest.raises(InputError, match="--json and --page both name"):
        Targets(tmp_path / "one", tmp_path / "one").check()


def test_an_unknown_record_of_the_field_is_one_line():
    with pytest.raises(InputError, match="no record 'drives' in this table; there are drive,"):
        reproduce_field(only=["drives"])
