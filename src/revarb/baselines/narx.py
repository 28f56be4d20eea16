"""Shared parts of the baselines: checks, rows of measured lags, free runs, and a band from held-out errors."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from revarb.data.dataframes import row_index
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, as_records
from revarb.data.trajectory import Trajectory
from revarb.data.windows import later_states, regressors
from revarb.errors import InputError
from revarb.models.base import Fitted
from revarb.models.summary import SummaryTable
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.simulation.chain import AnyLayer, Chain
from revarb.simulation.mean import run_mean_cold


def require_complete(train: Series | Sequence[Series], model: str) -> tuple[Series, ...]:
    """Return the training records of a model that needs every output value; refuse missing ones."""
    records = as_records(train)
    missing = sum(record.missing for record in records)
    if missing:
        total = sum(record.y.size for record in records)
        raise InputError(
            f"{model} needs every output value, and {missing} of {total} are missing; fill them, or use RGP, which "
            "accepts missing outputs"
        )
    return records


Residuals = Literal["residuals"]


@dataclass(frozen=True, eq=False, repr=False)
class FittedByResiduals(Fitted):
    """A trained model whose `std` is that of its free-run errors on held-out pieces of the training records.

    Attributes
    ----------
    residual_std : array [outputs]
        That standard deviation, z-scored.
    """

    residual_std: Float64[np.ndarray, " Dy"]

    methods = ("residuals",)

    @with_numerics
    def simulate(
        self, u: ArrayLike | None = None, method: Residuals = "residuals", *, steps: int | None = None
    ) -> Trajectory:
        """Simulate freely from a cold start; the band is that of the held-out errors, the same at every step.

        Parameters
        ----------
        u : array-like [T, inputs] or data frame
            Inputs, raw units; None for a system without inputs.
        method : "residuals"
            The only method of this model.
        steps : int, optional
            Number of steps of a system without inputs, instead of `u`.

        Returns
        -------
        Trajectory
            T rows, raw units.

        Raises
        ------
        InputError
            If the inputs do not fit the model.
        """
        if method != "residuals":
            raise InputError(
                f"method must be 'residuals', received {method!r}: this model has a mean, and a band from its errors "
                "on held-out training data"
            )
        mean = np.asarray(self.run_mean(self.preprocessor.check_inputs(u, steps)))
        variance = np.broadcast_to(self.residual_std**2, mean.shape)
        return self.preprocessor.to_trajectory(method, self.skip, mean, variance, index=row_index(u))

    def _own_tables(self) -> tuple[SummaryTable, ...]:
        stds = self.scaling.raw_std(self.residual_std)
        rows = [(name, f"{std:.3g}") for name, std in zip(self.output_names, stds, strict=True)]
        return (SummaryTable("held-out residuals", ("output", "standard deviation"), rows),)

    @abstractmethod
    def run_mean(self, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
        """Simulate the mean freely from a cold start.

        Parameters
        ----------
        z : array [T, inputs]
            Inputs, z-scored.

        Returns
        -------
        array [T, outputs]
            Outputs, z-scored.
        """


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


def simulate_records(prep: Preprocessor, chain: Chain, records: Sequence[Series]) -> list[Float64[np.ndarray, "_ Dy"]]:
    """Simulate the mean of every training record freely from a cold start; z-scored."""
    return [np.asarray(run_mean_cold(chain, prep.order, prep.scaling.inputs(record.u))) for record in records]


@dataclass(frozen=True, eq=False, repr=False)
class FittedNarx(FittedByResiduals, Generic[AnyLayer]):
    """A trained NARX model that predicts a mean only."""

    model: AnyLayer

    def run_mean(self, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
        """Simulate the model on its own past outputs.

        Parameters
        ----------
        z : array [T, inputs]
            Inputs, z-scored.

        Returns
        -------
        array [T, outputs]
            Outputs, z-scored.
        """
        return run_mean_cold(Chain((self.model,), None, self.order.lags), self.order, z)
