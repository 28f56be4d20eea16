"""Checks that held-out errors do not make: is a candidate stable where it was not trained to be?"""

from collections.abc import Sequence

import numpy as np

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.simulation.chain import Chain
from revarb.training.free_run import cut_cold_runs
from revarb.training.segments import Segment, measure_cold_runs, simulate_cold

MAX_SPREAD = 2.0  # of simulated outputs over the training inputs in reverse, in standard deviations of the output


def is_trusted(
    models: Sequence[tuple[int, Chain, Preprocessor]], records: Sequence[Series], late: Sequence[Segment], scaling
) -> bool:
    """Whether the models (fold, chain, preprocessor) are stable.

    Cold runs from the middle of a record must be better than the training mean, and the training inputs in reverse,
    which have the same size and spectrum, must not drive the outputs far beyond what was measured.
    """
    errors: list[float] = []
    for fold, chain, prep in models:
        if late:
            measured = measure_cold_runs(chain, prep, scaling, late)
            errors += [error for error, segment in zip(measured, late, strict=True) if segment.fold == fold]
        if not _measure_spread(chain, prep, records) <= MAX_SPREAD:
            return False
    return not errors or float(np.mean(np.log(np.maximum(errors, 1e-12)))) < 0.0


def _measure_spread(chain: Chain, prep: Preprocessor, records: Sequence[Series]) -> float:
    # Largest root mean square over the outputs of z-scored runs; infinite or NaN where they diverge.
    reversed_records = [
        Series(record.u[::-1], record.y, record.dt, record.input_names, record.output_names) for record in records
    ]
    runs = cut_cold_runs(prep, reversed_records)
    rows = [len(record) - prep.order.reach for record in records]
    simulated = np.asarray(simulate_cold(chain, runs.u_bar))
    with np.errstate(over="ignore", invalid="ignore"):
        joined = np.concatenate([simulated[:count, number] for number, count in enumerate(rows)])
        return float(np.max(np.sqrt(np.mean(joined**2, axis=0))))
