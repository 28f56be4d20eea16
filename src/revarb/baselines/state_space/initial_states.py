"""Start values of GP state-space models.

States at the outputs and their differences with f by GP regression on them, or those of an ARX model in observer form.
"""

from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Float64

from revarb.baselines.state_space.transition import JITTER, Transition
from revarb.baselines.state_space.variational import Corrections, RecognisedStart
from revarb.fitting.initial_values import fill_gaps, initialise_means
from revarb.gp.collapsed import inducing_covariance
from revarb.gp.kmeans import find_centres
from revarb.gp.layer import Gaussians, Layer, Linear, inverse_softplus
from revarb.gp.posterior import compute_posterior

PROCESS_VARIANCE = 1e-3  # small: sampled states that wander at first hide what f could learn
OUTPUT_VARIANCE = 0.1
START_VARIANCE = 0.01  # of the recognised first state
V_STD = 0.05  # of the whitened inducing outputs
RIDGE = 1e-2  # of the linear maps, relative to the number of rows
MIN_KERNEL_VARIANCE = 0.01
MARKOV_GAIN = 0.5  # the corrected states start half way between the transition and the guess


def guess_states(outputs: Sequence[Float64[np.ndarray, "_ Dy"]], states: int) -> Float64[np.ndarray, "N Dx"]:
    """Guess the states of all records: the outputs, interpolated where missing, then their differences.

    Differences have unit variance.
    """
    filled = [fill_gaps(y) for y in outputs]
    measured = np.concatenate(filled)
    if states == measured.shape[1]:
        return measured
    differences = initialise_means([np.gradient(y, axis=0) for y in filled], states - measured.shape[1])
    widths = differences.std(axis=0)
    return np.concatenate([measured, differences / np.where(widths > 0.0, widths, 1.0)], axis=1)


def start_transition(
    x: Float64[np.ndarray, "N Dx"],
    u_bar: Float64[np.ndarray, "N Du"],
    outputs: int,
    later: np.ndarray,
    inducing: int,
    linear_mean: bool,
    rng: np.random.Generator,
) -> Transition:
    """Regress every state on the states and inputs before it; `later` are the samples that have one before them."""
    x_hat, states = np.concatenate([x[later - 1], u_bar[later]], axis=1), x.shape[1]
    identity = Linear(np.eye(x_hat.shape[1], states), np.zeros(states))
    linear = _fit_linear(x_hat, x[later]) if linear_mean else identity
    residual = x[later] - np.asarray(linear.mean(x_hat))
    zeta = find_centres(x_hat, min(inducing, len(x_hat)), iterations=50, starts=1, rng=rng)
    parts = [_start_layer(x_hat, zeta, residual[:, [state]]) for state in range(states)]
    layers, v_means = (jax.tree.map(lambda *leaves: np.stack(leaves), *each) for each in zip(*parts, strict=True))
    root = np.log(V_STD) * np.eye(len(zeta))
    raw_output = np.full(outputs, inverse_softplus(OUTPUT_VARIANCE))
    return Transition(layers, v_means, np.stack([root] * states), linear, raw_output)


def _start_layer(
    x_hat: Float64[np.ndarray, "R D"], zeta: Float64[np.ndarray, "M D"], y: Float64[np.ndarray, "R 1"]
) -> tuple[Layer, Float64[np.ndarray, " M"]]:
    # The layer of one state, and the whitened inducing outputs of a GP regression: v = Aᵀ β.
    variance = max(4.0 * float(np.var(y)), MIN_KERNEL_VARIANCE)
    w = np.full(x_hat.shape[1], 1.0 / x_hat.shape[1])  # as GP-NARX starts
    noise = max(float(np.var(y)), MIN_KERNEL_VARIANCE)
    raw_w, raw_variance, raw_noise = (np.asarray(inverse_softplus(value)) for value in (w, variance, noise))
    layer = Layer(zeta, raw_w, raw_variance, raw_noise)
    beta = np.asarray(compute_posterior(layer, Gaussians(x_hat, None), y, JITTER).beta)[:, 0]
    root = np.linalg.cholesky(np.asarray(inducing_covariance(layer, JITTER)))
    return Layer(zeta, raw_w, raw_variance, np.asarray(inverse_softplus(PROCESS_VARIANCE))), root.T @ beta


def start_recognition(windows: Float64[np.ndarray, "C W"], x: Float64[np.ndarray, "C Dx"]) -> RecognisedStart:
    """Regress the guessed states on the windows by which they are recognised."""
    return RecognisedStart(_fit_linear(windows, x), np.full(x.shape[1], inverse_softplus(START_VARIANCE)))


def start_corrections(structure: str, x: Float64[np.ndarray, "N Dx"]) -> Corrections | None:
    """No correction of the transition, or for the mean-field chain the guessed states themselves."""
    if structure == "prior":
        return None
    gain = MARKOV_GAIN if structure == "markov" else 0.0
    raw_variance = np.full(x.shape, inverse_softplus(PROCESS_VARIANCE))
    return Corrections(gain * np.stack([np.eye(x.shape[1])] * len(x)), (1.0 - gain) * x, raw_variance)


def _fit_linear(x_hat: Float64[np.ndarray, "R D"], y: Float64[np.ndarray, "R Dy"]) -> Linear:
    # Ridge regression with an offset.
    centre, target = x_hat.mean(axis=0), y.mean(axis=0)
    centred = x_hat - centre
    normal = centred.T @ centred + RIDGE * len(x_hat) * np.eye(x_hat.shape[1])
    coefficients = np.linalg.solve(normal, centred.T @ (y - target))
    return Linear(coefficients, target - centre @ coefficients)


def compute_observer_states(
    u_bars: Sequence[Float64[np.ndarray, "_ Du"]], ys: Sequence[Float64[np.ndarray, "_ Dy"]], states: int
) -> list[Float64[np.ndarray, "_ Dx"]]:
    """Compute the states of every record from its z-scored inputs and outputs, which have no gaps.

    The ARX model y_t = Σ_k A_k y_{t−k} + B_k ū_{t−k+1} has as many lags as the states need. Its first states are the
    outputs; the others, x^k_t = A_k y_{t−1} + B_k ū_t + x^{k+1}_{t−1}, are known from the past, and are scaled to unit
    variance (docs/theory/derivation.md, Eq. 72).
    """
    lags = -(-states // ys[0].shape[1])
    A, B = _fit_arx(u_bars, ys, lags)
    blocks = [_run_observer(u_bar, y, A, B)[:, :states] for u_bar, y in zip(u_bars, ys, strict=True)]
    scale = np.concatenate(blocks).std(axis=0)
    scale[: ys[0].shape[1]] = 1.0
    return [block / np.where(scale > 0.0, scale, 1.0) for block in blocks]


def _fit_arx(
    u_bars: Sequence[Float64[np.ndarray, "_ Du"]], ys: Sequence[Float64[np.ndarray, "_ Dy"]], lags: int
) -> tuple[Float64[np.ndarray, "L Dy Dy"], Float64[np.ndarray, "L Du Dy"]]:
    # Least squares; values before a record are at their mean, zero.
    inputs, outputs = u_bars[0].shape[1], ys[0].shape[1]
    past_y = [np.hstack([_delay(y, age) for age in range(1, lags + 1)]) for y in ys]
    past_u = [np.hstack([_delay(u_bar, age) for age in range(lags)]) for u_bar in u_bars]
    design = np.hstack([np.concatenate(past_y), np.concatenate(past_u)])
    solution = np.linalg.lstsq(design, np.concatenate(ys))[0]
    own = lags * outputs
    return solution[:own].reshape(lags, outputs, outputs), solution[own:].reshape(lags, inputs, outputs)


def _run_observer(
    u_bar: Float64[np.ndarray, "N Du"],
    y: Float64[np.ndarray, "N Dy"],
    A: Float64[np.ndarray, "L Dy Dy"],
    B: Float64[np.ndarray, "L Du Dy"],
) -> Float64[np.ndarray, "N Dx"]:
    x, blocks = np.zeros_like(y), []
    for own, drive in zip(A[:0:-1], B[:0:-1], strict=True):  # from the last lag to the second
        x = _delay(y, 1) @ own + u_bar @ drive + _delay(x, 1)
        blocks.append(x)
    return np.hstack([y, *reversed(blocks)])


def _delay(values: Float64[np.ndarray, "N D"], age: int) -> Float64[np.ndarray, "N D"]:
    return np.pad(values, ((age, 0), (0, 0)))[: len(values)]
