"""Trained models with a mean, and a band from their free-run errors on held-out pieces of the training records."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Literal

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from revarb.data.trajectory import Trajectory
from revarb.errors import InputError
from revarb.models.base import Fitted
from revarb.models.summary import SummaryTable
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.simulation.chain import AnyLayer, Chain
from revarb.simulation.mean import run_mean_cold

ResidualMethod = Literal["residuals"]


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
        self, u: ArrayLike | None = None, method: ResidualMethod = "residuals", *, steps: int | None = None
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
        check_method(method)
        mean = np.asarray(self.run_mean(self.preprocessor.check_inputs(u, steps)))
        variance = np.broadcast_to(self.residual_std**2, mean.shape)
        return self.preprocessor.add_inputs(self.preprocessor.to_trajectory(method, self.skip, mean, variance), u)

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


@dataclass(frozen=True, eq=False, repr=False)
class FittedNarx(FittedByResiduals, Generic[AnyLayer]):
    """A trained NARX model that predicts a mean only."""

    model: AnyLayer

    @cached_property
    def chain(self) -> Chain[AnyLayer]:
        """The regression as a chain of one layer, whose states are the outputs."""
        return Chain((self.model,), None, self.order.lags)

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
        return run_mean_cold(self.chain, self.order, z)


def check_method(method: object) -> None:
    """Refuse any method of `simulate` but "residuals"."""
    if method != "residuals":
        raise InputError(
            f"method must be 'residuals', received {method!r}: this model has a mean, and a band from its errors on "
            "held-out training data"
        )
