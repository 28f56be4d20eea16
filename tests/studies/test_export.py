"""The study of exports: settings, a quick run of all formats, and targets from made-up rows."""

import numpy as np
import pytest

import revarb
from studies.export import Export
from studies.study import run_fits
from studies.timed_exports import C_DOUBLE, C_FLOAT, EXPORTED, JAX, JAX_FIXED, LIVE, run_program
from support import small


class QuickExport(Export):
    """A drawn record, a quick model, few passes."""

    records, passes = {"drawn": {}}, 2

    def load(self, name):
        split = revarb.datasets.load("artificial")
        return split.train, split.test, small.spec(lags=split.lags, input_lags=split.lags, hidden=1, inducing=10)


def test_every_format_has_the_outputs_of_simulate():
    study = QuickExport()
    rows, _ = run_fits(study)
    assert [row["format"] for row in rows] == [*EXPORTED, JAX, JAX_FIXED, LIVE]
    for row in rows:
        assert row["difference"] <= (1e-3 if row["format"] == C_FLOAT else 1e-9), row["format"]
        assert row["microseconds"] > 0.0 and (row["kilobytes"] is None) == (row["format"] in (LIVE, JAX_FIXED))
    by_format = {row["format"]: row for row in rows}
    assert by_format[JAX]["speedup"] == 1.0 and by_format[C_DOUBLE]["speedup"] > 1.0
    assert 0.0 < by_format[C_FLOAT]["difference"] > by_format[C_DOUBLE]["difference"]  # it is single precision
    [grid] = study.tables(rows)
    assert grid.title.startswith("drawn: 1 input(s), 1 output(s), ") and len(study.targets(rows)) == 6


def row(kind, difference, microseconds, dataset="one"):
    return {"dataset": dataset, "format": kind, "difference": difference, "speedup": 60.0 / microseconds}


def test_targets_are_computed_from_the_rows():
    rows = [row(C_DOUBLE, 1e-12, 2.0), row(C_FLOAT, 2e-3, 1.0), row("ONNX", float("nan"), 9.0), row(JAX, 0.0, 60.0),
            row(C_DOUBLE, 1e-12, 4.0, "two"), row(JAX, 0.0, 60.0, "two")]  # fmt: skip
    assert [(each.what, each.met, each.found) for each in Export().targets(rows)] == [
        ("one, C, double: difference at most 1e-09", True, "1.0e-12"),
        ("one, C, float: difference at most 0.001", False, "2.0e-03"),
        ("one, ONNX: difference at most 1e-09", False, "nan"),
        ("one: C at least 20 × faster than a JAX step", True, "30.0 ×"),
        ("two, C, double: difference at most 1e-09", True, "1.0e-12"),
        ("two: C at least 20 × faster than a JAX step", False, "15.0 ×"),
    ]


def test_a_source_that_does_not_compile_is_an_error_with_the_compilers_words(tmp_path, monkeypatch):
    (tmp_path / "wrong.h").write_text("this is no C\n")
    (tmp_path / "wrong.c").write_text("")
    with pytest.raises(revarb.ComputationError, match=r"cc failed with status 1: .*wrong"):
        run_program(tmp_path / "wrong.c", np.zeros((3, 1)), 3, 1)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(revarb.InputError, match="needs a C compiler named cc, and there is none"):
        run_program(tmp_path / "wrong.c", np.zeros((3, 1)), 3, 1)
