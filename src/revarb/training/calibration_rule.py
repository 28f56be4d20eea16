"""From errors on held-out stretches to noises and band widths."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.data.trajectory import half_width

SCALES = (0.0, 0.1, 0.3, 1.0)  # of the latent noise


MIN_STANDARD_ERRORS = (
    2.0  # standard errors by which less latent noise must lower the error of held-out stretches, to be taken
)


NOISES, MAX_NOISE = 200, 10.0  # how many variances of the outputs' noise are tried, up to ten times that of y


LEVEL = 0.95


class HeldOutRun(NamedTuple):
    """A simulated stretch, z-scored: its errors where it was measured, their variance without the outputs' noise."""

    error: Float64[np.ndarray, " V"]
    variance: Float64[np.ndarray, " V"]
    steps: Float64[np.ndarray, " V"]  # since the start of the run

    @property
    def rms(self) -> float:
        """Root mean square error."""
        return float(np.sqrt(np.mean(self.error**2)))


def choose_latent_scale(errors: Float64[np.ndarray, "C S"]) -> float:
    """The scale of the latent noise, from the stretches' errors under each of `SCALES`: 1 unless less is better."""
    logs = np.log(np.maximum(errors, 1e-12))
    gains = logs[-1] - logs
    sure = gains.mean(1) > MIN_STANDARD_ERRORS * gains.std(1, ddof=1) / np.sqrt(gains.shape[1])
    return SCALES[int(np.argmax(np.where(sure, gains.mean(1), 0.0)))] if sure.any() else SCALES[-1]


def choose_output_noise(held: Sequence[HeldOutRun], least: float) -> float:
    """The variance under which the median stretch is likeliest: one stretch unlike all others decides nothing."""
    noises = np.geomspace(least, max(MAX_NOISE, 10.0 * least), NOISES)
    losses = [[_loss(each, noise) for each in held] for noise in noises]
    return float(noises[int(np.argmin(np.median(losses, axis=1)))])


def _loss(held: HeldOutRun, noise: float) -> float:
    variance = held.variance + noise
    return float(np.mean(0.5 * np.log(2.0 * np.pi * variance) + 0.5 * held.error**2 / variance))


def median_width(held: Sequence[HeldOutRun], noise: float) -> float:
    """By how much the 95 % band of the median stretch must be wider. Never narrower: a dozen stretches are few."""
    return max(1.0, float(np.median([width_factor(each, noise) for each in held if len(each.error)])))


def width_factor(held: HeldOutRun, noise: float) -> float:
    """By how much a stretch's 95 % band must be wider, or may be narrower, to be conformal.

    Of n errors in units of their standard deviation, the one of rank ⌈0.95 (n + 1)⌉ bounds the next one with that
    probability, if all are exchangeable; of fewer than 19 the largest does so with probability n / (n + 1).
    """
    ratios = np.sort(np.abs(held.error) / np.sqrt(held.variance + noise))
    count = len(ratios)
    rank = min(int(np.ceil(LEVEL * (count + 1))), count)
    return float(ratios[rank - 1] / half_width(min(LEVEL, rank / (count + 1))))


def select_steps(held: HeldOutRun, begin: int, end: int) -> HeldOutRun:
    # Its steps begin + 1 … end.
    inside = (held.steps > begin) & (held.steps <= end)
    return HeldOutRun(*(part[inside] for part in held))
