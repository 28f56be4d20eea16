"""The result of a simulation or prediction, in raw units."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float64
from numpy.typing import ArrayLike

from revarb.data.dataframes import RowIndex, label_rows, make_dataframe
from revarb.data.scaling import half_width
from revarb.data.table_file import write_csv
from revarb.errors import ComputationError, InputError, check_number
from revarb.runtime.notebook import encode_table, encode_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MAX_DISAGREEMENT = 0.25  # between samples and moments, in standard deviations (docs/design/decisions)


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """A simulated or predicted output: one row per row of the input, one column per output, in raw units.

    The distribution of a measurement is N(mean, std²), or a Student-t with this mean and standard deviation:
    `interval`, the scores and the figures all follow from it.

    Attributes
    ----------
    mean : array [T, outputs]
        Mean of the output.
    std : array [T, outputs] or None
        Standard deviation of a measurement, output noise included; None for a mean-only run. For `simulate` and
        `predict` of a calibrated model it is the calibrated one; `smooth` has the noise as fitted, uncalibrated.
    method : str
        How it was computed: "moments", "mean", "samples", "network", "residuals" or "smoothed".
    skip : int
        Number of first rows in which a cold run has not settled; scores leave them out.
    output_names : tuple of str
        Names of the outputs.
    dt : float
        Sampling interval.
    samples : array [K, T, outputs] or None
        Sampled trajectories of measurements, for method "samples".
    disagreement : float or None
        For method "samples": distance of the sampled mean from that of method "moments", in standard deviations of the
        latter, root mean square over scored rows and outputs.
    start : str
        Where the run began.
    index : RowIndex or None
        Row labels of the data frame that the inputs came in, for `to_frame`.
    inputs : array [T, inputs] or None
        The inputs that drove the run, raw units, for `plot`.
    input_names : tuple of str
        Their names.
    input_extrapolates : array of bool [T, inputs] or None
        Where an input is outside of the range it had in training, by more than 5 % of its width.
    output_extrapolates : array of bool [T, outputs] or None
        Likewise the mean of an output.
    state_extrapolates : array of bool [T] or None
        Likewise a latent state, or for a NARX model a past output.
    degrees_of_freedom : float or None
        Of the Student-t distribution of a measurement; None: it is Gaussian.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> path = revarb.Trajectory(np.zeros((3, 1)), np.ones((3, 1)), "moments", 0, ("level",))
    >>> path
    Trajectory(3 rows, outputs ('level',), method='moments', start='cold')
    >>> lower, upper = path.interval(0.95)
    >>> float(upper[0, 0].round(2))
    1.96
    """

    mean: Float64[np.ndarray, "T Dy"]
    std: Float64[np.ndarray, "T Dy"] | None
    method: str
    skip: int
    output_names: tuple[str, ...]
    dt: float = 1.0
    samples: Float64[np.ndarray, "K T Dy"] | None = None
    disagreement: float | None = None
    start: str = "cold"
    index: RowIndex | None = None
    inputs: Float64[np.ndarray, "T Du"] | None = None
    input_names: tuple[str, ...] = ()
    input_extrapolates: Bool[np.ndarray, "T Du"] | None = None
    output_extrapolates: Bool[np.ndarray, "T Dy"] | None = None
    state_extrapolates: Bool[np.ndarray, " T"] | None = None
    degrees_of_freedom: float | None = None

    def __len__(self) -> int:
        return len(self.mean)

    def __repr__(self) -> str:
        what = f"{len(self)} rows, outputs {self.output_names}, method={self.method!r}, start={self.start!r}"
        return f"Trajectory({what})"

    def _repr_html_(self) -> str:
        ends = [(self.mean[row], None if self.std is None else self.std[row]) for row in (0, -1)] if len(self) else []
        rows = [
            (name, *(f"{mean[column]:.4g}" + ("" if std is None else f" ± {std[column]:.2g}") for mean, std in ends))
            for column, name in enumerate(self.output_names)
        ]
        heads = ("output", *("first row", "last row (± standard deviation)")[: len(ends)])
        doubts = [] if self.warning is None else [encode_title(self.warning)]
        return "".join([encode_title(repr(self)), encode_table("", heads, rows), *doubts])

    @property
    def warning(self) -> str | None:
        """Reasons to doubt the run; None without any.

        From which row on outputs, inputs or states extrapolate, and where samples and moments disagree.
        """
        sentences = (self._describe_extrapolation(), self._describe_disagreement())
        return "; ".join(sentence for sentence in sentences if sentence) or None

    @property
    def extrapolates_from(self) -> int | None:
        """The first row at which an input, a state or the mean leaves its range in training; None without one."""
        marks = self.extrapolates
        return None if marks is None or not marks.any() else int(np.argmax(marks))

    @property
    def extrapolates(self) -> Bool[np.ndarray, " T"] | None:
        """Rows at which an input, a state or the mean is outside of its range in training; None where unknown."""
        marks = list(self._extrapolates_by_name().values())
        return np.any(marks, axis=0) if marks else None

    def _extrapolates_by_name(self) -> dict[str, Bool[np.ndarray, " T"]]:
        known = (
            ("output", self.output_names, self.output_extrapolates),
            ("input", self.input_names, self.input_extrapolates),
        )
        named = {
            f"{what} {name!r}": marked
            for what, names, marks in known
            if marks is not None
            for name, marked in zip(names, marks.T, strict=True)
        }
        return named if self.state_extrapolates is None else {**named, "a state": self.state_extrapolates}

    def _describe_extrapolation(self) -> str:
        first = {name: int(np.argmax(marks)) for name, marks in self._extrapolates_by_name().items() if marks.any()}
        places = [f"{name} from row {row} on" for name, row in sorted(first.items(), key=lambda each: each[1])]
        return f"the run leaves what training has shown: {', '.join(places)}" if places else ""

    def _describe_disagreement(self) -> str:
        if self.disagreement is None or self.disagreement <= MAX_DISAGREEMENT:
            return ""
        return (
            f"samples and moments disagree: their means are {self.disagreement:.2f} standard deviations apart; use "
            "the samples, since moments approximate the state by a Gaussian at every step, and here it is not Gaussian"
        )

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the central interval that should contain a share `level` of the measurements.

        Parameters
        ----------
        level : float
            Share between 0 and 1.

        Returns
        -------
        lower, upper : arrays [T, outputs]
            mean ± z(level) · std; with a Student-t distribution, its quantiles.

        Raises
        ------
        InputError
            If `level` is not between 0 and 1, or the run has no uncertainty.
        ComputationError
            If the ends overflow.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> path = revarb.Trajectory(np.zeros((3, 1)), np.ones((3, 1)), "moments", 0, ("level",))
        >>> lower, upper = path.interval(0.5)
        >>> lower[:, 0].round(2).tolist(), upper[:, 0].round(2).tolist()
        ([-0.67, -0.67, -0.67], [0.67, 0.67, 0.67])
        """
        if not check_number("level", level) < 1.0 or not level > 0.0:
            raise InputError(f"level must be between 0 and 1, received {level!r}")
        if self.std is None:
            raise InputError(
                f"a simulation with method={self.method!r} has no uncertainty; simulate with method='moments'"
            )
        with np.errstate(over="ignore"):
            half = half_width(level, self.degrees_of_freedom) * self.std
            ends = self.mean - half, self.mean + half
        if not np.isfinite(ends).all():
            raise ComputationError("the ends of the band overflow; rescale the outputs")
        return ends

    def columns(self) -> dict[str, np.ndarray]:
        """The trajectory as named columns: `_mean`, `_std`, `_lower` and `_upper` (95 %) of every output, then samples.

        Returns
        -------
        dict of str to array [T]
        """
        columns: dict[str, np.ndarray] = {}
        band = None if self.std is None else self.interval(0.95)
        for column, name in enumerate(self.output_names):
            columns[f"{name}_mean"] = self.mean[:, column]
            if self.std is not None and band is not None:
                columns[f"{name}_std"] = self.std[:, column]
                columns[f"{name}_lower"], columns[f"{name}_upper"] = band[0][:, column], band[1][:, column]
            if self.samples is not None:
                columns |= {f"{name}_sample{k}": self.samples[k, :, column] for k in range(len(self.samples))}
        return columns

    def to_frame(self) -> Any:
        """The trajectory as a data frame with the columns of `columns`.

        Returns
        -------
        data frame
            Of the same library as the inputs of the simulation, with their row labels; pandas (or else polars) where
            they were arrays.

        Raises
        ------
        InputError
            If the inputs were arrays and neither pandas nor polars is installed.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> path = revarb.Trajectory(np.zeros((3, 1)), np.ones((3, 1)), "moments", 0, ("level",))
        >>> list(path.to_frame().columns)
        ['level_mean', 'level_std', 'level_lower', 'level_upper']
        """
        return make_dataframe(self.columns(), self.index)

    def labelled_columns(self, name: str | None = None, labels: ArrayLike | None = None) -> dict[str, np.ndarray]:
        """The columns of a table: labels of the rows, `scored`, `extrapolates`, and `columns`.

        `scored` is 0 in rows that scores leave out, `extrapolates` 1 where the run is outside of what training has
        shown; it is left out where that is unknown.

        Parameters
        ----------
        name : str, optional
            Name of the first column; default: that of the data frame's index, else "row".
        labels : array-like [T], optional
            Its values, such as times; default: the row labels of the data frame, else 0, 1, 2, …

        Returns
        -------
        dict of str to array [T]

        Examples
        --------
        >>> import numpy as np, revarb
        >>> path = revarb.Trajectory(np.zeros((3, 1)), None, "mean", 1, ("level",))
        >>> for name, values in path.labelled_columns("t", [0.0, 0.5, 1.0]).items():
        ...     print(name, values.tolist())
        t [0.0, 0.5, 1.0]
        scored [0, 1, 1]
        level_mean [0.0, 0.0, 0.0]
        """
        named, texts = label_rows(self.index, len(self))
        rest = {"scored": (np.arange(len(self)) >= self.skip).astype(np.int64)}
        if self.extrapolates is not None:
            rest["extrapolates"] = self.extrapolates.astype(np.int64)
        rest |= self.columns()
        first = named if name is None else name
        return {"row" if first in rest else first: texts if labels is None else np.asarray(labels), **rest}

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write the columns of `labelled_columns` to a CSV file with all digits (atomic write).

        Parameters
        ----------
        path : path
            Name of the file.

        Returns
        -------
        pathlib.Path
            The file that was written.
        """
        return write_csv(path, self.labelled_columns())

    def plot(
        self,
        measured: ArrayLike | None = None,
        title: str = "",
        others: "Mapping[str, Trajectory] | None" = None,
        *,
        times: ArrayLike | None = None,
        ax: "Axes | Sequence[Axes] | None" = None,
        fig: "Figure | SubFigure | None" = None,
    ) -> "Figure":
        """Draw the mean and its 95 % band, over the measured output where it is given.

        Parameters
        ----------
        measured : array-like [T, outputs] or data frame, optional
            Measured outputs at the same rows, raw units; NaN where missing.
        title : str
            Title of the figure.
        others : mapping from names to Trajectory, optional
            Runs of other models over the same rows; the mean of each is a thin line.
        times : array-like [T], optional
            Times of the rows, such as a column of the file; default: row labels that are times, else multiples of `dt`.
        ax : matplotlib Axes, or one per output, optional
            Draw the outputs only, into these axes, in the style of their figure; `title` is the label of the line.
        fig : matplotlib Figure or SubFigure, optional
            Where to draw all panels; its size and layout stay. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            One panel per output. Save it with `figure.savefig("simulation.png")`; a notebook displays it.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> path = revarb.Trajectory(np.zeros((3, 1)), np.ones((3, 1)), "moments", 0, ("level",))
        >>> figure = path.plot(measured=[0.3, -0.2, 0.1], title="tank")
        >>> figure.axes[0].get_ylabel()
        'level'
        """
        from revarb.data.trajectory_figure import draw_outputs, draw_trajectory  # matplotlib is slow to import

        if ax is None:
            return draw_trajectory(self, measured, title, others or {}, times, fig)
        if others or fig is not None:
            raise InputError("with ax only this run is drawn; leave out others and fig")
        return draw_outputs(self, measured, title, times, ax)
