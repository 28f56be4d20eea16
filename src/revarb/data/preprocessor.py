"""Conversion between raw records and what a model computes with: names, sampling, scaling and lags."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int

from revarb.data.dataframes import RowIndex, as_matrix, column_names, row_index
from revarb.data.sampling import is_same_interval
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, find_label_interval
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order, input_windows
from revarb.errors import ComputationError, InputError, check_integer, warn_user

MARGIN = 0.05  # share of the width of its training range by which a value may leave it before it extrapolates


class ScaledRecord(NamedTuple):
    """One training record, z-scored and aligned: R rows, and the outputs of L more samples before the first of them.

    NaN in `y` is an output that was not measured.
    """

    u_bar: Float64[np.ndarray, "R Du"]
    y: Float64[np.ndarray, "P Dy"]


class ValueRange(NamedTuple):
    """Smallest and largest value of every input, or of every output, in the training records."""

    low: Float64[np.ndarray, " D"]
    high: Float64[np.ndarray, " D"]


@dataclass(frozen=True, eq=False)
class RunInputs:
    """The inputs of a run, read once: raw, z-scored, and the row labels of the table they came in."""

    raw: Float64[np.ndarray, "T Du"]
    z: Float64[np.ndarray, "T Du"]
    index: RowIndex | None = None


def _find_range(columns: Sequence[Float64[np.ndarray, "_ D"]]) -> ValueRange:
    # Over all records, missing values left out.
    values = np.concatenate(columns)
    return ValueRange(np.nanmin(values, axis=0), np.nanmax(values, axis=0))


@dataclass(frozen=True, eq=False)
class Preprocessor:
    """The names, sampling, scaling, lags and ranges of the training records, with which a model takes raw values."""

    scaling: Standardiser
    order: Order
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    dt: float
    input_range: ValueRange | None = None  # unknown in files written before version 0.2
    time_name: str | None = None  # the column of times in the tables of the records
    output_range: ValueRange | None = None

    def __post_init__(self):
        if (len(self.input_names), len(self.output_names)) != (len(self.scaling.u_mean), len(self.scaling.y_mean)):
            raise InputError("its column names and its standardiser do not agree")
        _check_range("input", self.input_range, len(self.input_names))
        _check_range("output", self.output_range, len(self.output_names))

    @classmethod
    def from_records(cls, records: Sequence[Series], order: Order) -> "Preprocessor":
        """The preprocessor of these training records; a record that is too short for the order is refused."""
        shortest = order.first_row + 2
        for position, record in enumerate(records):
            if len(record) < shortest:
                raise InputError(
                    f"record {position} has {len(record)} samples, but lags={order.lags}, "
                    f"input_lags={order.input_lags}, input_delay={order.input_delay} need at least {shortest}; "
                    "use fewer lags or a longer record"
                )
        first, scaling = records[0], Standardiser.from_records(records)
        measured = np.any([np.isfinite(record.y[order.first_row :]).any(0) for record in records], axis=0)
        if not measured.all():
            raise InputError(
                f"output column {first.output_names[int(np.argmin(measured))]!r} is measured in no row after the first "
                f"{order.first_row}, which the lags take; use fewer lags or leave it out"
            )
        return cls(
            scaling, order, first.input_names, first.output_names, first.dt,
            _find_range([record.u for record in records]), first.time_name,
            _find_range([record.y for record in records]),
        )  # fmt: skip

    @property
    def skip(self) -> int:
        """Rows at the beginning of a record by which no model is judged: the lags."""
        return self.order.skip

    def scale_records(self, records: Sequence[Series]) -> list[ScaledRecord]:
        """The records as z-scored rows: row r has the inputs `u_bar[r]` and the output `y[L + r]`."""
        order = self.order
        return [
            ScaledRecord(
                input_windows(self.scaling.inputs(record.u), order)[order.first_row - order.reach :],
                self.scaling.outputs(record.y)[order.first_row - order.lags :],
            )
            for record in records
        ]

    def read_inputs(self, u: Any, steps: int | None) -> RunInputs:
        """The inputs of a simulation, checked."""
        expected = len(self.input_names)
        if isinstance(u, Series):
            if steps is not None:
                raise InputError("pass a record without steps: it has as many as it has rows")
            return RunInputs(u.u, self.check_window(u)[0], u.index)
        if expected == 0 and u is None:
            what = "steps (the model has no inputs, so the number of steps must be given)"
            none = np.empty((check_integer(what, steps, least=1), 0))
            return RunInputs(none, none)
        if u is None or steps is not None:
            what = f"the inputs {list(self.input_names)} as u, one row per step, and no steps"
            raise InputError(f"pass {what if expected else 'steps alone: the model has no inputs'}")
        if expected == 0:
            raise InputError("the model has no inputs; pass steps= instead of u")
        values, index = as_matrix("u", u, columns=self.input_names), row_index(u)
        self._check_labels(index)
        if values.shape[1] != expected:
            names = list(self.input_names)
            raise InputError(f"u has {values.shape[1]} column(s), but the model was trained with {expected}: {names}")
        if not len(values):
            raise InputError("u has no rows; pass one row of inputs per step")
        return RunInputs(values, self.scaling.inputs(values), index)

    def _check_labels(self, index: RowIndex | None) -> None:
        # Times as row labels have the interval of the model.
        interval = None if index is None else find_label_interval("u", index)
        if interval is not None and not is_same_interval(interval, self.dt):
            raise InputError(
                f"the rows of u are {interval:g} s apart, but the model was trained with dt={self.dt:g}; resample u, "
                "or train with a record whose row labels are times (or with dt)"
            )

    def check_window(self, window: Series) -> tuple[Float64[np.ndarray, "N Du"], Float64[np.ndarray, "N Dy"]]:
        """Inputs and outputs of a measured record that has the model's columns, z-scored."""
        for what, prefix, ours, theirs in (
            ("input", "u", self.input_names, window.input_names),
            ("output", "y", self.output_names, window.output_names),
        ):
            if len(theirs) != len(ours):
                raise InputError(f"the record has {len(theirs)} {what}(s), but the model {len(ours)}: {list(ours)}")
            unnamed = column_names(prefix, None, len(ours)) in (ours, theirs)  # arrays: columns count by their position
            if theirs != ours and (not unnamed or set(theirs) == set(ours)):
                raise InputError(
                    f"the record has the columns {list(theirs)}, the model {list(ours)}; pass those of the model, in "
                    "its order"
                )
        if not is_same_interval(window.dt, self.dt):
            raise InputError(
                f"the record has dt={window.dt:g}, but the model was trained with dt={self.dt:g}; pass "
                f"dt={self.dt:g} with the record if that is how it was sampled, or else resample it"
            )
        return self.scaling.inputs(window.u), self.scaling.outputs(window.y)

    def to_trajectory(
        self,
        method: str,
        skip: int,
        mean: Any,
        variance: Any | None,
        samples: Any | None = None,
        disagreement: float | None = None,
        start: str = "cold",
        inputs: RunInputs | None = None,
    ) -> Trajectory:
        """A simulation in raw units, with the inputs that drove it; one that diverged is refused.

        With inputs, marks and warns where they leave the range of the training records.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            path = Trajectory(
                mean=self.scaling.raw_outputs(np.asarray(mean)),
                std=None if variance is None else self.scaling.raw_std(np.sqrt(np.asarray(variance))),
                method=method,
                skip=skip,
                output_names=self.output_names,
                dt=self.dt,
                samples=None if samples is None else self.scaling.raw_outputs(np.asarray(samples)),
                disagreement=disagreement,
                start=start,
            )
        check_finite(method, path.mean, path.std, path.samples)
        return path if inputs is None else self.add_inputs(path, inputs)

    def add_inputs(self, path: Trajectory, inputs: RunInputs) -> Trajectory:
        """The trajectory with the inputs that drove it, and where it leaves what training has shown."""
        path = replace(path, index=inputs.index)
        if self.output_range is not None:
            path = replace(path, output_extrapolates=_measure_excess(path.mean, self.output_range) > MARGIN)
        if not self.input_names:
            return path
        extrapolates = np.zeros(inputs.raw.shape, dtype=bool)
        if self.input_range is not None:
            excess = _measure_excess(inputs.raw, self.input_range)
            extrapolates = excess > MARGIN
            if extrapolates.any():
                warn_user(self._describe_extrapolation(self.input_range, extrapolates.sum(axis=0), excess))
        return replace(path, inputs=inputs.raw, input_names=self.input_names, input_extrapolates=extrapolates)

    def find_extrapolation(
        self, u: Float64[np.ndarray, "N Du"], y: Float64[np.ndarray, "N Dy"]
    ) -> Bool[np.ndarray, " N"]:
        """Rows with an input or an output that is outside of its range in training; not those of a NaN."""
        known = ((u, self.input_range), (y, self.output_range))
        marks = [(_measure_excess(values, each) > MARGIN).any(axis=1) for values, each in known if each is not None]
        return np.any([np.zeros(len(u), dtype=bool), *marks], axis=0)

    def _describe_extrapolation(
        self, known: ValueRange, rows: Int[np.ndarray, " Du"], excess: Float64[np.ndarray, "T Du"]
    ) -> str:
        columns = [
            f"input {name!r} leaves its training range, {low:.4g} to {high:.4g}, in {count} of {len(excess)} rows, by "
            f"up to {far:.2g} times its width"
            for name, low, high, count, far in zip(self.input_names, *known, rows, excess.max(axis=0), strict=True)
            if count
        ]
        return f"{'; '.join(columns)}: no training data support the model there (is the unit right?)"


def _check_range(what: str, known: ValueRange | None, columns: int) -> None:
    if known is None:
        return
    ordered = known.low.shape == known.high.shape == (columns,) and bool((known.low < known.high).all())
    if not ordered or not np.isfinite(known).all():
        raise InputError(f"the range of its {what}s is not one finite interval per {what}")


def _measure_excess(values: Float64[np.ndarray, "T D"], known: ValueRange) -> Float64[np.ndarray, "T D"]:
    # How far values are outside of their range, in units of its width; negative inside.
    with np.errstate(over="ignore"):
        return np.maximum(known.low - values, values - known.high) / (known.high - known.low)


def check_finite(method: str, *simulated: np.ndarray | None) -> None:
    """Refuse a simulation that contains infinity or NaN."""
    if not all(values is None or np.isfinite(values).all() for values in simulated):
        raise ComputationError(
            f"the simulation (method {method!r}) diverged; check the units of u, and whether the model file comes from "
            "a source you trust"
        )
