"""Start values of the linear parts: an ARX model in the first layer, copies above it."""

import jax
import numpy as np
import pytest

from revarb.baselines.arx import ARX
from revarb.config.recipe import Recipe
from revarb.data.windows import Order
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import Chain
from revarb.simulation.mean import run_mean_cold
from revarb.training.initial_values import initialise_means
from revarb.training.linear_start import start_linear_parts
from revarb.variational.bound import compute_posteriors
from support import small

VANISHING = Recipe(kernel_variance=1e-14)  # of the GP parts


@with_numerics
def simulate_start(spec, records, test):
    """The mean-only run at the start values, z-scored, and the preprocessor."""
    problem = small.problem(spec, *records)
    layers = jax.jit(compute_posteriors, static_argnames="layout")(problem.start, problem.rows, layout=problem.layout)
    prep = problem.preprocessor
    chain = Chain(layers[:-1], layers[-1], prep.order.lags)
    return np.asarray(run_mean_cold(chain, prep.order, prep.scaling.inputs(test.u))), prep


@pytest.mark.slow
def test_without_a_gp_part_the_model_is_arx():
    records, test = [small.record(0), small.record(1, samples=45)], small.record(5)
    spec = small.spec(hidden=2, lags=3, input_lags=3, input_delay=0, linear=True, recipe=VANISHING, inducing=5)
    run, prep = simulate_start(spec, records, test)
    path = ARX(lags=3, input_lags=3, input_delay=0).fit(records).simulate(test.u)
    # The ARX model has a smaller order and is reset at an earlier row: compared where both transients have decayed.
    np.testing.assert_allclose(run[50:], prep.scaling.outputs(path.mean)[50:], atol=1e-8)


def test_without_a_gp_part_and_with_the_full_order_the_model_is_arx_in_every_row():
    records, test = [small.record(0), small.record(1, samples=45)], small.record(5)
    model = ARX(lags=1, input_lags=1).fit(records)
    run, prep = simulate_start(
        small.spec(hidden=1, lags=1, input_lags=1, linear=True, recipe=VANISHING, inducing=5), records, test
    )
    np.testing.assert_allclose(run, prep.scaling.outputs(model.simulate(test.u).mean), atol=1e-10)


def embed(model, order):
    """Coefficients of an ARX model among the regressors of a larger order; one input, one output."""
    expected, chosen = np.zeros(order.lags + order.input_lags), model.order
    expected[: chosen.lags] = model.model.coefficients[: chosen.lags, 0]
    expected[order.lags : order.lags + chosen.input_lags] = model.model.coefficients[chosen.lags :, 0]
    return expected


def test_layers_above_copy_the_one_below():
    record = small.record()
    layers = small.problem(small.spec(hidden=3, lags=4, input_lags=3, linear=True), record).start.layers
    model = ARX(lags=4, input_lags=3).fit(record)
    np.testing.assert_allclose(layers[0].linear.coefficients[:, 0], embed(model, Order(4, 3, 1)), rtol=1e-9, atol=1e-12)
    for layer in layers[1:-1]:
        np.testing.assert_array_equal(
            layer.linear.coefficients[:, 0], np.eye(8)[4]
        )  # the newest state of the one below
    np.testing.assert_array_equal(layers[-1].linear.coefficients[:, 0], np.eye(4)[0])
    assert all(float(np.abs(layer.linear.offset).max()) == 0.0 for layer in layers[1:])


def test_gaps_are_left_out():
    record = small.with_gaps(small.record(), slice(20, 24), slice(33, 34))
    start = small.problem(small.spec(hidden=1, lags=2, input_lags=2, linear=True), record).start
    expected = embed(ARX(lags=2, input_lags=2).fit(record), Order(2, 2, 1))
    np.testing.assert_allclose(start.layers[0].linear.coefficients[:, 0], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(start.layers[1].linear.coefficients[:, 0], [1.0, 0.0])


def test_the_first_layer_simulates_stably():
    """The spectral radius of its recursion, also where lags enter that the inputs' window makes longer."""
    for input_lags in (2, 6):
        spec = small.spec(hidden=1, lags=4, input_lags=input_lags, linear=True)
        a = np.asarray(small.problem(spec, small.record()).start.layers[0].linear.coefficients)[:4, 0]
        assert np.abs(np.roots([1.0, *-a])).max() < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("dims", [(3,), (2,), (3, 2)])
def test_several_outputs_are_mapped_from_principal_components(dims):
    record = small.record(outputs=3, samples=80)
    spec = small.spec(hidden=len(dims), latent_dim=dims, lags=2, input_lags=2, linear=True)
    problem = small.problem(spec, record)
    layers, mu, y = problem.start.layers, problem.start.states.mu, problem.preprocessor.scaling.outputs(record.y)
    assert [layer.linear.coefficients.shape for layer in layers][-1] == (2 * dims[-1], 3)
    copied = mu[-1] @ layers[-1].linear.coefficients[: dims[-1]]
    best = mu[-1] @ np.linalg.lstsq(mu[-1], y)[0]
    np.testing.assert_allclose(copied, best, atol=1e-10)
    if dims == (3,):
        np.testing.assert_allclose(copied, y, atol=1e-10)  # as many states as outputs: nothing is lost
    if len(dims) == 2:  # the first two of three components
        newest = layers[1].linear.coefficients[2 * 2 : 2 * 2 + 3]
        np.testing.assert_allclose(newest, np.eye(3)[:, :2], atol=1e-10)
    if dims == (2,):
        run, prep = simulate_start(spec, [record], record)
        assert np.sqrt(np.mean((run - prep.scaling.outputs(record.y))[6:] ** 2)) < 1.0  # better than the mean


@pytest.mark.parametrize("y", ["every other one missing", "growing"])
def test_where_no_arx_model_can_be_fitted_the_first_layer_starts_at_zero(y):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 1))
    if y == "growing":  # every ARX model of it diverges
        values[:300, 0] = 50.0 ** np.arange(-299.0, 1.0)
    mu = initialise_means([values], 1)
    values = np.where(np.arange(400)[:, None] % 2 == 0, np.nan, values) if y != "growing" else values
    first, output = start_linear_parts(Order(2, 2, 1), [rng.normal(size=(400, 1))], [values], [mu])
    assert not np.any(first.coefficients) and not np.any(first.offset)
    np.testing.assert_array_equal(output.coefficients[:, 0], [1.0, 0.0])


def test_a_system_without_inputs_starts_at_its_autoregression():
    y = np.sin(0.4 * np.arange(80.0))[:, None]
    first, _ = start_linear_parts(Order(2, 0, 1), [np.empty((80, 0))], [y], [y])
    np.testing.assert_allclose(first.coefficients[:, 0], [2.0 * np.cos(0.4), -1.0], atol=1e-9)


def test_where_gaps_leave_no_row_for_all_lags_fewer_are_fitted():
    record = small.record(samples=200)
    y = np.where(np.arange(200)[:, None] % 5 == 0, np.nan, record.y)  # at most three past outputs without a gap
    first, _ = start_linear_parts(Order(8, 8, 1), [record.u], [y], [record.y])
    assert np.any(first.coefficients[:2]) and not np.any(first.coefficients[3:8])


def test_outputs_that_are_never_measured_together_are_mapped_one_by_one():
    rng = np.random.default_rng(0)
    states, mixing = rng.normal(size=(100, 2)), np.array([[1.0, 0.5], [-0.3, 2.0]])
    y = states @ mixing
    y[::2, 0], y[1::2, 1] = np.nan, np.nan
    first, output = start_linear_parts(Order(2, 1, 1), [rng.normal(size=(100, 1))], [y], [states])
    assert not np.any(first.coefficients)
    np.testing.assert_allclose(output.coefficients, np.concatenate([mixing, np.zeros((2, 2))]), atol=1e-12)
