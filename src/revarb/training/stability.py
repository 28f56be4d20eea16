"""A check that held-out errors do not make: does a model stay bounded on inputs that it was not trained on?"""

from collections.abc import Iterable, Sequence

import numpy as np

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.simulation.chain import Chain
from revarb.training.free_run import cut_cold_runs
from revarb.training.segments import simulate_cold

MAX_SPREAD = 2.0  # of simulated outputs over the training inputs in reverse, in standard deviations of the output


def is_stable(models: Iterable[tuple[Chain, Preprocessor]], records: Sequence[Series]) -> bool:
    """Whether the training inputs in reverse drive no model's outputs far beyond what was measured.

    They have the same size and spectrum as the inputs, and a different order.
    """
    return all(_measure_spread(chain, prep, records) <= MAX_SPREAD for chain, prep in models)


def _measure_spread(chain: Chain, prep: Preprocessor, records: Sequence[Series]) -> float:
    # Largest root mean square over the outputs of z-scored runs; infinite where they diverge.
    backwards = [
        Series(record.u[::-1], record.y, record.dt, record.input_names, record.output_names) for record in records
    ]
    simulated = np.asarray(simulate_cold(chain, cut_cold_runs(prep, backwards).u_bar))
    rows = [len(record) - prep.order.reach for record in records]
    with np.errstate(over="ignore", invalid="ignore"):
        joined = np.concatenate([simulated[:count, number] for number, count in enumerate(rows)])
        spread = float(np.max(np.sqrt(np.mean(joined**2, axis=0))))
    return spread if np.isfinite(spread) else float("inf")
