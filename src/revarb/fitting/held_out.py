"""Held-out blocks of training records, cold runs over them, and the held-out error of a model.

There is one held-out error, wherever it is shown. The records are cut into about twelve blocks; four fits, the folds,
leave out a quarter of them each. The fit without a block simulates it from a cold start at the beginning of its
record, and where the block is in the second half also from one at a third of the record. The error of a block is the
root mean square error in units of the outputs' standard deviation (of two runs the geometric mean), and the held-out
error is the geometric mean over the blocks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.errors import ComputationError
from revarb.fitting.free_run import cut_cold_runs
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.runtime.machine import on_host
from revarb.runtime.numerics import AnyArray, cut_rows, pad_rows
from revarb.simulation.chain import Chain
from revarb.simulation.mean import run_means

FOLDS = 4  # fits that leave out a quarter of the blocks each
LAST = FOLDS  # in place of a fold: the last third of every record is left out
HELD_OUT_BLOCKS = 12  # of all records together, about
MIN_HELD_OUT_ROWS = 100  # with fewer rows, twelve blocks are too short to measure an error
SMALLEST = 1e-12  # of an error whose logarithm is taken


class HeldOutBlock(NamedTuple):
    """The samples [begin, end) of a record, which one of the folds leaves out."""

    record: int
    begin: int
    end: int
    fold: int

    @property
    def rows(self) -> slice:
        """The samples as a slice of the record."""
        return slice(self.begin, self.end)


def cut_held_out_blocks(records: Sequence[Series], prep: Preprocessor) -> list[HeldOutBlock]:
    """Cut the records into about twelve blocks of equal length, assigned to the folds in turn; none if too short.

    The first rows of a record are never held out, because the transient of a cold run has not decayed there.
    """
    firsts = [min(prep.skip, len(record) // 2) for record in records]
    counts = [len(record) - first for record, first in zip(records, firsts, strict=True)]
    if sum(counts) < MIN_HELD_OUT_ROWS:
        return []
    length = sum(counts) / HELD_OUT_BLOCKS
    ranges = [
        (number, int(begin), int(end))
        for number, (record, first, count) in enumerate(zip(records, firsts, counts, strict=True))
        for begin, end in pairwise(np.linspace(first, len(record), max(1, round(count / length)) + 1).round())
    ]
    return [HeldOutBlock(*each, position % FOLDS) for position, each in enumerate(ranges)]


def mask_fold(records: Sequence[Series], blocks: Sequence[HeldOutBlock], fold: int) -> list[Series]:
    """Mask the outputs of one fold's blocks (NaN)."""
    outputs = [record.y.copy() for record in records]
    for block in blocks:
        if block.fold == fold:
            outputs[block.record][block.rows] = np.nan
    return [replace(record, y=y) for record, y in zip(records, outputs, strict=True)]


def cut_out_fold(records: Sequence[Series], blocks: Sequence[HeldOutBlock], fold: int) -> list[Series]:
    """The parts of the records between one fold's blocks, for models that need records without gaps.

    Parts shorter than all blocks, such as the transient before the first one, are left out.
    """
    least, parts = min(block.end - block.begin for block in blocks if block.fold == fold), []
    for number, record in enumerate(records):
        inside = [block for block in blocks if (block.record, block.fold) == (number, fold)]
        begins, ends = [0, *(block.end for block in inside)], [*(block.begin for block in inside), len(record)]
        parts += [record[begin:end] for begin, end in zip(begins, ends, strict=True) if end - begin >= least]
    return parts


class HeldOutRun(NamedTuple):
    """A block with the rows before it, from where its run starts cold."""

    record: Series
    first: int  # row of this record where the block begins
    fold: int

    @property
    def y(self) -> Float64[np.ndarray, "_ Dy"]:
        """The measured outputs of the block."""
        return self.record.y[self.first :]


class HeldOut(NamedTuple):
    """What models are judged by: blocks of the records, and the runs that lead to them."""

    records: tuple[Series, ...]
    blocks: tuple[HeldOutBlock, ...]
    runs: tuple[HeldOutRun, ...]  # every block, with a run from the beginning of its record
    late_runs: tuple[HeldOutRun, ...]  # blocks of second halves, with a run from a third of the record
    late_numbers: tuple[int, ...]  # which blocks these are
    last_blocks: tuple[HeldOutBlock, ...]  # the last third of every record, for bands only
    last_runs: tuple[HeldOutRun, ...]  # with a run from the beginning of its record
    scaling: Standardiser


def hold_out(records: Sequence[Series], blocks: Sequence[HeldOutBlock], settle: int) -> HeldOut:
    """Prepare the runs over the blocks; one from a later start needs `settle` rows before its block.

    The later start is there because a fit has seen how a cold run goes wrong at the beginning of a record: a model of a
    system that integrates can look good from there and from nowhere else.
    """
    thirds = [len(record) // 3 for record in records]
    last = [HeldOutBlock(number, 2 * third, len(records[number]), LAST) for number, third in enumerate(thirds)]
    late = [
        number
        for number, block in enumerate(blocks)
        if 2 * block.begin >= len(records[block.record]) and block.begin - thirds[block.record] >= settle
    ]
    return HeldOut(
        tuple(records),
        tuple(blocks),
        tuple(_cut_run(records, block, 0) for block in blocks),
        tuple(_cut_run(records, blocks[number], thirds[blocks[number].record]) for number in late),
        tuple(late),
        tuple(last),
        tuple(_cut_run(records, block, 0) for block in last),
        Standardiser.from_records(records),
    )


def _cut_run(records: Sequence[Series], block: HeldOutBlock, begin: int) -> HeldOutRun:
    return HeldOutRun(records[block.record][begin : block.end], block.begin - begin, block.fold)


def measure_block_errors(models: Mapping[int, Any], held_out: HeldOut) -> Float64[np.ndarray, " B"]:
    """The error of every block by the model that was fitted without its fold; NaN where there is none.

    Infinite where a run diverged; NaN also where nothing was measured.
    """
    runs, count = (*held_out.runs, *held_out.late_runs), len(held_out.runs)
    errors = np.full(len(runs), np.nan)
    for fold, model in models.items():
        # All runs every time, so that the folds share one compiled program.
        for number, simulated in enumerate(simulate_blocks(model, runs)):
            if runs[number].fold == fold:
                errors[number] = measure_rms(simulated, runs[number], held_out.scaling)
    combined, late = errors[:count], list(held_out.late_numbers)
    combined[late] = np.sqrt(combined[late]) * np.sqrt(errors[count:])
    return combined


def compute_held_out_error(errors: Float64[np.ndarray, " B"]) -> float:
    """The held-out error: the geometric mean of the errors of all blocks on which it was measured."""
    return float(np.exp(np.mean(log_errors(errors[~np.isnan(errors)]))))


def log_errors(errors: Float64[np.ndarray, "*C B"]) -> Float64[np.ndarray, "*C B"]:
    """Logarithms of the errors of every candidate on every block; infinite where a run diverged."""
    return np.log(np.maximum(errors, SMALLEST))


def simulate_blocks(model: Any, runs: Sequence[HeldOutRun]) -> list[Float64[np.ndarray, "_ Dy"]]:
    """The outputs of cold runs over blocks, raw units; infinite where one diverged."""
    simulated = simulate_records(model, [run.record for run in runs])
    return [each[-len(run.y) :] for each, run in zip(simulated, runs, strict=True)]


def simulate_records(model: Any, records: Sequence[Series]) -> list[Float64[np.ndarray, "_ Dy"]]:
    """The outputs of cold runs over records, raw units, from the first row with a full window of inputs.

    Those of an RGP or ARX model are mean-only runs, side by side; those of a mixture are the mean of its members'.
    """
    if isinstance(model, Ensemble):
        runs = zip(*(simulate_records(member, records) for member in model.members), strict=True)
        return [np.mean([each[-min(map(len, own)) :] for each in own], axis=0) for own in runs]
    if not isinstance(model, FittedRGP | FittedARX):
        return [_simulate_record(model, record) for record in records]
    simulated = np.asarray(simulate_cold(model.chain, cut_cold_runs(model.preprocessor, records).u_bar))
    return [unscale_run(model.preprocessor, simulated[:, number], record) for number, record in enumerate(records)]


def _simulate_record(model: Any, record: Series) -> Float64[np.ndarray, "_ Dy"]:
    try:
        path = model.simulate(record.u) if record.u.shape[1] else model.simulate(steps=len(record))
    except ComputationError:
        return np.full(record.y.shape, np.inf)
    return np.asarray(path.mean, dtype=np.float64).reshape(record.y.shape)


def unscale_run(
    prep: Preprocessor, simulated: Float64[np.ndarray, "T Dy"], record: Series
) -> Float64[np.ndarray, "_ Dy"]:
    """A z-scored run over a record that begins where its window of inputs is full, raw units; padding is removed."""
    with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverged
        return prep.scaling.raw_outputs(simulated[: len(record) - prep.order.reach])


@on_host()
def simulate_cold(chain: Chain, u_bar: Float[AnyArray, "T K Du"]) -> Float[AnyArray, "T K Dy"]:
    """Simulate the mean from cold starts, side by side."""
    start = np.zeros((u_bar.shape[1], chain.lags * sum(chain.latent_dims)))
    return cut_rows(run_means(chain, start, pad_rows(u_bar)), len(u_bar))


def measure_rms(simulated: Float64[np.ndarray, "_ Dy"], run: HeldOutRun, scaling: Standardiser) -> float:
    """Root mean square error of a simulated block; infinite where it diverged, NaN where nothing was measured."""
    measured = np.isfinite(run.y)
    if not measured.any():
        return float("nan")
    with np.errstate(over="ignore", invalid="ignore"):
        rms = float(np.sqrt(np.mean((((simulated - run.y) / scaling.y_std) ** 2)[measured])))
    return rms if np.isfinite(rms) else float("inf")
