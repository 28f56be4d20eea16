"""What the NARX models share: rows of measured lags, and free runs of whole training records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple

import numpy as np
from jaxtyping import Float, Float64

from revarb.baselines.residuals import FittedByResiduals
from revarb.frame import Frame
from revarb.free_run import cold_mean
from revarb.numerics import AnyArray
from revarb.series import Series
from revarb.simulate import AnyLayer, Chain
from revarb.windows import later_states, regressors


class NarxRows(NamedTuple):
    """One step ahead: measured past outputs and inputs, and the output that followed; z-scored, records stacked."""

    x_hat: Float64[np.ndarray, "R D"]
    y: Float64[np.ndarray, "R Dy"]


def narx_rows(frame: Frame, records: Sequence[Series]) -> NarxRows:
    """The rows of a NARX model: those of a first hidden layer whose states are the measured outputs."""
    blocks = frame.blocks(records)
    y, u_bar = (np.concatenate(parts) for parts in ([block.y for block in blocks], [block.u_bar for block in blocks]))
    lags, lengths = frame.lags.states, [len(block.y) for block in blocks]
    x_hat = regressors([y], u_bar, lags, lengths)[0]
    return NarxRows(np.asarray(x_hat), np.asarray(later_states(y, lags, lengths)))


def simulated_records(frame: Frame, chain: Chain, records: Sequence[Series]) -> list[Float64[np.ndarray, "_ Dy"]]:
    """Mean-only free runs of whole training records, cold, z-scored."""
    return [np.asarray(cold_mean(chain, frame.lags, frame.scaling.inputs(record.u))) for record in records]


@dataclass(frozen=True, eq=False, repr=False)
class FittedNarx(FittedByResiduals, Generic[AnyLayer]):
    """A trained NARX model without an uncertainty of its own."""

    model: AnyLayer

    def mean_run(self, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
        """The model on its own past outputs."""
        return cold_mean(Chain((self.model,), None, self.lags.states), self.lags, z)
