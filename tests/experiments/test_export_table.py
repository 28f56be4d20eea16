"""The table of exports: settings, a quick run of all formats, and targets from made-up rows."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.config.rgp import RGP
from revarb.errors import ComputationError, InputError
from revarb.experiments.benchmarks import Benchmark
from revarb.experiments.export import ExportRecord, ExportTable, load_export
from revarb.experiments.export_runs import C_DOUBLE, C_FLOAT, EXPORTED, JAX, JAX_FIXED, LIVE
from revarb.experiments.export_targets import ExportLimits, list_export_targets
from revarb.experiments.timed_program import run_program

LIMITS = ExportLimits(1e-9, 1e-3, 20.0)
QUICK = {"hidden": 1, "inducing": 10, "calibrate": False, "recipe": {"stages": [{"free": ["mu"], "iterations": 2}]}}
COLUMNS = {"dataset", "inputs", "outputs", "lags", "states", "rows", "seed", "status", "fit_seconds", "format",
           "difference", "kilobytes", "microseconds", "run_microseconds", "speedup"}  # fmt: skip


def test_the_shipped_table():
    table = load_export()
    assert [record.name for record in table.records] == ["drive", "actuator", "cstr", "winding"]
    assert table.limits == LIMITS
    assert table.spec(table.records[0], 10) == RGP(10, 10, hidden=2, inducing=100, calibrate=False)
    assert table.spec(table.records[2], 10).latent_dims == (2, 2)
    assert table.count_steps(1) == 4
    assert [record.name for record in table.only(["cstr"]).records] == ["cstr"]
    with pytest.raises(InputError, match="no record 'drives' in this table; there are drive, actuator,"):
        table.only(["drives"])


@pytest.fixture(scope="module")
def parts():
    records = (ExportRecord(Benchmark("drawn", "artificial"), {}),)
    table, heard = ExportTable("quick", 2, 50, QUICK, LIMITS, records), []
    found = list(table.run(1, report=heard.append))
    assert heard == ["drawn"]
    return found


def test_every_format_has_the_outputs_of_simulate(parts):
    rows = parts[0].rows
    assert [row["format"] for row in rows] == [*EXPORTED, JAX, JAX_FIXED, LIVE]
    assert all(set(row) == COLUMNS for row in rows)
    for row in rows:
        assert row["difference"] <= (1e-3 if row["format"] == C_FLOAT else 1e-9)
        assert row["microseconds"] > 0.0 and (row["kilobytes"] is None) == (row["format"] in (LIVE, JAX_FIXED))
    by_format = {row["format"]: row for row in rows}
    assert by_format[JAX]["speedup"] == 1.0 and by_format[C_DOUBLE]["speedup"] > 1.0
    assert 0.0 < by_format[C_FLOAT]["difference"] > by_format[C_DOUBLE]["difference"]  # it is single precision


def test_what_is_printed(parts):
    part, summary = parts
    [grid] = part.grids()
    assert grid.title.startswith("drawn: 1 input(s), 1 output(s), ") and len(grid.rows) == 8
    assert summary.rows == [] and summary.grids() == []
    assert "of 6 targets are met" in summary.sentences()[0]


def row(kind, difference, microseconds, dataset="one"):
    return {"dataset": dataset, "format": kind, "difference": difference, "speedup": 60.0 / microseconds}


def test_targets_are_computed_from_the_rows():
    rows = [row(C_DOUBLE, 1e-12, 2.0), row(C_FLOAT, 2e-3, 1.0), row("ONNX", float("nan"), 9.0), row(JAX, 0.0, 60.0),
            row(C_DOUBLE, 1e-12, 4.0, "two"), row(JAX, 0.0, 60.0, "two")]  # fmt: skip
    assert [(each.what, each.met, each.found) for each in list_export_targets(rows, LIMITS)] == [
        ("one, C, double: difference at most 1e-09", True, "1.0e-12"),
        ("one, C, float: difference at most 0.001", False, "2.0e-03"),
        ("one, ONNX: difference at most 1e-09", False, "nan"),
        ("one: C at least 20 × faster than a JAX step", True, "30.0 ×"),
        ("two, C, double: difference at most 1e-09", True, "1.0e-12"),
        ("two: C at least 20 × faster than a JAX step", False, "15.0 ×"),
    ]
    assert len(list_export_targets(rows, replace(LIMITS, faster=10.0))) == 6


def test_a_source_that_does_not_compile_is_an_error_with_the_compilers_words(tmp_path, monkeypatch):
    (tmp_path / "wrong.h").write_text("this is no C\n")
    (tmp_path / "wrong.c").write_text("")
    with pytest.raises(ComputationError, match=r"cc failed with status 1: .*wrong"):
        run_program(tmp_path / "wrong.c", "wrong", np.zeros((3, 1)), 3, 1)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="needs a C compiler named cc, and there is none"):
        run_program(tmp_path / "wrong.c", "wrong", np.zeros((3, 1)), 3, 1)
