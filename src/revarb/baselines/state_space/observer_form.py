"""Start values of the states: those of an ARX model in observer canonical form."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64


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
