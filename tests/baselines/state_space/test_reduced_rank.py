"""Reduced-rank GP state-space model: recovery of known systems, several records, gaps, Ctrl-C, files, refusals."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from revarb.baselines.state_space import reduced_rank
from revarb.baselines.state_space.reduced_rank import ReducedRankGPSSM
from revarb.baselines.state_space.state_space_files import STATE_SPACE_FORMATS
from revarb.data.series import Series, Window
from revarb.errors import ComputationError, InputError
from revarb.models.container import named_leaves
from revarb.models.model_file import common_header
from support import small

QUICK = ReducedRankGPSSM(states=1, basis=20, particles=6, burn_in=30, draws=20, thinning=2)


@pytest.fixture(scope="module")
def model():
    """A quick model of a small system."""
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
    model = ReducedRankGPSSM(states=1, basis=30, burn_in=200, draws=100).fit(Series(None, y[:400]))
    window = 8
    ours, best = [], []
    for first in range(400, 500):
        past = y[first : first + window]
        ours.append(model.simulate(steps=1, start=Window(None, past), samples=1000).mean[0, 0])
        best.append(predict_by_the_truth(past, rng))
    truth = np.array(states)[400 + window : 500 + window]
    errors = [np.sqrt(np.mean((np.array(each) - truth) ** 2)) for each in (ours, best)]
    assert errors[0] < 1.2 * errors[1]


def test_every_start_and_method_runs(model):
    record = small.record(1, samples=50)
    for start in ("cold", "continue", Window(record.u[:20], record.y[:20])):
        for method in ("samples", "mean"):
            path = model.simulate(record.u[20:], method, start=start)
            assert path.mean.shape == (30, 1) and np.abs(path.mean - record.y.mean()).max() < 5.0


def test_inputs_far_outside_of_the_box_do_not_make_a_run_diverge(model):
    with pytest.warns(UserWarning, match="leaves its training range"):
        path = model.simulate(np.full((200, 1), 1e6))
    assert np.abs(path.mean).max() < 50.0


def test_the_same_seed_gives_the_same_model(model):
    again = QUICK.fit(small.record(samples=100))
    np.testing.assert_array_equal(again.posterior.weights, model.posterior.weights)
    other = QUICK.fit(small.record(samples=100), seed=1)
    assert np.abs(other.posterior.weights - model.posterior.weights).max() > 0.0


@pytest.mark.slow
def test_several_records_with_gaps_and_two_outputs():
    records = [small.record(seed, samples=samples, outputs=2) for seed, samples in ((0, 60), (1, 40))]
    records[0] = small.with_gaps(records[0], (slice(10, 15), 0), (slice(20, 22), 1))
    model = replace(QUICK, states=3).fit(records)
    assert len(model.final_states) == 2 and model.hidden == 3 and model.states == 5
    assert model.posterior.weights.shape == (20, 5, 1 + 4 + 20)
    assert np.isfinite(model.simulate(records[1].u, start="continue").std).all()


@pytest.mark.slow
def test_missing_outputs_do_not_count(model):
    """The gaps contain nothing: the model is close to that of the full record."""
    record = small.record(samples=100)
    partial = QUICK.fit(small.with_gaps(record, (slice(30, 40), 0), (slice(80, 83), 0)))
    paths = [each.simulate(record.u, "mean").mean for each in (model, partial)]
    assert np.sqrt(np.mean((paths[0] - paths[1]) ** 2)) < 0.2 * record.y.std()


@pytest.mark.parametrize(("after", "kept"), [(0, 1), (9, 5), (18, 4)])
def test_ctrl_c_keeps_the_draws_so_far(monkeypatch, after, kept):
    """In the burn-in of 15 rounds the later half, then those after it."""
    presses = iter([False] * after + [True])

    @contextmanager
    def pressed():
        yield [2] if next(presses) else []

    monkeypatch.setattr(reduced_rank, "capture_interrupts", pressed)
    model = QUICK.fit(small.record(samples=100))
    assert model.status.value == "interrupted" and len(model.posterior.R) == kept
    assert np.isfinite(model.simulate(small.record(1).u).mean).all()


def test_a_chain_that_diverges_is_refused(monkeypatch):
    def diverge(state, *_):
        return state._replace(path=state.path * np.nan)

    monkeypatch.setattr(reduced_rank, "run_sweeps", diverge)
    with pytest.raises(ComputationError, match="the sampling of the states diverged"):
        QUICK.fit(small.record())


def write_parts(model):
    [known] = [each for each in STATE_SPACE_FORMATS if each.model_class is type(model)]
    header, tree = known.write(model)
    return known.read, {**common_header(model), **header}, named_leaves(tree)


def test_a_file_gives_the_same_simulations(model):
    read, header, arrays = write_parts(model)
    loaded, u = read(header, arrays), small.record(1).u
    for start in ("cold", "continue"):
        ours, theirs = (each.simulate(u, start=start) for each in (model, loaded))
        np.testing.assert_array_equal(ours.mean, theirs.mean)
        np.testing.assert_array_equal(ours.std, theirs.std)


def test_a_file_of_the_first_version_has_outputs_that_are_states(model):
    """Its f depends on the whole state, and its header does not say so."""
    read, header, arrays = write_parts(model)
    arrays = {
        **arrays,
        "basis.half_width": np.array([3.0, 3.0, 3.0]),
        "basis.numbers": np.ones((20, 3)),
        "posterior.weights": np.tile(np.array([[0.0, 0.5, 0.0, 0.0]]), (20, 2, 6)),
    }
    old = read({name: value for name, value in header.items() if name != "hidden"}, arrays)
    assert old.hidden == old.states == 2
    next_states = old.mean_dynamics().mean(np.array([[1.0, 0.3]]), np.zeros(1))
    assert not np.allclose(next_states, old.mean_dynamics().mean(np.array([[0.0, 0.3]]), np.zeros(1)))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("posterior.R", -1.0, "a draw has a noise that is not positive"),
        ("posterior.Q", -1.0, "a draw has a noise that is not positive"),
        ("basis.half_width", 0.0, "a width of its box is not positive"),
        ("basis.numbers", 1.5, "a number of half waves is not a whole number"),
        ("starts.cov", -1.0, "a final state has an invalid covariance"),
    ],
)
def test_files_with_impossible_values_are_refused(model, name, value, message):
    read, header, arrays = write_parts(model)
    with pytest.raises(InputError, match=message):
        read(header, {**arrays, name: np.full_like(arrays[name], value)})


@pytest.mark.parametrize(
    ("header", "message"),
    [({"states": 0}, "states must be"), ({"draws": 3}, "'posterior.weights' has shape"), ({"basis": 7}, "has shape")],
)
def test_files_whose_header_does_not_fit_are_refused(model, header, message):
    read, known, arrays = write_parts(model)
    with pytest.raises(InputError, match=message):
        read({**known, **header}, arrays)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ReducedRankGPSSM(states=0), "states must be a whole number of at least 1, received 0"),
        (lambda: ReducedRankGPSSM(particles=1), "particles must be a whole number of at least 2"),
        (lambda: ReducedRankGPSSM(box=0.5), "box must be a finite number above 1"),
        (lambda: QUICK.fit(small.record(outputs=2)), "states=1 are fewer than the 2 outputs"),
        (lambda: QUICK.fit(small.record(samples=2)), "record 0 has 2 samples"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()
