"""The skeleton that all studies share: tasks, rows that are kept, checks, files, and the command."""

import ast
import json
import os
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import revarb
from revarb import datasets
from studies.__main__ import STUDIES, main, make_parser
from studies.records import Benchmark, run_model, score_record, z_score_outputs
from studies.study import Fit, Result, RowsFile, Study, check_rows, run_fits
from studies.tables import Grid, Target, default_lines, mean_only_lines, over_seeds, summarise
from support import small
from support.small_rivals import Broken, Runaway
from support.study_rows import score_row

ROOT = Path(__file__).parents[2] / "studies"
INTERNAL = {"draw_reliability", "advance_mean", "draw_artificial"}  # names that are imported, but not public


class Quick(Study):
    """Two records and two models; the error is the seed."""

    name, title, columns, default_seeds = "quick", "A quick <study>", ("dataset", "model", "seed", "rmse"), 2

    def list_fits(self):
        return [Fit(name, model, seed) for name in "ab" for model in ("one", "two") for seed in range(self.seeds)]

    def run_fit(self, fit):
        if fit.seed == 9:
            os._exit(1)
        row = {"dataset": fit.dataset, "model": fit.model, "seed": fit.seed, "reason": None}
        return Result([{**row, "rmse": float(fit.seed)}], f"drawn {fit.seed}")

    def tables(self, rows):
        return [Grid("All <rows>", ("model", "RMSE"), [[row["model"], f"{row['rmse']:.1f}"] for row in rows])]

    def targets(self, rows):
        return [Target("errors are small", max(row["rmse"] for row in rows) < 1.0, "too large")]


def run(study, *options):
    study.run(make_parser(type(study)).parse_args(list(map(str, options))), "python -m studies quick")


def test_a_study_prints_and_writes_what_it_found(tmp_path, capsys):
    files = tmp_path / "new" / "q.json", tmp_path / "q.html"
    run(Quick(), "--json", files[0], "--page", files[1], "--pictures", tmp_path / "p", "--only", "b")
    content = json.loads(files[0].read_text())
    assert [(row["dataset"], row["model"], row["seed"]) for row in content["rows"]] == [
        ("b", model, seed) for model in ("one", "two") for seed in (0, 1)
    ]
    meta = content["meta"]
    assert set(meta) >= {"table", "protocol", "seeds", "command", "made", "python", "versions", "processor", "cores"}
    assert meta["missed"] == ["errors are small; found too large"]
    out = capsys.readouterr()
    assert "Missed: errors are small" in out.out and "0 of 1 targets are met." in out.out and "4/4" in out.err
    page = files[1].read_text()
    assert "A quick &lt;study&gt;" in page and "All &lt;rows&gt;" in page and "http" not in page


def test_finished_tasks_are_kept(tmp_path, monkeypatch):
    file, study = RowsFile(tmp_path / "rows.jsonl"), Quick()
    rows, drawn = run_fits(study, study.list_fits(), file)
    assert len(rows) == 8 and set(drawn.values()) == {"drawn 0", "drawn 1"}
    lines = file.path.read_text().splitlines()
    assert [json.loads(line)["fit"][2] for line in lines] == [0] * 4 + [1] * 4  # the first seed first
    file.path.write_text("\n".join([*lines[:3], lines[3][:20]]))
    again, drawn = run_fits(study, study.list_fits(), file)
    assert again == rows and len(drawn) == 5
    monkeypatch.setattr(revarb, "__version__", "9")
    assert file.read() == {}


@pytest.mark.slow
def test_tasks_run_in_processes_and_a_lost_one_is_an_error():
    study = Quick(jobs=2)
    assert run_fits(study)[0] == run_fits(Quick())[0]
    with pytest.raises(revarb.ComputationError, match=r"a worker process died .* use fewer jobs"):
        run_fits(study, [Fit("a", "one", 9)])


def test_refusals(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for options, message in (
        (("--only", "drives"), "no record 'drives' in this table; there are a, b"),
        (("--json", tmp_path / "one", "--page", tmp_path / "one"), "--json and --page both name"),
        (("--json", tmp_path / "file" / "q.json"), "cannot create the folder"),
    ):
        with pytest.raises(revarb.InputError, match=message):
            run(Quick(), *options)
    for arguments in (["table9"], ["table1", "--seeds", "0"], ["export", "--colour"]):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
    assert main(["export", "--only", "drives"]) == 2
    assert "error: no record 'drives' in this table; there are drive, actuator, cstr" in capsys.readouterr().err


def test_rows_must_be_flat_and_complete():
    good = {"dataset": "a", "model": "one", "seed": 0, "rmse": 1.0}
    failed = {"dataset": "a", "model": "one", "seed": 0, "reason": "diverged"}
    assert check_rows(Quick(), [good, failed]) == [good, {**failed, "rmse": None}]
    for wrong in ({**good, "outputs": {"y": 1.0}}, {"dataset": "a"}):
        with pytest.raises(revarb.ComputationError, match="rows of quick lack"):
            check_rows(Quick(), [wrong])


def test_the_command_lists_all_studies(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(f"python -m studies {name} " in out for name in STUDIES) and len(out.splitlines()) == len(STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_committed_results_are_those_of_the_study(name):
    """Their rows are complete and from every model; tables, targets and page follow from them."""
    file = ROOT.parent / "results" / f"{name}.json"
    if not file.is_file():
        pytest.skip(f"{file.name} has not been made yet")
    content = json.loads(file.read_text())
    study = import_module(STUDIES[name][0]).STUDY(seeds=content["meta"].get("seeds"))
    rows = check_rows(study, content["rows"])
    missed = [f"{each.what}; found {each.found}" for each in study.targets(rows) if not each.met]
    assert content["meta"].get("missed", missed) == missed and all(grid.rows for grid in study.tables(rows))
    if {"dataset", "model"} <= set(study.columns):
        assert {(fit.dataset, fit.model) for fit in study.list_fits()} <= {
            (row["dataset"], row["model"]) for row in rows
        }
    assert "<table" in (study.page(rows, {}, {}) or "<table")  # Table 2 has none without its motions


def test_studies_use_public_names():
    """Of `revarb`, `revarb.datasets` and `revarb.baselines`, with the exceptions above."""
    public, found = ("revarb", "revarb.datasets", "revarb.baselines"), set()
    for node in (node for file in ROOT.rglob("*.py") for node in ast.walk(ast.parse(file.read_text()))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("revarb") and node.module not in public:
            found |= {each.name for each in node.names}
        assert not isinstance(node, ast.Import) or all(not each.name.startswith("revarb.") for each in node.names)
    assert found == INTERNAL


def run_quick(spec, starts=("cold",)):
    train, test = small.record(0), small.record(1)
    score = score_record(test, {"cold": 10, "continue": 0})
    return run_model("m", spec, 0, [train], [test], score, starts)


def test_a_model_is_scored_from_every_start():
    found = run_quick(revarb.ARX(2, 2), ("cold", "continue"))
    runs = [(row["start"], row["method"], row["skip"]) for row in found.rows]
    assert runs == [("cold", "residuals", 10), ("continue", "residuals", 0)]
    expected = revarb.scores(found.model.simulate(small.record(1).u), small.record(1).y, skip=10)
    assert found.rows[0]["rmse"] == expected.rmse and found.rows[0]["status"] == "converged"
    assert set(found.paths) == {("cold", "residuals"), ("continue", "residuals")}


def test_a_model_that_fails_is_a_row_with_its_reason():
    broken, diverged = run_quick(Broken()), run_quick(Runaway())
    assert broken.rows == [{"model": "m", "seed": 0, "reason": "no luck today", "start": "cold", "method": "",
                            "status": "failed"}]  # fmt: skip
    assert "diverged" in diverged.rows[0]["reason"] and diverged.paths == {} and broken.model is None


def test_z_scored_outputs_pool_outputs_of_different_units(rng):
    y = rng.standard_normal((60, 2)) * [1.0, 100.0] + [5.0, -400.0]
    records = [revarb.Series(rng.standard_normal(60), values, 0.5, ["v"], ["a", "b"]) for values in (y, 2.0 * y)]
    split = z_score_outputs(datasets.Split("two", *records, lags=2))
    np.testing.assert_allclose(split.train.y.std(0), 1.0)
    np.testing.assert_allclose(split.test.y, (2.0 * y - y.mean(0)) / y.std(0))
    assert (split.test.dt, split.test.input_names, split.test.output_names) == (0.5, ("v",), ("a", "b"))
    drawn = Benchmark("drawn", "artificial", drawn=True)
    assert (drawn.load(1).train.y != drawn.load(0).train.y).any() and drawn.source["record"] == "artificial"


row = partial(score_row, "one")


def test_lines_are_over_all_seeds():
    """A linear choice has one run, which counts under both methods of the others; a failed seed is not in a range."""
    rows = [row("A", 1.0, "residuals", 0), row("A", 2.0, "mean", 1), row("A", 3.0, "moments", 1),
            row("A", None, "", 2, "diverged"), row("B", 5.0)]  # fmt: skip
    lines = [(line.model, line.method, line.worked, line.seeds) for line in summarise(rows)]
    assert lines == [("A", "mean", 2, 3), ("A", "moments", 2, 3), ("B", "mean", 1, 1)]
    assert mean_only_lines(rows)["A"].range("rmse") == (1.0, 1.5, 2.0)
    assert default_lines(rows)["A"].range("rmse") == (1.0, 2.0, 3.0)
    assert np.isnan(over_seeds(rows, "rmse", model="A").median) and over_seeds(rows, "rmse", model="B").median == 5.0
