"""Outliers among the training samples of a model with Student-t noise."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from revarb.data.training_records import TO_STD
from revarb.data.windows import Order, split_rows
from revarb.errors import InputError, check_number
from revarb.variational.noise import StudentNoise, expected_squares

SMALLEST = 1e-6  # expected squared error of a sample that was measured; that of a missing one is zero but for rounding


class Outlier(NamedTuple):
    """A training sample that does not fit its neighbours and the model.

    Attributes
    ----------
    record, row : int
        Where it is: the number of the record (of the block, where long records were cut) and the row in it, from 0.
    output : str
        Name of the output.
    weight : float
        Its weight in the fit, where an ordinary sample has one near 1.
    probability : float
        Share of ordinary samples that would be as far from the model as this one.
    """

    record: int
    row: int
    output: str
    weight: float
    probability: float


def find_outliers(
    noise: StudentNoise | None, order: Order, lengths: Sequence[int], output_names: tuple[str, ...], level: float
) -> tuple[Outlier, ...]:
    """The outliers of the training records, the most unlikely one first; see `FittedRGP.outliers`.

    `lengths` are the numbers of latent states of the records, as in `data/windows.py`; Gaussian noise is None.
    """
    if not 0.0 < check_number("level", level) < 1.0:
        raise InputError(f"level must be between 0 and 1, received {level!r}")
    if noise is None:
        raise InputError('a model with Gaussian noise knows no outliers; fit RGP(noise="student-t") for that')
    probabilities = find_probabilities(np.asarray(expected_squares(noise)))
    by_record = (split_rows(values, order.lags, lengths) for values in (np.asarray(noise.weights), probabilities))
    found = [
        Outlier(record, order.first_row + int(row), output_names[column], float(weights[row, column]), float(p))
        for record, (weights, values) in enumerate(zip(*by_record, strict=True))
        for (row, column), p in np.ndenumerate(values)
        if p < level
    ]
    return tuple(sorted(found, key=lambda each: (each.probability, each.weight)))


def find_probabilities(squares: np.ndarray) -> np.ndarray:
    """Share of ordinary samples with larger errors, from expected squared errors in units of the noise of the fit.

    What is ordinary follows from the median error of every output: the noise is rarely that of the recipe. Missing
    samples have no error and are no outliers.
    """
    distances = np.sqrt(squares)
    known = np.where(squares > SMALLEST, distances, np.nan)
    ordinary = np.maximum(TO_STD * np.nanmedian(known, axis=0), 1.0)
    return 2.0 * ndtr(-distances / ordinary)
