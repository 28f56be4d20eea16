"""What the NARX models share: rows of measured lags, and free runs of whole training records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from revarb.frame import Fitted, Frame
from revarb.free_run import Residuals, cold_mean, residual_trajectory
from revarb.numerics import with_numerics
from revarb.series import Series
from revarb.simulate import AnyLayer, Chain
from revarb.trajectory import Trajectory
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
class FittedNarx(Fitted, Generic[AnyLayer]):
    """A trained NARX model without an uncertainty of its own."""

    model: AnyLayer
    residual_std: Float64[np.ndarray, " Dy"]

    compared = ("residuals",)

    @with_numerics
    def simulate(
        self, u: ArrayLike | None = None, method: Residuals = "residuals", *, steps: int | None = None
    ) -> Trajectory:
        """Free simulation, cold start; the band is as wide as the errors on held-out pieces of the training part."""
        chain = Chain((self.model,), None, self.lags.states)
        mean = cold_mean(chain, self.lags, self.frame.checked_inputs(u, steps))
        return residual_trajectory(self.frame, method, mean, self.residual_std)
