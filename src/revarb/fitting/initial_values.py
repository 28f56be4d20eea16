"""Start values of a fit, from the data and the recipe; linear parts start at an ARX model (docs/design/decisions)."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import jax
import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order, input_windows, regressors
from revarb.errors import RevarbError
from revarb.fitting.arx import fit_linear, limit_order, select_columns, simulate_linear
from revarb.fitting.quarters import rms_error
from revarb.gp.kmeans import find_centres
from revarb.gp.layer import Layer, Linear, inverse_softplus
from revarb.models.fitted_arx import FittedARX
from revarb.models.recipe import Recipe
from revarb.models.rgp import RGP
from revarb.variational.bound import Layout, Rows
from revarb.variational.noise import StudentNoise, make_noise
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates, InitialPrior

START_DEGREES = 4.0  # of freedom, where they are estimated


def initialise_parameters(
    spec: RGP,
    mu: tuple[Float64[np.ndarray, "S _"], ...],
    linear: Sequence[Linear | None],
    rows: Rows,
    layout: Layout,
    rng: np.random.Generator,
) -> Parameters:
    """Choose the start values: inducing inputs at k-means centres, the rest from the recipe.

    `mu` are the latent means, `linear` the linear parts of all layers.
    """
    recipe = spec.recipe
    x_hat = [np.asarray(mean) for mean in regressors(mu, rows.u_bar, layout.lags, layout.lengths)]
    noises = [recipe.hidden_noise] * spec.hidden + [recipe.output_noise]
    layers = tuple(
        _make_layer(recipe, mean, noise, part, spec.inducing, rng)
        for mean, noise, part in zip(x_hat, noises, linear, strict=True)
    )
    raw_lam = tuple(np.full(m.shape, inverse_softplus(recipe.latent_variance)) for m in mu)
    start = recipe.initial_mean, inverse_softplus(recipe.initial_variance)
    priors = tuple(InitialPrior(*(np.full((layout.lags, dim), value) for value in start)) for dim in spec.latent_dims)
    return Parameters(layers, FreeStates(mu, raw_lam), priors)


def initialise_noise(spec: RGP, rows: Rows, filled: Sequence[Float64[np.ndarray, "_ Dy"]]) -> StudentNoise:
    """Start the weights of Student-t outputs: 1, and small for outliers, which are interpolated in `filled`."""
    expected = np.concatenate([y[spec.lags :] for y in filled])
    measured = 1.0 if rows.measured is None else np.asarray(rows.measured)
    squares = measured * (np.asarray(rows.y) - expected) ** 2 / spec.recipe.output_noise
    degrees = START_DEGREES if spec.degrees_of_freedom is None else spec.degrees_of_freedom
    # Missing ones keep their zero (outliers).
    return jax.tree.map(np.asarray, make_noise(measured * np.maximum(squares, 1.0), degrees))


def fill_gaps(y: Float64[np.ndarray, "P Dy"]) -> Float64[np.ndarray, "P Dy"]:
    """Interpolate missing values linearly; an output without any measured value gets its mean, zero."""
    time = np.arange(len(y))
    filled = np.zeros_like(y)
    for column, measured in enumerate(~np.isnan(y.T)):
        if measured.any():
            filled[:, column] = np.interp(time, time[measured], y[measured, column])
    return filled


def simulate_gaps(
    order: Order, u_blocks: Sequence[Float64[np.ndarray, "_ Du"]], y_blocks: Sequence[Float64[np.ndarray, "_ Dy"]]
) -> list[Float64[np.ndarray, "_ Dy"]]:
    """Fill missing outputs by an ARX model of the measured ones, which runs through every gap from the rows before it.

    Latent means start there. From a line through a long gap they need most of the iterations of a fit
    (docs/design/decisions). Values are at most a standard deviation beyond those that were measured.
    """
    filled = [fill_gaps(y) for y in y_blocks]
    if not any(np.isnan(y).any() for y in y_blocks):
        return filled
    fitted = _fit_stable(order, u_blocks, y_blocks)
    if fitted is None:
        return filled
    joined = np.concatenate(filled)
    limits = joined.min(axis=0) - 1.0, joined.max(axis=0) + 1.0
    for u, y, x in zip(u_blocks, y_blocks, filled, strict=True):
        _run_through_gaps(fitted, u, np.isnan(y), x, limits)
    return filled


def _run_through_gaps(
    fitted: FittedARX, u: np.ndarray, missing: np.ndarray, x: np.ndarray, limits: tuple[np.ndarray, np.ndarray]
) -> None:
    # In place: the values of a gap are among the regressors of its next rows.
    order, model = fitted.order, fitted.model
    u_bar = input_windows(u, order)
    for row in np.flatnonzero(missing.any(axis=1)):
        if row >= order.first_row:
            regressor = np.concatenate([x[row - order.lags : row][::-1].ravel(), u_bar[row - order.reach]])
            value = np.clip(regressor @ model.coefficients + model.offset, *limits)
            x[row, missing[row]] = value[missing[row]]


def initialise_means(y_blocks: Sequence[Float64[np.ndarray, "_ Dy"]], dim: int) -> Float64[np.ndarray, "S Dx"]:
    """Choose start values of `dim` latent states: y itself if it has one column, else its principal components.

    If there are more states than columns of y, components of its first difference follow, then of the second one:
    states of a system beyond its output usually are rates of change.
    """
    if dim == 1 and y_blocks[0].shape[1] == 1:
        return np.concatenate(y_blocks)
    rows = sum(len(block) for block in y_blocks)
    columns, signals = np.empty((rows, 0)), list(y_blocks)
    for _ in range(dim):
        columns = np.concatenate([columns, compute_components(np.concatenate(signals))], axis=1)
        signals = [np.gradient(signal, axis=0) for signal in signals]
    # Signals can have too few components (a straight line has no second difference); the other states start at zero.
    return np.concatenate([columns, np.zeros((rows, dim))], axis=1)[:, :dim]


def compute_components(values: Float64[np.ndarray, "S Dy"]) -> Float64[np.ndarray, "S C"]:
    """Compute principal components, largest first, scaled to unit variance, with a positive main loading.

    Linearly dependent columns have fewer components than columns; components of the size of rounding are left out.
    """
    centred = values - values.mean(0)
    scores, sizes, loadings = np.linalg.svd(centred, full_matrices=False)
    main = loadings[np.arange(len(loadings)), np.abs(loadings).argmax(1)]
    significant = sizes > 1e-8 * max(sizes.max(initial=0.0), 1e-300)
    return (scores * np.sign(main) * np.sqrt(len(values)))[:, significant]


def _make_layer(
    recipe: Recipe, x_hat: np.ndarray, noise: float, linear: Linear | None, inducing: int, rng: np.random.Generator
) -> Layer:
    zeta = draw_inducing_inputs(recipe, x_hat, inducing, rng)
    ranges = np.ptp(x_hat, axis=0)
    # A regressor can be constant over all rows (an input that only changes before the first window): any scale works.
    lengthscales = recipe.lengthscale_factor * np.where(ranges > 0.0, ranges, 1.0) / np.sqrt(2.0)
    with np.errstate(over="ignore", divide="ignore"):  # a start that is not finite is refused by the optimiser
        w = 1.0 / lengthscales**2
    return Layer(
        zeta=zeta,
        raw_w=np.asarray(inverse_softplus(w)),
        raw_variance=np.asarray(inverse_softplus(recipe.kernel_variance)),
        raw_sigma2=np.asarray(inverse_softplus(noise)),
        linear=linear,
    )


def draw_inducing_inputs(
    recipe: Recipe, x_hat: Float64[np.ndarray, "R D"], inducing: int, rng: np.random.Generator
) -> Float64[np.ndarray, "M D"]:
    """Draw inducing inputs near k-means centres of the regressors."""
    centres = find_centres(x_hat, inducing, recipe.kmeans_iterations, recipe.kmeans_starts, rng)
    return centres + recipe.zeta_noise * rng.standard_normal(centres.shape)


MAX_ERROR = 1.0  # of the run over the training records, z-scored: predicting the mean is as good


def start_linear_parts(
    order: Order,
    u_blocks: Sequence[Float64[np.ndarray, "_ Du"]],
    y_blocks: Sequence[Float64[np.ndarray, "_ Dy"]],
    mu: Sequence[Float64[np.ndarray, "S _"]],
) -> tuple[Linear, ...]:
    """The linear parts of the layers 1 … H+1.

    `u_blocks` and `y_blocks` are z-scored inputs and outputs at the times of the latent states, `mu` the start values
    of the latent means.
    """
    ends = np.cumsum([len(y) for y in y_blocks])[:-1]
    first = [
        np.where(np.isnan(y).any(axis=1, keepdims=True), np.nan, x)
        for y, x in zip(y_blocks, np.split(mu[0], ends), strict=True)
    ]
    parts = [_fit_first(order, u_blocks, first)]
    for below, x in pairwise(mu):
        parts.append(_copy_newest(below, x, own=order.lags * x.shape[1], lags=order.lags))
    return (*parts, _copy_newest(mu[-1], np.concatenate(y_blocks), own=0, lags=order.lags))


def _fit_first(order: Order, u_blocks: Sequence[np.ndarray], x_blocks: Sequence[np.ndarray]) -> Linear:
    # An ARX model of the states. Where none can be fitted, the linear part starts at zero.
    inputs, states = u_blocks[0].shape[1], x_blocks[0].shape[1]
    coefficients = np.zeros((order.lags * states + order.input_lags * inputs, states))
    fitted = _fit_stable(order, u_blocks, x_blocks)
    if fitted is None:
        return Linear(coefficients, np.zeros(states))
    columns = select_columns(replace(fitted.preprocessor, order=order), fitted.preprocessor.order)
    coefficients[columns] = fitted.model.coefficients
    return Linear(coefficients, np.asarray(fitted.model.offset))


def _fit_stable(order: Order, u_blocks: Sequence[np.ndarray], x_blocks: Sequence[np.ndarray]) -> FittedARX | None:
    # The order was chosen by simulation, but a fit to other rows can still be unstable: then with half the lags,
    # as where no model can be fitted.
    inputs, states = u_blocks[0].shape[1], x_blocks[0].shape[1]
    unscaled = Standardiser(np.zeros(inputs), np.ones(inputs), np.zeros(states), np.ones(states))
    records = [Series(u, x) for u, x in zip(u_blocks, x_blocks, strict=True)]
    limited = limit_order(order, records)
    while True:
        prep = Preprocessor(unscaled, limited, records[0].input_names, records[0].output_names, 1.0)
        try:
            fitted = fit_linear(prep, records)
        except RevarbError:  # no row without a gap, or every simulation diverged
            fitted = None
        if fitted is not None and _measure_run(fitted, records) <= MAX_ERROR:
            return fitted
        if limited.lags == 1:
            return None
        limited = replace(limited, lags=limited.lags // 2, input_lags=(limited.input_lags + 1) // 2)


def _measure_run(fitted: FittedARX, records: Sequence[Series]) -> float:
    [runs] = simulate_linear(fitted.preprocessor, records, [fitted.model])
    skip = fitted.preprocessor.skip
    errors = np.concatenate([(run - record.y)[skip:] for run, record in zip(runs, records, strict=True)])
    measured = np.isfinite(np.concatenate([record.y[skip:] for record in records]))
    return rms_error(errors[measured]) if measured.any() else float("inf")


def _copy_newest(below: np.ndarray, target: np.ndarray, own: int, lags: int) -> Linear:
    # The regressors are the layer's own window (`own` entries) and the window of the layer below, newest state first.
    coefficients = np.zeros((own + lags * below.shape[1], target.shape[1]))
    newest = slice(own, own + below.shape[1])
    finite = np.isfinite(target)
    for rows in np.unique(finite, axis=1).T:  # outputs that are measured at the same times are mapped together
        columns = (finite == rows[:, None]).all(0)
        known, wanted = below[rows], target[rows][:, columns]
        if below.shape == target.shape and rows.any() and np.array_equal(known[:, columns], wanted):
            coefficients[newest, columns] = np.eye(below.shape[1])[:, columns]
        elif rows.any():  # different numbers of states, or outputs: the closest linear map
            coefficients[newest, columns] = np.linalg.lstsq(known, wanted)[0]
    return Linear(coefficients, np.zeros(target.shape[1]))
