"""Runs over a test part that start from its first measured samples, and their scores."""

import time
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np

import revarb
from studies.records import describe_failure

MEASURED, COLD = "measured", "cold"  # starts
FIRST = 50  # scored samples by which starts are compared


def run_part(
    model: Any, test: revarb.Series, window: int, start: str
) -> tuple[dict[str, Any], revarb.Trajectory | None]:
    """The columns of a run over a test part, and the run; None where it failed. The window is not scored."""
    try:
        begin = time.perf_counter()
        path, skip = simulate(model, test, window, start)
        seconds = time.perf_counter() - begin
        return {**score_run(path, test.y[-len(path) :], skip), "skip": window, "simulate_seconds": seconds}, path
    except Exception as error:
        return {"skip": window, **describe_failure(error)}, None


def list_starts(model: Any) -> tuple[str, ...]:
    """The starts that a model has."""
    return (MEASURED, COLD) if _takes_start(model) or hasattr(model, "predict") else (COLD,)


def _takes_start(model: Any) -> bool:
    return "start" in signature(model.simulate).parameters


def simulate(model: Any, test: revarb.Series, window: int, start: str) -> tuple[revarb.Trajectory, int]:
    """A run over a test part, or over what is after its window; and how many of its rows are not scored.

    A model without `simulate(start=…)` predicts the record, whose outputs are missing after the window.
    """
    if start == COLD:
        return model.simulate(test.u), window
    if _takes_start(model):
        first = test[:window]
        known = revarb.Window(first.u, first.y, first.dt, first.input_names, first.output_names)
        return model.simulate(test.u[window:], start=known), 0
    hidden = np.arange(len(test))[:, None] >= window
    return model.predict(replace(test, y=np.where(hidden, np.nan, test.y))), window


def score_run(path: revarb.Trajectory, y: np.ndarray, skip: int) -> dict[str, Any]:
    """Scores after the first rows: also of the first ones that are scored, and the share of rows that extrapolate."""
    found, errors = revarb.scores(path, y, skip).to_row(), (path.mean - y)[skip:]
    if not np.isfinite(found["rmse"]):
        raise ArithmeticError(f"its error is {found['rmse']}: the run diverged")
    marks = path.extrapolates
    return {
        **found,
        "mae": float(np.abs(errors).mean()),
        "rmse_first50": float(np.sqrt(np.mean(errors[:FIRST] ** 2))),
        "extrapolates": None if marks is None else float(marks[skip:].mean()),
    }
