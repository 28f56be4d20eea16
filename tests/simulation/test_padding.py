"""Runs of nearby length share a program, and appended rows do not change a result."""

from functools import partial

import jax
import numpy as np
import pytest

from revarb.data.preprocessor import Preprocessor, ValueRange
from revarb.data.windows import Order
from revarb.gp.layer import Linear
from revarb.gp.posterior import compute_known_part
from revarb.runtime.numerics import round_up_rows
from revarb.simulation import filtering, narx_filtering
from revarb.simulation.chain import Chain
from revarb.simulation.extrapolation import KnownRange
from revarb.simulation.filtering import filter_states, predict_ahead
from revarb.simulation.mean import run_mean, scan_mean
from revarb.simulation.moments import JointState, advance_moments, observe_moments, run_moments, scan_moments
from revarb.simulation.starts import infer_state, make_standard_start
from support import small


def assert_same(got, expected):
    """Equal but for rounding: programs of other shapes are compiled differently, as the processor allows."""
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-10)


@jax.jit
def run_unpadded(chain, start, u_bar):
    """The moments in one program with the known inputs, for exactly these rows."""
    return scan_moments(chain, start, compute_known_part(chain.hidden[0], u_bar))[1]


@jax.jit
def filter_unpadded(chain, start, u_bar, y):
    """The filter as a scan over exactly these rows."""
    advance, observe = advance_moments(chain), observe_moments(chain)

    def step(state, now):
        state = advance(state, now[0])
        return filtering.make_update(chain)(state, observe(state), now[1]), None

    rows = (compute_known_part(chain.hidden[0], u_bar), y)
    return jax.lax.scan(step, JointState(start.mean, start.cov), rows)[0]


def draw_rows(model, rows, rng):
    """A start, input windows and outputs."""
    order = model.order
    start = make_standard_start(model.preprocessor, model.chain)
    y = rng.normal(size=(rows, len(model.output_names)))
    return start, rng.normal(size=(rows, order.input_lags)), np.where(rng.random(y.shape) < 0.1, np.nan, y)


@pytest.mark.parametrize("rows", [17, 205])
def test_runs_are_those_without_padding(model, rows, rng):
    chain, (start, u_bar, _) = model.trained.chain, draw_rows(model, rows, rng)
    assert round_up_rows(rows) > rows
    assert_same(run_mean(chain, start, u_bar), scan_mean(chain, start, u_bar))
    expected = run_unpadded(chain, start, u_bar)
    for got, wanted in zip(run_moments(chain, start, u_bar), expected, strict=True):
        assert_same(got, wanted)


def test_the_filter_stops_at_the_last_row(shallow_model, rng):
    chain, (start, u_bar, y) = shallow_model.trained.chain, draw_rows(shallow_model, 33, rng)
    for got, wanted in zip(filter_states(chain, start, u_bar, y), filter_unpadded(chain, start, u_bar, y), strict=True):
        assert_same(got, wanted)


def find_range(chain, u_bar):
    """A range that the states do not leave."""
    high = np.full(chain.lags * sum(chain.latent_dims), np.inf), np.full(u_bar.shape[1], np.inf)
    return KnownRange(*(ValueRange(-each, each) for each in high))


RUNS = {
    "mean": (scan_mean, lambda chain, start, u_bar, y: run_mean(chain, start, u_bar)),
    "moments": (scan_moments, lambda chain, start, u_bar, y: run_moments(chain, start, u_bar).variance),
    "prediction": (
        filtering._predict_later,
        lambda chain, start, u_bar, y: (
            predict_ahead(chain, chain, start, u_bar, y, 3, find_range(chain, u_bar))[0].mean
        ),
    ),
    "filter": (filtering._filter_rows, filter_states),
}


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.usefixtures("kept_programs")
def test_records_of_nearby_length_share_one_compilation(shallow_model, rng, kind):
    program, run = RUNS[kind]
    for rows in (200, 205):
        found = run(shallow_model.trained.chain, *draw_rows(shallow_model, rows, rng))
        assert kind == "filter" or found.shape == (rows, 1)
    assert program._cache_size() == 1


@pytest.mark.usefixtures("kept_programs")
def test_filters_of_linear_models_share_one_compilation():
    prep = Preprocessor.from_records([small.record()], Order(2, 2, 1))
    chain = Chain((Linear(np.array([[0.5], [0.1], [0.7], [0.2]]), np.array([0.1])),), None, 2)
    filter_record = partial(narx_filtering.filter_narx, variances=np.full((2, 1), 0.1))
    for rows in (200, 205):
        record = small.record(samples=rows)
        state = infer_state(record, prep, chain, make_standard_start(prep, chain), filter_record)
        np.testing.assert_array_equal(state.mean[:2], prep.scaling.outputs(record.y)[:-3:-1, 0])
    assert narx_filtering._filter_rows._cache_size() == 1
