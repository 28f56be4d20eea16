"""Start values of a fit, from the data and the recipe (docs/design/decisions)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from revarb.data.windows import regressors
from revarb.gp.kmeans import find_centres
from revarb.gp.layer import Layer, Linear, inverse_softplus
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
    raw_initial = inverse_softplus(recipe.initial_variance)
    shapes = [(layout.lags, dim) for dim in spec.latent_dims]
    priors = tuple(InitialPrior(np.full(shape, recipe.initial_mean), np.full(shape, raw_initial)) for shape in shapes)
    return Parameters(layers, FreeStates(mu, raw_lam), priors)


def initialise_noise(spec: RGP, rows: Rows, filled: Sequence[Float64[np.ndarray, "_ Dy"]]) -> StudentNoise:
    """Start the weights of Student-t outputs: 1, and small for outliers, which are interpolated in `filled`."""
    expected = np.concatenate([y[spec.lags :] for y in filled])
    measured = 1.0 if rows.measured is None else np.asarray(rows.measured)
    squares = measured * (np.asarray(rows.y) - expected) ** 2 / spec.recipe.output_noise
    degrees = START_DEGREES if spec.degrees_of_freedom is None else spec.degrees_of_freedom
    noise = make_noise(measured * np.maximum(squares, 1.0), degrees)  # missing ones keep their zero (outliers)
    return StudentNoise(np.asarray(noise.log_rate), np.asarray(noise.raw_degrees))


def fill_gaps(y: Float64[np.ndarray, "P Dy"]) -> Float64[np.ndarray, "P Dy"]:
    """Interpolate missing values linearly; an output without any measured value gets its mean, zero."""
    time = np.arange(len(y))
    filled = np.zeros_like(y)
    for column, measured in enumerate(~np.isnan(y.T)):
        if measured.any():
            filled[:, column] = np.interp(time, time[measured], y[measured, column])
    return filled


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
    centres = find_centres(x_hat, inducing, recipe.kmeans_iterations, recipe.kmeans_starts, rng)
    ranges = np.ptp(x_hat, axis=0)
    # A regressor can be constant over all rows (an input that only changes before the first window): any scale works.
    lengthscales = recipe.lengthscale_factor * np.where(ranges > 0.0, ranges, 1.0) / np.sqrt(2.0)
    with np.errstate(over="ignore", divide="ignore"):  # a start that is not finite is refused by the optimiser
        w = 1.0 / lengthscales**2
    return Layer(
        zeta=centres + recipe.zeta_noise * rng.standard_normal(centres.shape),
        raw_w=np.asarray(inverse_softplus(w)),
        raw_variance=np.asarray(inverse_softplus(recipe.kernel_variance)),
        raw_sigma2=np.asarray(inverse_softplus(noise)),
        linear=linear,
    )
