"""Reduced-rank GP state-space model: recovery of known systems, gaps, Ctrl-C, files."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.baselines.state_space import particle_gibbs, reduced_rank
from revarb.baselines.state_space.reduced_rank import ReducedRankGPSSM
from revarb.data.series import Series, Window
from revarb.errors import ComputationError
from revarb.models.model_file import model_from_parts, model_parts
from support import small

QUICK = ReducedRankGPSSM(states=1, basis=20, particles=6, burn_in=30, draws=20, thinning=2)


@pytest.fixture(scope="module")
def model():
    return QUICK.fit(small.record(samples=100))


def kink(x):
    return 0.8 + (x + 0.2) * (1.0 - 5.0 / (1.0 + np.exp(-2.0 * x)))


def test_a_toy_system_is_learnt(model):
    test = small.record(1, samples=100)
    errors = model.simulate(test.u).mean - test.y
    assert np.sqrt(np.mean(errors[5:] ** 2)) < 0.3 * test.y.std()


def predict_by_the_truth(y, rng):
    x = rng.normal(size=20_000) * 1.5
    for measured in y:
        weights = np.exp(-0.5 * ((measured - x) / 0.1) ** 2)
        x = kink(rng.choice(x, len(x), p=weights / weights.sum())) + 0.05 * rng.normal(size=len(x))
    return x.mean()


@pytest.mark.slow
def test_the_kink_is_recovered(rng):
    """Predictions of a system without inputs are nearly as good as those of a filter that knows the system."""
    x, states = 0.0, []
    for _ in range(510):
        x = kink(x) + 0.05 * rng.normal()
        states.append(x)
    y = np.array(states) + 0.1 * rng.normal(size=510)
    model = ReducedRankGPSSM(states=1, basis=30, burn_in=100, draws=60).fit(Series(None, y[:400]))
    past = [y[first : first + 8] for first in range(400, 500)]
    ours = [model.simulate(steps=1, start=Window(None, each), samples=1000).mean[0, 0] for each in past]
    best = [predict_by_the_truth(each, rng) for each in past]
    errors = [np.sqrt(np.mean((np.array(each) - states[408:508]) ** 2)) for each in (ours, best)]
    assert errors[0] < 1.2 * errors[1]


def test_inputs_far_outside_of_the_box_do_not_make_a_run_diverge(model):
    with pytest.warns(UserWarning, match="leaves its training range"):
        path = model.simulate(np.full((200, 1), 1e6))
    assert np.abs(path.mean).max() < 50.0


@pytest.mark.slow
def test_hidden_states_stand_behind_the_outputs_and_missing_outputs_do_not_count(model):
    """The gaps contain nothing: the model is close to that of the full record."""
    wide = replace(QUICK, states=3).fit(small.record(outputs=2))
    assert wide.hidden == 3 and wide.states == 5 and wide.posterior.weights.shape == (20, 5, 1 + 4 + 20)
    record = small.record(samples=100)
    partial = QUICK.fit(small.with_gaps(record, (slice(30, 40), 0), (slice(80, 83), 0)))
    paths = [each.simulate(record.u, "mean").mean for each in (model, partial)]
    assert np.sqrt(np.mean((paths[0] - paths[1]) ** 2)) < 0.2 * record.y.std()


@pytest.mark.parametrize(("call", "kept"), [(0, 1), (9, 5), (18, 4)])
def test_ctrl_c_keeps_the_draws_so_far(press_ctrl_c, call, kept):
    """In the burn-in of 15 rounds the later half, then those after it."""
    press_ctrl_c(reduced_rank, call)
    model = QUICK.fit(small.record(samples=100))
    assert model.status.value == "interrupted" and len(model.posterior.R) == kept
    assert np.isfinite(model.simulate(small.record(1).u).mean).all()


def test_a_chain_that_diverges_is_refused(monkeypatch):
    def diverge(state, *_):
        return state._replace(path=state.path * np.nan)

    monkeypatch.setattr(particle_gibbs, "run_sweeps", diverge)
    with pytest.raises(ComputationError, match="the sampling of the states diverged"):
        QUICK.fit(small.record())


def test_a_file_of_the_first_version_has_outputs_that_are_states(model):
    """Its f depends on the whole state, and its header does not say so."""
    header, arrays = model_parts(model)
    arrays |= {
        "basis.half_width": np.array([3.0, 3.0, 3.0]),
        "basis.numbers": np.ones((20, 3)),
        "posterior.weights": np.tile(np.array([[0.0, 0.5, 0.0, 0.0]]), (20, 2, 6)),
    }
    old = model_from_parts({name: value for name, value in header.items() if name != "hidden"}, arrays)
    assert old.hidden == old.states == 2
    next_states = old.mean_dynamics().mean(np.array([[1.0, 0.3]]), np.zeros(1))
    assert not np.allclose(next_states, old.mean_dynamics().mean(np.array([[0.0, 0.3]]), np.zeros(1)))
