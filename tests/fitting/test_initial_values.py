"""Start values of a fit: by the recipe, latent means, and linear parts, which are ARX models; ARX fits with gaps."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from revarb.data.windows import Order, regressors
from revarb.fitting.arx import ARX, limit_order, list_orders
from revarb.fitting.free_run import run_from_rest
from revarb.fitting.initial_values import compute_components, initialise_means, simulate_gaps, start_linear_parts
from revarb.models.recipe import Recipe
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import Chain
from revarb.variational.bound import compute_posteriors
from support import small

RECIPE = Recipe(
    hidden_noise=0.07, output_noise=0.02, latent_variance=0.3, lengthscale_factor=1.5, kernel_variance=0.8,
    zeta_noise=0.0, initial_mean=0.1, initial_variance=1.3,
)  # fmt: skip


def test_values_of_the_recipe():
    problem = small.problem(small.spec(recipe=RECIPE), small.record())
    parameters, y = problem.start, problem.preprocessor.scaling.outputs(small.record().y)
    assert [float(layer.sigma2) for layer in parameters.layers] == pytest.approx([0.07, 0.07, 0.02])
    assert [float(layer.variance) for layer in parameters.layers] == pytest.approx([0.8] * 3)
    for mu, lam, prior in zip(parameters.states.mu, parameters.states.lam, parameters.priors, strict=True):
        np.testing.assert_array_equal(mu, y)
        np.testing.assert_allclose(lam, 0.3)
        np.testing.assert_allclose(prior.prior_mean, 0.1)
        np.testing.assert_allclose(prior.variance, 1.3)
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(parameters))
    x_hats = regressors(parameters.states.mu, problem.rows.u_bar, 2, problem.layout.lengths)
    for layer, x_hat in zip(parameters.layers, x_hats, strict=True):  # lengthscales follow the range of their regressor
        expected = 1.5 * np.ptp(np.asarray(x_hat), axis=0) / np.sqrt(2.0)
        np.testing.assert_allclose(1.0 / np.sqrt(layer.w), expected, rtol=1e-9)
    moved = small.problem(small.spec(recipe=replace(RECIPE, zeta_noise=0.2)), small.record())
    # The first layer's centres are drawn before any noise is: the difference is the noise alone.
    assert (moved.start.layers[0].zeta - parameters.layers[0].zeta).std() == pytest.approx(0.2, rel=0.3)


def test_latent_means_start_at_the_output_or_its_principal_components(rng):
    y = rng.normal(size=(50, 1))
    np.testing.assert_array_equal(initialise_means([y[:20], y[20:]], 1), y)
    wide = rng.normal(size=(50, 1)) @ np.array([[1.0, -2.0, 0.5]]) + 0.1 * rng.normal(size=(50, 3))
    components = compute_components(wide)
    np.testing.assert_allclose(components.T @ components / 50, np.eye(3), atol=1e-10)
    assert abs(np.corrcoef(components[:, 0], wide[:, 1])[0, 1]) > 0.99
    np.testing.assert_allclose(initialise_means([wide], 2), components[:, :2])


def test_more_states_than_outputs_start_at_rates_of_change():
    time = np.linspace(0.0, 6.0, 200)
    states = initialise_means([np.sin(time)[:, None]], 2)
    assert abs(np.corrcoef(states[:, 1], np.cos(time))[0, 1]) > 0.999
    doubled = np.stack([np.sin(time), 2.0 * np.sin(time)], axis=1)  # two columns, one signal
    assert abs(np.corrcoef(initialise_means([doubled], 2)[:, 1], np.cos(time))[0, 1]) > 0.999
    line = initialise_means([time[:, None]], 4)
    assert np.isfinite(line).all() and line.shape == (200, 4)


def simulate_first_order(u):
    """A linear system without noise: y_i = 0.9 y_{i-1} + 0.3 u_{i-1}."""
    y = np.zeros((len(u), 1))
    for i in range(1, len(u)):
        y[i] = 0.9 * y[i - 1] + 0.3 * u[i - 1]
    return y


def test_gaps_are_filled_by_a_simulation_from_the_rows_before_them(rng):
    """Within limits, where an input is far away while nothing is measured; another output is left as it is."""
    u, order = rng.normal(size=(300, 2)), Order(1, 1, 1)
    y = np.hstack([simulate_first_order(u[:, :1]), simulate_first_order(u[:, 1:])])
    [whole] = simulate_gaps(order, [u], [y])
    np.testing.assert_array_equal(whole, y)
    measured = y.copy()
    measured[120:200, 0] = np.nan
    [filled] = simulate_gaps(order, [u], [measured])
    np.testing.assert_allclose(filled, y, atol=1e-8)
    np.testing.assert_array_equal(filled[:, 1], y[:, 1])
    u[130:150, 0] = 100.0
    [filled] = simulate_gaps(order, [u], [measured])
    assert filled[:, 0].max() == pytest.approx(np.nanmax(measured[:, 0]) + 1.0)


def test_gaps_without_enough_measured_rows_are_filled_by_lines(rng):
    y = np.full((40, 1), np.nan)
    y[::4] = rng.normal(size=(10, 1))  # no row of two measured values follows another
    [filled] = simulate_gaps(Order(3, 3, 1), [rng.normal(size=(40, 1))], [y])
    np.testing.assert_allclose(filled[:37, 0], np.interp(np.arange(37), np.arange(0, 40, 4), y[::4, 0]))


def solve_complete_rows(records, scaling, order):
    """Least squares on the rows without a missing value, neither as target nor as regressor; z-scored."""
    design, targets = [], []
    for record in records:
        y, u = scaling.outputs(record.y), scaling.inputs(record.u)
        for i in range(order.first_row, len(record)):
            past = [y[i - k] for k in range(1, order.lags + 1)]
            inputs = [u[i - order.input_delay - k] for k in range(order.input_lags)]
            row = np.concatenate([*past, *inputs, [1.0]])
            if np.isfinite(row).all() and np.isfinite(y[i]).all():
                design.append(row)
                targets.append(y[i])
    return np.linalg.lstsq(np.array(design), np.array(targets))[0], len(design)


def with_tail(number, first, count):
    """Records of which one is not measured from a row on."""
    return [small.with_gaps(small.record(k), slice(first if k == number else 60, None)) for k in range(count)]


@pytest.mark.parametrize(
    "records",
    [
        [small.with_gaps(small.record(), slice(20, 23), 40, 58), small.record(1, samples=35)],
        [small.with_gaps(small.record(outputs=2), (slice(20, 23), 0), (40, 1), 58), small.record(1, 35, outputs=2)],
        with_tail(0, 45, 1),  # the last quarter does not choose the order
        with_tail(3, 4, 5),
    ],
)
def test_gaps_leave_out_the_incomplete_rows(records):
    model = ARX(lags=3, input_lags=3).fit(records)
    expected, rows = solve_complete_rows(records, model.scaling, model.order)
    assert rows < sum(len(record) - model.order.first_row for record in records)
    np.testing.assert_allclose(model.model.coefficients, expected[:-1], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(model.model.offset, expected[-1], rtol=1e-9, atol=1e-11)
    assert np.isfinite(model.simulate(small.record(5).u).mean).all()
    assert (model.residual_std > 0.0).all() and (model.residual_std < 1.0).all()


def test_orders_that_are_tried():
    assert limit_order(Order(10, 10, 1), [small.record(samples=20), small.record()]) == Order(4, 4, 1)
    assert limit_order(Order(10, 0, 1), [small.record(samples=8, inputs=0)]) == Order(1, 0, 1)
    assert [order.lags for order in list_orders(Order(13, 0, 1))] == [*range(1, 11), 12]
    assert list_orders(Order(2, 2, 3)) == [Order(a, b, 3) for a in (1, 2) for b in (1, 2)]


@with_numerics
def test_without_a_gp_part_the_model_is_arx():
    records, test, lags = [small.record(0), small.record(1, samples=45)], small.record(5), vars(Order(1, 1, 1))
    spec = small.spec(hidden=1, linear=True, recipe=Recipe(kernel_variance=1e-14), inducing=5, **lags)
    problem = small.problem(spec, *records)
    layers = jax.jit(compute_posteriors, static_argnames="layout")(problem.start, problem.rows, layout=problem.layout)
    prep = problem.preprocessor
    run = run_from_rest(Chain(layers[:-1], layers[-1], 1), prep, prep.scaling.inputs(test.u))
    linear = ARX(**lags).fit(records)
    expected = run_from_rest(linear.chain, linear.preprocessor, linear.scaling.inputs(test.u))
    np.testing.assert_allclose(run, expected, atol=1e-8)


def embed(model, order):
    """Coefficients of an ARX model among the regressors of a larger order; one input, one output."""
    expected, chosen = np.zeros(order.lags + order.input_lags), model.order
    expected[: chosen.lags] = model.model.coefficients[: chosen.lags, 0]
    expected[order.lags : order.lags + chosen.input_lags] = model.model.coefficients[chosen.lags :, 0]
    return expected


@pytest.mark.parametrize("gaps", [(), (slice(20, 24), slice(33, 34))])
def test_the_first_layer_is_arx_and_layers_above_copy_the_one_below(gaps):
    record = small.with_gaps(small.record(), *gaps)
    layers = small.problem(small.spec(hidden=3, lags=4, input_lags=3, linear=True), record).start.layers
    model = ARX(lags=4, input_lags=3).fit(record)
    first, *above = (layer.linear.coefficients[:, 0] for layer in layers)
    np.testing.assert_allclose(first, embed(model, Order(4, 3, 1)), rtol=1e-9, atol=1e-12)
    for copied in above[:-1]:
        np.testing.assert_array_equal(copied, np.eye(8)[4])  # the newest state of the one below
    np.testing.assert_array_equal(above[-1], np.eye(4)[0])
    assert not any(np.any(layer.linear.offset) for layer in layers[1:])


@pytest.mark.parametrize("dims", [(3,), (3, 2)])
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


@pytest.mark.parametrize("growing", [False, True])
def test_where_no_arx_model_can_be_fitted_the_first_layer_starts_at_zero(growing):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 1))
    if growing:  # every ARX model of it diverges
        values[:300, 0] = 50.0 ** np.arange(-299.0, 1.0)
    mu = initialise_means([values], 1)
    if not growing:
        values[::2] = np.nan  # no complete row
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
