"""Outliers put into the outputs of a training record: spikes, and stretches in which the sensor is stuck."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from revarb.data.series import Series
from revarb.errors import InputError

CLEAN, SPIKES, STUCK = "clean", "spikes", "stuck"
SIZES = (3.0, 6.0)  # of spikes, in standard deviations of the output
STRETCH = 5  # samples of a stuck stretch
MOST = 0.5  # the largest share of outliers: stuck stretches need samples between them


class Spoiled(NamedTuple):
    """A record with outliers, and where they are."""

    record: Series
    marks: Bool[np.ndarray, "N Dy"]


class Condition(NamedTuple):
    """What is done to a training record: the kind of outliers, and their share of the samples."""

    kind: str
    share: float

    def __str__(self) -> str:
        return CLEAN if self.kind == CLEAN else f"{name_share(self.share)} {self.kind}"


def name_share(share: float) -> str:
    """A share as a label."""
    return f"{100.0 * share:g} %"


def spoil(record: Series, condition: Condition, seed: int) -> Spoiled:
    """The record with outliers in every output, drawn with `seed`; a larger share adds to those of a smaller one.

    Of spikes every sample is moved by 3 to 6 standard deviations of its output, up or down. A stuck stretch repeats the
    sample before it five times.
    """
    y, marks = record.y.copy(), np.zeros(record.y.shape, dtype=bool)
    if condition.kind == CLEAN:
        return Spoiled(record, marks)
    if not 0.0 <= condition.share <= MOST:
        raise InputError(f"the share of outliers must be between 0 and {MOST}, received {condition.share}")
    draw = _DRAWERS[condition.kind]
    for column in range(y.shape[1]):
        # Not the seed alone: a drawn record has its inputs from that one, and outliers must not depend on them.
        rng = np.random.default_rng([seed, list(_DRAWERS).index(condition.kind), column])
        y[:, column], marks[:, column] = draw(record.y[:, column], condition.share, rng)
    return Spoiled(replace(record, y=y), marks)


def _add_spikes(y: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    # A spike is drawn for every sample, whatever the share.
    order = rng.permutation(len(y))
    spikes = rng.choice([-1.0, 1.0], len(y)) * rng.uniform(*SIZES, len(y)) * y.std()
    marks = np.zeros(len(y), dtype=bool)
    marks[order[: round(share * len(y))]] = True
    return np.where(marks, y + spikes, y), marks


def _stick(y: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    stuck, marks = y.copy(), np.zeros(len(y), dtype=bool)
    left = round(share * len(y) / STRETCH)
    for begin in rng.permutation(np.arange(1, len(y) - STRETCH + 1)):
        # With a good sample before it and after it: two stretches never become one of ten.
        if left and not marks[begin - 1 : begin + STRETCH + 1].any():
            stuck[begin : begin + STRETCH], marks[begin : begin + STRETCH] = y[begin - 1], True
            left -= 1
    return stuck, marks


_Draw = Callable[[np.ndarray, float, np.random.Generator], tuple[Float64[np.ndarray, " N"], Bool[np.ndarray, " N"]]]
_DRAWERS: dict[str, _Draw] = {SPIKES: _add_spikes, STUCK: _stick}
KINDS = tuple(_DRAWERS)
