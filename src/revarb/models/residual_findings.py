"""Correlations of residuals by lag, the peaks among them, and what they mean, in sentences."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int
from scipy.special import ndtri

from revarb.data.windows import Order

LEAST_PAIRS = 20  # pairs of measured values that a correlation takes
NO_VARIATION = 1e-9  # of the variance over all rows: a signal that is constant where the pairs are
ROUNDING = 1e-12  # of the largest value: the spread of a constant signal
MOST_NAMES = 3  # columns that a sentence lists
WEAK = 0.1  # size of a correlation that is not worth a change
LEAVE_IT = "too weak to be worth a change"
OWN = "a configuration of your own with "  # for a model that was chosen by `revarb.fit`, which has no such options


class Correlation(NamedTuple):
    """Correlation by lag, NaN where there are too few pairs or a signal does not vary, and its standard deviation.

    The standard deviation is that of signals which are white and independent.
    """

    values: Float64[np.ndarray, " K"]
    std: Float64[np.ndarray, " K"]


class Peak(NamedTuple):
    """The correlation that stands out most: its lag, its value, and that value over the joint limit."""

    lag: int
    value: float
    ratio: float

    def __str__(self) -> str:
        share = f", {100.0 * self.value**2:.1g} % of their variance" if self.weak else ""
        return f"lag {self.lag}: {self.value:.2f}{share}"

    @property
    def significant(self) -> bool:
        """Whether it is beyond the joint limit."""
        return self.ratio > 1.0

    @property
    def weak(self) -> bool:
        """Whether it explains less than one per cent of the errors' variance; long records have many such peaks."""
        return abs(self.value) < WEAK


def correlate(a: Float64[np.ndarray, " N"], b: Float64[np.ndarray, " N"], lags: Int[np.ndarray, " K"]) -> Correlation:
    """Correlate a_t with b_{t − lag} over the pairs in which both are measured; NaN is not measured.

    A correlation is normalised by the squares of its own pairs. So it is within −1 … 1, and its variance is one over
    the number of pairs where `a` is white and independent of `b`, also where gaps leave out the larger values of one.
    """
    length = 2 * len(a)  # no lag wraps around
    known_a, known_b = (np.isfinite(values).astype(np.float64) for values in (a, b))
    centred_a, centred_b = _standardise(a), _standardise(b)

    def sum_products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        spectrum = np.fft.rfft(x, length) * np.conj(np.fft.rfft(y, length))
        return np.fft.irfft(spectrum, length)[lags]  # a negative lag counts from the end

    pairs = np.rint(sum_products(known_a, known_b)).astype(int)
    power_a, power_b = sum_products(centred_a**2, known_b), sum_products(known_a, centred_b**2)
    valid = (pairs >= LEAST_PAIRS) & (np.minimum(power_a, power_b) > NO_VARIATION * pairs)
    power = np.where(valid, power_a * power_b, np.nan)
    values = np.clip(sum_products(centred_a, centred_b) / np.sqrt(power), -1.0, 1.0)
    return Correlation(values, 1.0 / np.sqrt(np.maximum(pairs, 1)))


def find_peak(
    lags: Int[np.ndarray, " K"], values: Float64[np.ndarray, " K"], limits: Float64[np.ndarray, " K"]
) -> Peak | None:
    """The correlation that is largest in units of its joint limit; None where there is none."""
    ratios = np.abs(values) / limits
    if not np.isfinite(ratios).any():
        return None
    place = int(np.nanargmax(ratios))
    return Peak(int(lags[place]), float(values[place]), float(ratios[place]))


def joint_factor(level: float, tests: int) -> float:
    """Standard deviations within which all of `tests` normal values lie with probability `level` (Šidák's rule).

    Exact for independent values; dependent ones are within it more often.
    """
    return float(ndtri(0.5 + 0.5 * level ** (1.0 / tests)))


LEVEL = 0.95  # of the bands, and of the joint limit
ONE_LAG = joint_factor(LEVEL, 1)


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
    if not len(measured):
        return np.zeros_like(values)
    largest = np.abs(measured).max() or 1.0
    centred = values / largest - (measured / largest).mean()
    spread = float(np.nanstd(centred))
    return np.nan_to_num(centred / spread, nan=0.0) if spread > ROUNDING else np.zeros_like(values)


def join_findings(findings: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """One sentence for every output with a finding, and one for the outputs in which nothing is left."""
    left = tuple(
        f"the residuals{f' of {name!r}' if len(findings) > 1 else ''} {'; they '.join(found)}"
        for name, found in findings.items()
        if found
    )
    clean = [name for name, found in findings.items() if not found]
    if not clean:
        return left
    whose = ", ".join(map(repr, clean)) if len(clean) <= MOST_NAMES else f"the other {len(clean)} outputs"
    return (*left, f"nothing is left in the residuals{f' of {whose}' if left else ''}")


def list_findings(
    number: int, own: Peak | None, crossed: Mapping[str, Peak], offset: float, order: Order, chosen: bool
) -> list[str]:
    """What is left in the residuals of one output; each begins with a verb: "the residuals … are not white".

    `number` is that of the residuals, `offset` their mean over its joint limit, `crossed` has the names of the inputs.
    A model that was `chosen` by `revarb.fit` is not advised to be chosen.
    """
    if number < LEAST_PAIRS:
        return [f"are too few to judge ({number} values; {LEAST_PAIRS} are needed)"]
    significant = {name: peak for name, peak in crossed.items() if peak.significant}
    followed = {name: peak for name, peak in significant.items() if peak.lag >= 0}
    answered = {name: peak for name, peak in significant.items() if peak.lag < 0}
    found = [_describe_followed(followed, order, chosen)] if followed else []
    coloured = own is not None and own.significant
    if own is not None and coloured:
        found.append(_describe_colour(own, order, bool(followed), chosen))
    if answered:
        found.append(
            f"come before {_list_inputs(answered)}: that is feedback (a controller), no fault of the model; judge it "
            "on a record without feedback"
        )
    if abs(offset) > 1.0 and not coloured:  # the mean of coloured errors varies more than its limit allows for
        where = "above" if offset > 0.0 else "below"
        found.append(
            f"have an offset: the output is {where} its predictions on average; check for drift, or train on records "
            "like this one"
        )
    return found


def _describe_followed(followed: Mapping[str, Peak], order: Order, chosen: bool) -> str:
    named = {name: peak for name, peak in followed.items() if not peak.weak} or followed
    largest = max(named.values(), key=lambda peak: peak.ratio)
    return f"still follow {_list_inputs(named)}: {_advise(largest, order, chosen)}"


def _advise(largest: Peak, order: Order, chosen: bool) -> str:
    lag, what = largest.lag, OWN if chosen else ""
    if lag < order.input_delay:
        return f"try {what}a smaller input delay (input_delay={lag})"
    if lag > order.reach:
        return f"try {what}more input lags (input_lags={lag - order.input_delay + 1} or more)"
    if largest.weak:
        return LEAVE_IT
    other = "" if chosen else "revarb.fit, a nonlinear model, or "
    longer = ", or longer ones" if chosen else ""
    return f"the model has this lag and does not use it fully; try {other}training records like this one{longer}"


def _describe_colour(own: Peak, order: Order, explained: bool, chosen: bool) -> str:
    finding = f"are not white ({own})"
    if own.weak:
        return f"{finding}: {LEAVE_IT}"
    if explained:
        return f"{finding}, which may come from the same cause"
    if own.lag > order.lags:
        more = f"try {OWN if chosen else ''}more lags (lags={own.lag} or more)"
    else:
        more = "train on a longer record" if chosen else "try more lags or revarb.fit"
    return f"{finding}: an error predicts later ones; {more}, or add an input that is missing"


def _list_inputs(peaks: Mapping[str, Peak]) -> str:
    ordered = sorted(peaks.items(), key=lambda item: -item[1].ratio)
    shown = ", ".join(f"{name!r} ({peak})" for name, peak in ordered[:MOST_NAMES])
    rest = len(ordered) - MOST_NAMES
    return f"input{'s' if len(ordered) > 1 else ''} {shown}{f' and {rest} more' if rest > 0 else ''}"
