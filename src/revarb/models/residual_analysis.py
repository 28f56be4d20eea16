"""Residual analysis: correlations of the errors one step ahead, over the measured values of a record."""

import numpy as np
from jaxtyping import Bool, Float64, Int

from revarb.data.safe_statistics import safe_std
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.errors import InputError, check_integer
from revarb.models.correlation import LEAST_PAIRS, correlate, inflate_variance
from revarb.models.residuals import Residuals, find_peak, joint_limit

USUAL_LAGS = 25
BEYOND_REACH = 10  # lags older than the oldest input of a model that are tested, too


def analyse_residuals(record: Series, path: Trajectory, order: Order, max_lag: int | None = None) -> Residuals:
    """The residuals of `path`, predictions one step ahead along a record by a model of this order.

    `max_lag` is 25 by default, or more for a model that looks further back, and at most a quarter of the rows.
    """
    errors = _find_errors(record.y, path)
    _check_count(errors, path.skip)
    max_lag = _choose_max_lag(max_lag, len(record) - path.skip, order)
    explained = np.array([_share_explained(*columns) for columns in zip(errors.T, record.y.T, strict=True)])
    tested = np.where(explained == 1.0, np.nan, errors)  # errors that are rounding need no explanation
    own, own_std = _autocorrelate(tested, max_lag)
    white = _find_white(own, own_std, joint_limit(max_lag, record.y.shape[1], record.u.shape[1]))
    crossed, crossed_std = _cross_correlate(tested, record.u, white, max_lag)
    return Residuals(
        errors, own, own_std, crossed, crossed_std, explained, order, path.skip, record.input_names, path.output_names
    )


def _find_errors(y: Float64[np.ndarray, "T Dy"], path: Trajectory) -> Float64[np.ndarray, "T Dy"]:
    before = np.concatenate([np.full((1, y.shape[1]), np.nan), y[:-1]])
    one_step = np.isfinite(before) & (np.arange(len(y)) >= path.skip)[:, None]
    with np.errstate(over="ignore"):
        errors = y - path.mean
    return np.where(one_step & np.isfinite(errors), errors, np.nan)


def _check_count(errors: Float64[np.ndarray, "T Dy"], skip: int) -> None:
    most = int(np.isfinite(errors).sum(axis=0).max())
    if most < LEAST_PAIRS:
        raise InputError(
            f"the record has {most} output value(s) to analyse, not counting its first {skip} rows and values right "
            f"after a gap; residual analysis takes at least {LEAST_PAIRS}: pass a longer record"
        )


def _choose_max_lag(max_lag: int | None, rows: int, order: Order) -> int:
    if max_lag is None:
        return min(max(USUAL_LAGS, order.reach + BEYOND_REACH), rows // 4)
    return check_integer("max_lag (at most half of the rows that count)", max_lag, least=1, most=rows // 2)


def _share_explained(errors: Float64[np.ndarray, " T"], y: Float64[np.ndarray, " T"]) -> float:
    # Of one output; NaN where it has no errors or is constant.
    used = np.isfinite(errors)
    spread = float(safe_std(y[used, None])[0]) if used.any() else 0.0
    with np.errstate(over="ignore"):
        return 1.0 - float(np.mean((errors[used] / spread) ** 2)) if spread > 0.0 else float("nan")


def _autocorrelate(errors: Float64[np.ndarray, "T Dy"], max_lag: int) -> tuple[np.ndarray, np.ndarray]:
    several = [correlate(column, column, np.arange(max_lag + 1)) for column in errors.T]
    std = np.stack([_std(each.pairs) for each in several], axis=1)
    std[0] = np.nan  # the correlation of a value with itself says nothing
    return np.stack([each.values for each in several], axis=1), std


def _find_white(
    values: Float64[np.ndarray, "K Dy"], std: Float64[np.ndarray, "K Dy"], limit: float
) -> Bool[np.ndarray, " Dy"]:
    lags = np.arange(len(values))
    peaks = [find_peak(lags, values[:, row], limit * std[:, row]) for row in range(values.shape[1])]
    return np.array([peak is None or not peak.significant for peak in peaks])


def _cross_correlate(
    errors: Float64[np.ndarray, "T Dy"], u: Float64[np.ndarray, "T Du"], white: Bool[np.ndarray, " Dy"], max_lag: int
) -> tuple[np.ndarray, np.ndarray]:
    # As in MATLAB's resid the band follows from the autocorrelations of both signals. Prewhitening would need runs of
    # consecutive values, which a record with gaps may not have. White residuals need neither: then the variance is one
    # over the number of pairs, whatever the input is, and an estimate would only add its own noise.
    lags = np.arange(-max_lag, max_lag + 1)
    values, std = (np.empty((len(lags), errors.shape[1], u.shape[1])) for _ in range(2))
    for row, column in np.ndindex(values.shape[1:]):
        e, cause = errors[:, row], u[:, column]
        cross = correlate(e, cause, lags)
        values[:, row, column] = cross.values
        std[:, row, column] = _std(cross.pairs) * np.sqrt(1.0 if white[row] else inflate_variance(e, cause))
    return values, std


def _std(pairs: Int[np.ndarray, " K"]) -> Float64[np.ndarray, " K"]:
    return 1.0 / np.sqrt(np.maximum(pairs, 1))
