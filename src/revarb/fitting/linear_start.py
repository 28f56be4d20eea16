"""Start values of the linear parts: the first layer at an ARX model that simulates stably, the others copy."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import RevarbError
from revarb.fitting.linear_model import LinearFit, fit_linear_orders, limit_order, simulate_linear
from revarb.fitting.quarters import rms_error
from revarb.gp.layer import Linear

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
    chosen = fitted.preprocessor.order
    own = chosen.lags * states
    coefficients[:own] = fitted.model.coefficients[:own]
    start = order.lags * states
    coefficients[start : start + chosen.input_lags * inputs] = fitted.model.coefficients[own:]
    return Linear(coefficients, np.asarray(fitted.model.offset))


def _fit_stable(order: Order, u_blocks: Sequence[np.ndarray], x_blocks: Sequence[np.ndarray]) -> LinearFit | None:
    # The order was chosen by simulation, but a fit to other rows can still be unstable: then with half the lags,
    # as where no model can be fitted.
    inputs, states = u_blocks[0].shape[1], x_blocks[0].shape[1]
    unscaled = Standardiser(np.zeros(inputs), np.ones(inputs), np.zeros(states), np.ones(states))
    records = [Series(u, x) for u, x in zip(u_blocks, x_blocks, strict=True)]
    limited = limit_order(order, records)
    while True:
        prep = Preprocessor(unscaled, limited, records[0].input_names, records[0].output_names, 1.0)
        try:
            fitted = fit_linear_orders(prep, records)
        except RevarbError:  # no row without a gap, or every simulation diverged
            fitted = None
        if fitted is not None and _measure_run(fitted, records) <= MAX_ERROR:
            return fitted
        if limited.lags == 1:
            return None
        limited = replace(limited, lags=limited.lags // 2, input_lags=(limited.input_lags + 1) // 2)


def _measure_run(fitted: LinearFit, records: Sequence[Series]) -> float:
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
