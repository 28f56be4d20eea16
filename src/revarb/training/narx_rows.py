"""Training rows of a NARX model, and free runs over training records."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import later_states, regressors
from revarb.simulation.chain import Chain
from revarb.simulation.mean import run_mean_cold


class NarxRows(NamedTuple):
    """Training rows, z-scored, records stacked: measured past outputs and inputs, and the output that follows them."""

    x_hat: Float64[np.ndarray, "R D"]
    y: Float64[np.ndarray, "R Dy"]


def build_narx_rows(prep: Preprocessor, records: Sequence[Series]) -> NarxRows:
    """Build the rows of a NARX model: those of a first hidden layer whose states are the measured outputs."""
    blocks = prep.blocks(records)
    y, u_bar = (np.concatenate(parts) for parts in ([block.y for block in blocks], [block.u_bar for block in blocks]))
    lags, lengths = prep.order.lags, [len(block.y) for block in blocks]
    x_hat = regressors([y], u_bar, lags, lengths)[0]
    return NarxRows(np.asarray(x_hat), np.asarray(later_states(y, lags, lengths)))


def mark_complete(rows: NarxRows) -> Bool[np.ndarray, " R"]:
    """Mark the rows without a missing value, neither as target nor among the regressors."""
    return np.isfinite(rows.x_hat.sum(axis=1) + rows.y.sum(axis=1))


def simulate_records(prep: Preprocessor, chain: Chain, records: Sequence[Series]) -> list[Float64[np.ndarray, "_ Dy"]]:
    """Simulate the mean of every training record freely from a cold start; z-scored."""
    return [np.asarray(run_mean_cold(chain, prep.order, prep.scaling.inputs(record.u))) for record in records]
