"""Cold runs over held-out stretches, and their errors."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.runtime.host import on_host
from revarb.runtime.numerics import AnyArray
from revarb.runtime.shapes import cut_rows, pad_rows
from revarb.simulation.chain import Chain
from revarb.simulation.mean import run_means
from revarb.training.free_run import cut_cold_runs
from revarb.training.stretches import Stretch


class Segment(NamedTuple):
    """A held-out stretch with the rows before it, from where its run starts cold."""

    record: Series
    first: int  # of the stretch, in this record
    fold: int


def cut_segments(records: Sequence[Series], stretches: Sequence[Stretch]) -> list[Segment]:
    """Cut every stretch with all rows before it: its run starts cold at the beginning of the record."""
    return [_cut(records, stretch, 0) for stretch in stretches]


def can_start_late(records: Sequence[Series], stretch: Stretch, settle: int) -> bool:
    """Whether a run can also start at a third of the record: the stretch is in its second half, and far enough."""
    length = len(records[stretch.record])
    return stretch.begin >= length / 2 and stretch.begin - length // 3 >= settle


def cut_late_segments(records: Sequence[Series], stretches: Sequence[Stretch]) -> list[Segment]:
    """Cut stretches with the rows from a third of their record on, where their runs start cold.

    At the beginning of a record the fit has seen how a cold run goes wrong there. A model of a system that integrates
    can look good from there and from nowhere else.
    """
    return [_cut(records, stretch, len(records[stretch.record]) // 3) for stretch in stretches]


def _cut(records: Sequence[Series], stretch: Stretch, begin: int) -> Segment:
    return Segment(records[stretch.record][begin : stretch.end], stretch.begin - begin, stretch.fold)


def measure_cold_runs(
    chain: Chain, prep: Preprocessor, scaling: Standardiser, segments: Sequence[Segment]
) -> Float64[np.ndarray, " S"]:
    """Root mean square error of the cold mean-only run on every stretch, in units of `scaling`.

    Infinite where a run diverged; NaN where nothing was measured.
    """
    runs = cut_cold_runs(prep, [segment.record for segment in segments])
    simulated = np.asarray(simulate_cold(chain, runs.u_bar))
    return np.array([
        measure_error(prep, scaling, simulated[:, number], segment) for number, segment in enumerate(segments)
    ])  # fmt: skip


def simulate_segments(
    chain: Chain, prep: Preprocessor, segments: Sequence[Segment]
) -> list[Float64[np.ndarray, "_ Dy"]]:
    """Errors of the cold mean-only run on every stretch, raw units; NaN where nothing was measured."""
    runs = cut_cold_runs(prep, [segment.record for segment in segments])
    simulated = np.asarray(simulate_cold(chain, runs.u_bar))
    return [_find_errors(prep, simulated[:, number], segment) for number, segment in enumerate(segments)]


def _find_errors(prep: Preprocessor, simulated: np.ndarray, segment: Segment) -> np.ndarray:
    reach = prep.order.reach
    mean = prep.scaling.raw_outputs(simulated[segment.first - reach : len(segment.record) - reach])
    return mean - segment.record.y[segment.first :]


@on_host()
def simulate_cold(chain: Chain, u_bar: Float[AnyArray, "T K Du"]) -> Float[AnyArray, "T K Dy"]:
    """Simulate the mean from cold starts, side by side."""
    start = np.zeros((u_bar.shape[1], chain.lags * sum(chain.latent_dims)))
    return cut_rows(run_means(chain, start, pad_rows(u_bar)), len(u_bar))


def measure_error(
    prep: Preprocessor, scaling: Standardiser, simulated: Float64[np.ndarray, "T Dy"], segment: Segment
) -> float:
    """Root mean square error of a z-scored run, which begins where its window of inputs is full, on the stretch."""
    measured = np.isfinite(segment.record.y[segment.first :])
    with np.errstate(over="ignore", invalid="ignore"):
        squares = ((_find_errors(prep, simulated, segment) / scaling.y_std) ** 2)[measured]
        rms = float(np.sqrt(np.mean(squares))) if len(squares) else float("nan")
    return rms if np.isfinite(rms) or not len(squares) else float("inf")
