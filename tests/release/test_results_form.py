"""The form of results/*.json: where a file was made, flat rows, the required columns, and seeds that are complete."""

import math
from datetime import datetime

import pytest

from support.results import FILES, read_results, rows_of

WRITTEN = {path.stem for path in FILES}

MADE = {"command", "made", "python", "versions", "processor", "cores"}
ACCURACY = {"dataset", "model", "method", "start", "skip", "seed", "rmse", "nrmse", "nlpd", "coverage95", "status"}
MOTION = {"dataset", "model", "method", "start", "skip", "seed", "coverage95", "status", "fit_seconds"} | {
    f"{score}_{channels}" for score in ("motions", "pooled", "channels", "walks", "runs") for channels in (53, 57)
}
CLOSED_LOOP = {"plant", "controller", "seed", "model", "fit_seconds", "tracking_rmse", "violations"} | {
    "largest_violation", "samples", "not_solved", "solve_ms", "solve_ms_95", "observer_ms",
}  # fmt: skip
COLUMNS = {
    "table1": ACCURACY | {"fit_seconds", "simulate_seconds"},
    "table2": MOTION | {"simulate_seconds"},
    "recognition": ACCURACY,
    "calibration": ACCURACY,
    "field": ACCURACY | {"fit_seconds", "simulate_seconds"},
    "outliers": ACCURACY | {"kind", "share", "coverage50", "coverage90", "fit_seconds", "simulate_seconds", "reason"},
    "export": {"dataset", "format", "rows", "seed", "difference", "kilobytes", "microseconds", "speedup", "status"},
    "mpc": CLOSED_LOOP,
    "family": {"part", "dataset", "model", "seed", "reason"},
    "demo": {"model", "rmse", "nrmse", "nlpd", "coverage95", "skip"},
    "avatar": {"signal", "seconds", "range_excess", "jump_ratio", "phases"},
    "bench": {"part", "name", "n", "threads", "seconds"},
    "bench_h200": {"name", "n", "seconds"},
    "bench_loop": {"part", "name", "n", "threads", "seconds"},
}
LONG = {"field", "outliers", "bench_loop", "family"}
"""Files that take long to make and may be absent; test_field_results.py and test_outlier_results.py have more."""

NAMES = [name for name in COLUMNS if name not in LONG or name in WRITTEN]
"""The files to check."""

LISTS = {"calibration": {"edges", "factors"}, "avatar": {"phases"}}
"""Cells that may be a list: of numbers, or of one flat row per phase."""


def is_scalar(value):
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def test_every_file_has_its_columns_here():
    assert set(NAMES) == WRITTEN


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_meta_and_rows(name):
    content = read_results(name)
    assert set(content) == {"meta", "rows"} and content["rows"]
    assert set(content["meta"]) >= MADE
    datetime.fromisoformat(content["meta"]["made"])
    assert set(content["meta"]["versions"]) >= {"revarb", "jax", "numpy"}
    assert content["meta"]["command"].startswith(("revarb ", "python -m bench"))


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_flat_and_have_the_columns(name):
    for row in rows_of(name):
        assert set(row) >= COLUMNS[name], row
        for column, value in row.items():
            if column in LISTS.get(name, ()):
                inside = [
                    cell for item in value or () for cell in (item.values() if isinstance(item, dict) else [item])
                ]
                assert all(is_scalar(cell) for cell in inside), (column, value)
            else:
                assert is_scalar(value), (column, value)


@pytest.mark.parametrize("name", ["table1", "table2", "recognition"])
def test_every_model_has_every_seed_once(name):
    """In Table 2 a model without random numbers ran once."""
    rows, seeds = rows_of(name), read_results(name)["meta"]["seeds"]
    found = {}
    for row in rows:
        if row["seed"] is not None:  # a mixture is of all seeds
            found.setdefault((row["dataset"], row["model"], row["method"], row["start"]), []).append(row["seed"])
    for model, own in found.items():
        assert sorted(own) == list(range(seeds)) or (name == "table2" and own == [0]), model


@pytest.mark.parametrize("name", ["table1", "table2", "recognition", "calibration"])
def test_nothing_failed(name):
    assert [row["reason"] for row in rows_of(name) if row["reason"] is not None] == []
