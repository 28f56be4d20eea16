"""Correlations by lag of two signals with gaps, and how far they scatter where there is no relation."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int
from scipy.special import ndtri

LEAST_PAIRS = 20  # pairs of measured values that a correlation takes
_NO_VARIATION = 1e-9  # of the variance over all rows: a signal that is constant where the pairs are
_ROUNDING = 1e-12  # of the largest value: the spread of a constant signal


class Correlation(NamedTuple):
    """Correlation by lag; NaN where there are too few pairs or a signal does not vary. `pairs` are their numbers."""

    values: Float64[np.ndarray, " K"]
    pairs: Int[np.ndarray, " K"]


def correlate(a: Float64[np.ndarray, " N"], b: Float64[np.ndarray, " N"], lags: Int[np.ndarray, " K"]) -> Correlation:
    """Correlate a_t with b_{t − lag} over the pairs in which both are measured; NaN is not measured.

    A correlation is normalised by the squares of its own pairs. So it is within −1 … 1, and its variance is one over
    the number of pairs where `a` is white and independent of `b`, also where gaps leave out the larger values of one.
    """
    length = 2 * len(a)  # no lag wraps around
    known_a, known_b = np.isfinite(a), np.isfinite(b)
    centred_a, centred_b = _standardise(a), _standardise(b)

    def sum_products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        spectrum = np.fft.rfft(x, length) * np.conj(np.fft.rfft(y, length))
        return np.fft.irfft(spectrum, length)[lags]  # a negative lag counts from the end

    pairs = np.rint(sum_products(known_a.astype(float), known_b.astype(float))).astype(int)
    power_a = sum_products(centred_a**2, known_b.astype(float))
    power_b = sum_products(known_a.astype(float), centred_b**2)
    valid = (pairs >= LEAST_PAIRS) & (np.minimum(power_a, power_b) > _NO_VARIATION * pairs)
    power = np.where(valid, power_a * power_b, np.nan)
    return Correlation(np.clip(sum_products(centred_a, centred_b) / np.sqrt(power), -1.0, 1.0), pairs)


def joint_factor(level: float, tests: int) -> float:
    """Standard deviations within which all of `tests` normal values lie with probability `level` (Šidák's rule).

    Exact for independent values; dependent ones are within it more often.
    """
    return float(ndtri(0.5 + 0.5 * level ** (1.0 / tests)))


def inflate_variance(e: Float64[np.ndarray, " N"], u: Float64[np.ndarray, " N"]) -> float:
    """By what factor the variance of a cross-correlation exceeds that of a white `e` (Bartlett's formula).

    The sum of the products of both autocorrelations, tapered so that the noise of distant lags does not add up.
    """
    farthest = max(1, int(np.isfinite(e).sum()) // 4)
    lags = np.arange(1, farthest + 1)
    both = correlate(e, e, lags).values * correlate(u, u, lags).values
    return max(1.0, float(1.0 + 2.0 * np.nansum((1.0 - lags / (farthest + 1.0)) * both)))


def _standardise(values: np.ndarray) -> np.ndarray:
    # Zero where nothing is measured. First divided by the largest value: outputs come in all units.
    measured = values[np.isfinite(values)]
    largest = np.abs(measured).max(initial=0.0) or 1.0
    centred = values / largest - (measured / largest).mean() if len(measured) else values
    spread = float(np.nanstd(centred)) if len(measured) else 0.0
    return np.nan_to_num(centred / spread, nan=0.0) if spread > _ROUNDING else np.zeros_like(values)
