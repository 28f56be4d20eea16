"""State-space models: records of every kind, tables, targets and the picture, from quick models and made-up rows."""

import json

import numpy as np
import pytest

import revarb
from studies import state_space
from studies.state_space import CHOSEN, MARKOV, MEAN_FIELD, MODELS, PRIOR, REDUCED_RANK, SYSTEMS, StateSpace
from studies.study import Fit, run_fits
from support import small


def record_row(dataset, model, seed, rmse, start="continue", method="samples", reason=None):
    return {"part": "records", "dataset": dataset, "model": model, "seed": seed, "start": start, "method": method,
            "rmse": rmse, "nrmse": rmse, "coverage95": 0.9, "fit_seconds": 1.0, "reason": reason}  # fmt: skip


@pytest.fixture
def rows():
    errors = [
        record_row(record, model, seed, 0.9 * published.get(model, 1.0), start)
        for record, published in state_space.PUBLISHED.items()
        for model in MODELS
        for seed in range(2)
        for start in ("continue", "cold")
    ]
    known = [
        {"part": "known states", "dataset": name, "model": model, "seed": 0, "reason": None, "transition_error": 0.1,
         "process_std": 0.1 * ratio, "process_ratio": ratio, "output_std": 0.2}
        for name in SYSTEMS
        for model, ratio in ((PRIOR, 0.5), (MARKOV, 1.1), (MEAN_FIELD, 2.0))
    ]  # fmt: skip
    curve = {"part": "curve", "dataset": "kink", "model": PRIOR, "seed": 0, "reason": None}
    points = [{**curve, "x": x, "truth": x, "learnt": x, "learnt_std": 0.1} for x in (0.0, 1.0)]
    long = [record_row("narendra_li", model, 0, 0.2, "cold") for model in (REDUCED_RANK, CHOSEN)]
    return [*errors, *known, *points, *long]


def test_tables_targets_picture_and_page(rows):
    study = StateSpace()
    continued, cold, *others = study.tables(rows)
    assert len(others) == 2 and "continued" in continued.title and "cold" in cold.title
    assert continued.rows[0][1] == "0.622 [0.691]" and continued.rows[-1][0] == "EnVI (published)"
    assert len(study.targets(rows)) == 9 and all(target.met for target in study.targets(rows))
    figure = study.figures(rows, {})["state_space_transitions"]
    assert len(figure.axes) == 1 and len(figure.axes[0].lines) == 2
    assert "Known states" in (page := study.page(rows, {}, {})) and "<svg" in page
    assert study.figures([row for row in rows if row["part"] != "curve"], {}) == {}


def test_a_failed_seed_is_no_median(rows):
    spoilt = [*rows, record_row("drive", PRIOR, 2, None, method="", reason="diverged")]
    assert "–" in StateSpace().tables(spoilt)[0].rows[0][3]
    first, *_ = StateSpace().targets(spoilt)
    assert first == ("no run failed", False, "1 run(s) failed: drive, GPSSM, prior: diverged")


@pytest.mark.slow
def test_a_known_system_is_judged_in_raw_units():
    quick = revarb.GPSSM(states=1, inducing=6, subsequence=10, window=3, batch=2, samples=2, updates=50)
    found, *points = state_space.run_known(Fit("kink", "m", 0), quick, samples=40)
    assert found["part"] == "known states" and found["true_process_std"] == SYSTEMS["kink"].process_std
    np.testing.assert_allclose(found["process_ratio"], found["process_std"] / found["true_process_std"])
    assert len(points) == 41 and {row["part"] for row in points} == {"curve"}
    json.dumps([found, *points])


@pytest.mark.parametrize("name", SYSTEMS)
def test_generated_records_follow_their_transition(name):
    system = SYSTEMS[name]
    record, x = system.generate(2000, 0)
    moved = x[1:] - system.transition(x[:-1], record.u[:-1])
    np.testing.assert_allclose(moved.std(), system.process_std, rtol=0.05)
    np.testing.assert_allclose((record.y - x).std(), system.output_std, rtol=0.05)
    assert np.abs(x).max() < 10.0


class QuickStateSpace(StateSpace):
    """Two records and a linear model."""

    datasets = ("actuator", "narendra_li")

    def models(self, dataset, lags=1):
        return {PRIOR: revarb.ARX(lags=2, input_lags=2)}


def test_rows_of_a_quick_study(monkeypatch):
    split = revarb.datasets.Split("actuator", small.record(0), small.record(1), lags=2)
    monkeypatch.setattr(state_space.datasets, "load", lambda name: split)
    monkeypatch.setattr(state_space, "LONG_SAMPLES", 60)
    study = QuickStateSpace(seeds=2)
    rows, _ = run_fits(study)
    assert [(row["dataset"], row["seed"], row["start"]) for row in rows] == [
        (dataset, seed, start)
        for seed in (0, 1)
        for dataset, starts in (("actuator", ("cold", "continue")), ("narendra_li", ("cold",)))
        for start in starts
    ]
