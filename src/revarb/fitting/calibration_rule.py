"""Rules that choose noises and band widths from the errors on held-out blocks."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.data.scaling import half_width, log_density
from revarb.fitting.held_out import log_errors

SCALES = (0.0, 0.1, 0.3, 1.0)  # factors on the latent noise that are tried; the last one is the noise of the fit
MIN_STANDARD_ERRORS = 2.0  # a smaller scale must lower the held-out error by this many standard errors
NOISES, MAX_NOISE = 200, 10.0  # number of output noise variances that are tried, and the largest (that of y is 1)
MAX_VARIANCE = 100.0  # of a run that has not diverged (that of y is 1)
LEVEL = 0.95  # of the band whose width is calibrated
HEAVY_TAILS = (2.5, 3.0, 4.0, 6.0, 10.0, 30.0)  # degrees of freedom that are tried for a model with Student-t noise
NOISE_STRIDE = 4  # of the noise variances, where tails are chosen too
TAILS = tuple(float(degrees) for degrees in np.geomspace(2.05, 60.0, 80))  # degrees of freedom of a band
WIDTHS = np.geomspace(0.2, 5.0, 100)  # factors on the width of a band with heavy tails
MIN_CONFORMAL = 19  # of which the largest bounds the next one with probability LEVEL


class RunErrors(NamedTuple):
    """Errors of a simulated held-out block at measured samples, z-scored, and their variance without output noise."""

    error: Float64[np.ndarray, " V"]
    variance: Float64[np.ndarray, " V"]
    steps: Float64[np.ndarray, " V"]  # since the start of the run

    @property
    def diverged(self) -> bool:
        """Whether its mean or its variance diverged."""
        return not np.isfinite(self.error).all() or not np.max(self.variance) <= MAX_VARIANCE

    @property
    def rms(self) -> float:
        """Root mean square error."""
        return float(np.sqrt(np.mean(self.error**2)))


def select_measured(
    y: Float64[np.ndarray, "T Dy"], error: Float64[np.ndarray, "T Dy"], variance: Float64[np.ndarray, "T Dy"],
    begin: int = 0,
) -> RunErrors:  # fmt: skip
    """The errors where something was measured, of a block that begins so many steps after the start of its run."""
    measured = ~np.isnan(y)
    steps = np.broadcast_to(begin + 1.0 + np.arange(len(y))[:, None], y.shape)
    return RunErrors(error[measured], variance[measured], steps[measured])


def choose_latent_scale(errors: Float64[np.ndarray, "C B"]) -> float:
    """Choose the scale of the latent noise from the error of every block at each of `SCALES`.

    The scale is 1 unless a smaller one is significantly better.
    """
    logs = log_errors(errors)
    gains = logs[-1] - logs
    significant = gains.mean(1) > MIN_STANDARD_ERRORS * gains.std(1, ddof=1) / np.sqrt(gains.shape[1])
    return SCALES[int(np.argmax(np.where(significant, gains.mean(1), 0.0)))] if significant.any() else SCALES[-1]


class Noises(NamedTuple):
    """Noises of a calibrated model; degrees of freedom of its errors, None for Gaussian ones."""

    latent_scale: float
    output: float
    degrees: float | None = None


def choose_output_noise(runs: Sequence[RunErrors], least: float) -> float:
    """Choose the output noise variance with the largest likelihood of the median block; a bad one has no effect."""
    noises = _list_noises(least)
    losses = [measure_loss(runs, Noises(1.0, noise)) for noise in noises]
    return float(noises[int(np.argmin(losses))])


def _list_noises(least: float) -> Float64[np.ndarray, " C"]:
    return np.geomspace(least, max(MAX_NOISE, 10.0 * least), NOISES)


def measure_loss(runs: Sequence[RunErrors], noises: Noises) -> float:
    """Negative log density of the errors of the median block."""
    return float(np.median([_negative_log_density(run, noises) for run in runs]))


def _negative_log_density(run: RunErrors, noises: Noises) -> float:
    return -float(np.mean(log_density(run.error, np.sqrt(run.variance + noises.output), noises.degrees)))


def find_median_width(runs: Sequence[RunErrors], noises: Noises) -> float:
    """Find the factor by which the 95 % band of the median block must be wider; at least 1.

    A dozen blocks are too few to make a band narrower.
    """
    return max(1.0, float(np.median([find_width_factor(run, noises) for run in runs if len(run.error)])))


RunsByScale = Mapping[float, Sequence[RunErrors]]


def choose_noises_by_error(runs: RunsByScale, least: float) -> Noises:
    """Choose the latent scale by the error, then the output noise by the likelihood of the median block."""
    scale = choose_latent_scale(np.array([[run.rms for run in runs[scale]] for scale in SCALES]))
    return Noises(scale, choose_output_noise(runs[scale], least))


def choose_noises_by_likelihood(runs: RunsByScale, least: float) -> Noises:
    """Choose the latent scale and the output noise together, by the likelihood of the median block.

    Where the latent noise hardly changes the mean, as in a nearly linear model, the error says nothing about it.
    """
    tried = [Noises(scale, choose_output_noise(runs[scale], least)) for scale in runs]
    return min(tried, key=lambda noises: measure_loss(runs[noises.latent_scale], noises))


def choose_noises_and_tails(runs: RunsByScale, least: float) -> Noises:
    """Choose both noises and the degrees of freedom by the likelihood of all errors together.

    Outliers are a part of what is to be predicted here, and in the median block there may be none.
    """
    tried = [
        Noises(scale, float(noise), degrees)
        for scale in runs
        for noise in _list_noises(least)[::NOISE_STRIDE]
        for degrees in HEAVY_TAILS
    ]
    joined = {scale: join_runs(runs[scale]) for scale in runs}
    return min(tried, key=lambda noises: _negative_log_density(joined[noises.latent_scale], noises))


def find_likely_width(runs: Sequence[RunErrors], noises: Noises) -> float:
    """Find the factor on the width of the band with the largest likelihood of all errors together."""
    joined = join_runs(runs)
    std = np.sqrt(joined.variance + noises.output)
    losses = [-np.mean(log_density(joined.error, factor * std, noises.degrees)) for factor in WIDTHS]
    return float(WIDTHS[int(np.argmin(losses))])


def join_runs(runs: Sequence[RunErrors]) -> RunErrors:
    """The errors of all blocks as one run."""
    return RunErrors(*(np.concatenate(parts) for parts in zip(*runs, strict=True)))


def find_pooled_width(runs: Sequence[RunErrors], noises: Noises) -> float:
    """Find the factor on the 95 % band with which it holds 95 % of all held-out errors; it can be below 1."""
    return find_width_factor(join_runs(runs), noises)


def find_pooled_band(runs: Sequence[RunErrors], noises: Noises) -> tuple[Noises, float]:
    """Find tails and width with which the 50 % and the 95 % band hold their share of the held-out errors."""
    joined = join_runs(runs)
    sizes = np.sort(np.abs(joined.error) / np.sqrt(joined.variance + noises.output))
    middle, bound = float(np.median(sizes)), float(sizes[find_rank(len(sizes)) - 1])
    noises = noises._replace(degrees=_find_tails(middle, bound))
    return noises, bound / half_width(LEVEL, noises.degrees)


def _find_tails(middle: float, bound: float) -> float | None:
    # The degrees of freedom with which both bands can hold their share; None, a Gaussian, where its tails suffice.
    if bound * half_width(0.5) <= middle * half_width(LEVEL):
        return None
    # In units of the bound, as the median can be zero.
    shares = np.array([half_width(0.5, degrees) / half_width(LEVEL, degrees) for degrees in TAILS])
    return TAILS[int(np.argmin(np.abs(shares - middle / bound)))]


FindWidth = Callable[[Sequence[RunErrors], Noises], float]
FindBand = Callable[[Sequence[RunErrors], Noises], tuple[Noises, float]]


def keep_tails(find_width: FindWidth) -> FindBand:
    """The band of a rule that has chosen its tails with the noises."""
    return lambda runs, noises: (noises, find_width(runs, noises))


class CalibrationRule(NamedTuple):
    """How noises and bands are found from held-out runs.

    The noises from the runs with each latent scale; then, with the chosen one, the band of long runs and its tails,
    and the width for a number of steps after a measured start.
    """

    choose_noises: Callable[[RunsByScale, float], Noises]
    find_band: FindBand
    find_width: FindWidth


def find_rank(count: int) -> int:
    """The rank of the error, of so many, that bounds the next one with probability 0.95; or the largest."""
    return min(int(np.ceil(LEVEL * (count + 1))), count)


def find_width_factor(run: RunErrors, noises: Noises) -> float:
    """Find the factor on the 95 % band of a block that makes it conformal; it can be below 1.

    Of n exchangeable errors in units of their standard deviation, the one of rank ⌈0.95 (n + 1)⌉ bounds the next one
    with probability 0.95; of fewer than `MIN_CONFORMAL` the largest does so with probability n / (n + 1).
    """
    ratios = np.sort(np.abs(run.error) / np.sqrt(run.variance + noises.output))
    count = len(ratios)
    rank = find_rank(count)
    return float(ratios[rank - 1] / half_width(min(LEVEL, rank / (count + 1)), noises.degrees))


def find_worst_quantile(errors: Sequence[Float64[np.ndarray, " _"]]) -> float:
    """Find the half width of a constant band that holds 95 % of the errors of the worst block; NaN without errors.

    Errors of one run are alike, so a new run is like a new block, not like a new error: of n blocks the worst one
    bounds the next with probability n / (n + 1). Blocks with few errors count together.
    """
    joined = np.concatenate(errors)
    if not len(joined):
        return float("nan")
    long = [error for error in errors if len(error) >= MIN_CONFORMAL]
    return max(float(np.quantile(np.abs(error), LEVEL)) for error in (joined, *long))


def select_steps(run: RunErrors, begin: int, end: int) -> RunErrors:
    """Select the steps begin + 1 … end of a run."""
    inside = (run.steps > begin) & (run.steps <= end)
    return RunErrors(*(part[inside] for part in run))


BY_MEDIAN = CalibrationRule(choose_noises_by_error, keep_tails(find_median_width), find_median_width)
"""The rule of `RGP.fit`: a block whose run is bad has no effect."""

POOLED = CalibrationRule(choose_noises_by_likelihood, find_pooled_band, find_pooled_width)
"""The rule of `revarb.fit`: bands that hold half, and 95 %, of everything that was held out."""

HEAVY = CalibrationRule(choose_noises_and_tails, keep_tails(find_likely_width), find_likely_width)
"""The rule of models with Student-t noise: the likelihood of everything that was held out."""
