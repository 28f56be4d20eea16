"""A summary of a trained model: tables of texts that print in a terminal and in a notebook.

Those of a recurrent GP say which lags matter, and how large its noises are. With Student-t noise it knows the outliers
among its training samples, too.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from scipy.special import ndtr

from revarb.data.training_records import TO_STD
from revarb.data.windows import Order, split_rows
from revarb.errors import InputError, check_number
from revarb.gp.posterior import Posterior
from revarb.runtime.notebook import encode_table, encode_title
from revarb.simulation.chain import Chain, find_noise_variance
from revarb.variational.noise import StudentNoise, expected_squares

RELEVANT = 3.0  # a lag counts as relevant while its lengthscale is at most this many times the layer's shortest
TEXT_WIDTH = 110  # columns of the plain text
SMALLEST = 1e-6  # expected squared error of a sample that was measured; that of a missing one is zero but for rounding
NUMBER = re.compile(r"([-+]?[0-9.]+(e[-+]?[0-9]+)?)?")


class SummaryTable(NamedTuple):
    """A titled table of texts; without column heads where all of them are empty."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, repr=False)
class Summary:
    """Tables about a model. `print(summary)` gives text, `rich.print(summary)` colours, a notebook HTML."""

    title: str
    tables: tuple[SummaryTable, ...]

    def __rich__(self) -> Group:
        return Group(escape(self.title), *(_rich_table(table) for table in self.tables))

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=TEXT_WIDTH, color_system=None)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return encode_title(self.title) + "".join(encode_table(*table) for table in self.tables)


def _rich_table(table: SummaryTable) -> Table:
    drawn = Table(
        title=escape(table.title), title_justify="left", box=box.SIMPLE, show_header=any(table.columns),
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    for head, right in zip(table.columns, _find_numbers(table), strict=True):
        if right:  # as narrow as it can be, so that texts keep the width of the terminal
            drawn.add_column(escape(head.replace(" ", "\n")), justify="right", no_wrap=True)
        else:
            drawn.add_column(escape(head), overflow="fold")
    for row in table.rows:
        drawn.add_row(*map(escape, row))  # names of columns have units in brackets
    return drawn


def _find_numbers(table: SummaryTable) -> list[bool]:
    # Which columns have numbers, or nothing, in all rows.
    return [all(NUMBER.fullmatch(row[column]) for row in table.rows) for column in range(len(table.columns))]


def make_relevance_table(chain: Chain[Posterior], order: Order, input_names: Sequence[str]) -> SummaryTable:
    """The shortest lengthscale of every signal among the regressors of every layer, and at which lags it is short.

    The shorter a lengthscale, the more the layer's function changes along that regressor (z-scored units).
    """
    rows, layers, dims = [], (*chain.hidden, chain.last_layer), (*chain.latent_dims, 0)  # the output has no states
    below: tuple[Sequence[str], int, int] = input_names, order.input_delay, order.input_lags  # names, newest lag, lags
    for number, (layer, dim) in enumerate(zip(layers, dims, strict=True), start=1):
        name = f"{number}" if dim else f"{number} (output)"
        states = [f"state of layer {number}" + (f", {column}" if dim > 1 else "") for column in range(dim)]
        with np.errstate(divide="ignore"):
            lengthscales = 1.0 / np.sqrt(np.asarray(layer.w))
        begin = 0
        for signals, newest, lags in ((states, 1, order.lags), below):  # its own past, then what is below it
            # All entries of one sample stand together, the newest sample first.
            columns = begin + np.arange(lags * len(signals)).reshape(lags, len(signals))
            begin += columns.size
            for signal, column in zip(signals, columns.T, strict=True):
                described = _describe_lengthscales(lengthscales[column], newest + np.arange(lags), lengthscales.min())
                rows.append((name, signal, *described))
        below = states, 0, order.lags
    heads = ("layer", "signal", "shortest", "at lag", "relevant lags")
    return SummaryTable("lengthscales (short: matters)", heads, rows)


def _describe_lengthscales(values: np.ndarray, ages: np.ndarray, shortest: float) -> tuple[str, str, str]:
    relevant = ages[values <= RELEVANT * shortest]
    best = int(np.argmin(values))
    return f"{values[best]:.3g}", str(ages[best]), _ranges(relevant) or "none"


def _ranges(lags: np.ndarray) -> str:
    # 1, 2, 3, 7 -> "1-3, 7"
    runs = np.split(lags, np.flatnonzero(np.diff(lags) > 1) + 1) if len(lags) else []
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def make_noise_table(
    fitted: Chain[Posterior], used: Chain[Posterior], output_names: Sequence[str], y_std: Sequence[float] | np.ndarray
) -> SummaryTable:
    """Noise of every layer as fitted, and as calibrated for simulations; that of the outputs in raw units."""
    rows = [
        (f"layer {number}, z-scored", _std(before.sigma2), _std(after.sigma2))
        for number, (before, after) in enumerate(zip(fitted.hidden, used.hidden, strict=True), start=1)
    ]
    for name, unit in zip(output_names, y_std, strict=True):
        rows.append((name, _std(find_noise_variance(fitted), unit), _std(find_noise_variance(used), unit)))
    return SummaryTable("noise, standard deviation", ("", "as fitted", "in simulations"), rows)


def _std(variance: object, unit: float = 1.0) -> str:
    return f"{unit * np.sqrt(float(np.asarray(variance))):.3g}"


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
