"""State-space models: records of every kind, tables, targets and the picture, from quick models and made-up rows."""

import json

import numpy as np
import pytest

import revarb
from studies import state_space
from studies.state_space import PRIOR, SYSTEMS, StateSpace
from studies.study import Fit, run_fits
from support import small


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
