"""Conversion between raw records and what a model computes with: names, sampling, scaling and lags."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from revarb.data.dataframes import RowIndex, row_index
from revarb.data.even_steps import is_same_interval
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, as_matrix, column_names, find_label_interval
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order, input_windows
from revarb.errors import ComputationError, InputError, check_integer, warn_user

MARGIN = 0.05  # share of the width of its range by which an input may leave it without a word
OUTPUT_MARGIN = 0.2  # and an output: what a short record has shown of it is chance


class RecordBlock(NamedTuple):
    """One training record, z-scored and aligned: R rows, and the outputs of L more samples before the first of them.

    NaN in `y` is an output that was not measured.
    """

    u_bar: Float64[np.ndarray, "R Du"]
    y: Float64[np.ndarray, "P Dy"]


class ValueRange(NamedTuple):
    """Smallest and largest value of every input, or of every output, in the training records."""

    low: Float64[np.ndarray, " D"]
    high: Float64[np.ndarray, " D"]


def find_input_range(records: Sequence[Series]) -> ValueRange:
    """Find the range of every input over all records."""
    u = np.concatenate([record.u for record in records])
    return ValueRange(u.min(axis=0), u.max(axis=0))


def find_output_range(records: Sequence[Series]) -> ValueRange:
    """Find the range of every output over all records, missing values left out."""
    y = np.concatenate([record.y for record in records])
    return ValueRange(np.nanmin(y, axis=0), np.nanmax(y, axis=0))


def _is_sound(known: ValueRange, columns: int) -> bool:
    return known.low.shape == known.high.shape == (columns,) and bool(
        (np.isfinite(known.low) & np.isfinite(known.high) & (known.low < known.high)).all()
    )


@dataclass(frozen=True, eq=False)
class Preprocessor:
    """What a trained model must know of its records to take and to return raw values."""

    scaling: Standardiser
    order: Order
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    dt: float
    input_range: ValueRange | None = None  # unknown in files written before version 0.2
    time_name: str | None = None  # the column of times in the tables of the records
    output_range: ValueRange | None = None

    def __post_init__(self):
        inputs = len(self.scaling.u_mean)
        if (len(self.input_names), len(self.output_names)) != (inputs, len(self.scaling.y_mean)):
            raise InputError("its column names and its standardiser do not agree")
        if self.input_range is not None and not _is_sound(self.input_range, inputs):
            raise InputError("the range of its inputs is not one finite interval per input")
        if self.output_range is not None and not _is_sound(self.output_range, len(self.output_names)):
            raise InputError("the range of its outputs is not one finite interval per output")

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
        names = first.input_names, first.output_names
        ranges = find_input_range(records), first.time_name, find_output_range(records)
        return cls(scaling, order, *names, first.dt, *ranges)

    @property
    def skip(self) -> int:
        """Rows of a cold run that are left out of the scores."""
        return self.order.skip

    def blocks(self, records: Sequence[Series]) -> list[RecordBlock]:
        """The records as z-scored rows: row r has the inputs `u_bar[r]` and the output `y[L + r]`."""
        order = self.order
        return [
            RecordBlock(
                input_windows(self.scaling.inputs(record.u), order)[order.first_row - order.reach :],
                self.scaling.outputs(record.y)[order.first_row - order.lags :],
            )
            for record in records
        ]

    def check_inputs(self, u: Any, steps: int | None, warm: bool = False) -> Float64[np.ndarray, "T Du"]:
        """The inputs of a simulation, checked and z-scored; `warm` runs have their past inputs with them."""
        expected = len(self.input_names)
        if expected == 0 and u is None:
            what = "steps (the model has no inputs, so the number of steps must be given)"
            return np.empty((check_integer(what, steps, least=1), 0))
        if u is None or steps is not None:
            what = f"the inputs {list(self.input_names)} as u, one row per step, and no steps"
            raise InputError(f"pass {what if expected else 'steps alone: the model has no inputs'}")
        if expected == 0:
            raise InputError("the model has no inputs; pass steps= instead of u")
        values = as_matrix("u", u, columns=self.input_names)
        self._check_labels(row_index(u))
        if values.shape[1] != expected:
            names = list(self.input_names)
            raise InputError(f"u has {values.shape[1]} column(s), but the model was trained with {expected}: {names}")
        shortest = 1 if warm else self.order.first_row + 1
        if len(values) < shortest:
            raise InputError(f"u has {len(values)} row(s), but the lags need at least {shortest}; pass a longer input")
        return self.scaling.inputs(values)

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
        for what, ours, theirs in (
            ("input", self.input_names, window.u.shape[1]),
            ("output", self.output_names, window.y.shape[1]),
        ):
            if theirs != len(ours):
                raise InputError(f"the record has {theirs} {what}(s), but the model {len(ours)}: {list(ours)}")
        for prefix, ours, theirs in (
            ("u", self.input_names, window.input_names), ("y", self.output_names, window.output_names),
        ):  # fmt: skip
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
        if len(window) < self.order.first_row:
            raise InputError(
                f"the record has {len(window)} samples, but the lags need at least {self.order.first_row}; "
                "pass a longer one"
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
    ) -> Trajectory:
        """A simulation in raw units; one that diverged is refused."""
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
        return path

    def add_inputs(self, path: Trajectory, u: Any, index: RowIndex | None = None) -> Trajectory:
        """The trajectory with the inputs that drove it, and where it leaves what training has shown.

        Warns where inputs leave the range of the training records.
        """
        index = row_index(u) if index is None else index
        if self.output_range is not None:
            path = replace(path, beyond=_measure_excess(path.mean, self.output_range) > OUTPUT_MARGIN)
        if not self.input_names:
            return replace(path, index=index)
        values = as_matrix("u", u, columns=self.input_names)
        outside = self._mark_outside(values)
        if outside.any():
            warn_user(self._describe_outside(values, outside))
        return replace(path, inputs=values, input_names=self.input_names, outside=outside, index=index)

    def _mark_outside(self, u: Float64[np.ndarray, "T Du"]) -> Bool[np.ndarray, "T Du"]:
        if self.input_range is None:
            return np.zeros(u.shape, dtype=bool)
        return _measure_excess(u, self.input_range) > MARGIN

    def _describe_outside(self, u: Float64[np.ndarray, "T Du"], outside: Bool[np.ndarray, "T Du"]) -> str:
        assert self.input_range is not None
        excess = _measure_excess(u, self.input_range).max(axis=0)
        columns = [
            f"input {name!r} leaves its training range, {low:.4g} to {high:.4g}, in {rows} of {len(u)} rows, by up to "
            f"{far:.2g} times its width"
            for name, low, high, rows, far in zip(
                self.input_names, *self.input_range, outside.sum(axis=0), excess, strict=True
            )
            if rows
        ]
        return f"{'; '.join(columns)}: the band does not know what happens there (is the unit right?)"


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
