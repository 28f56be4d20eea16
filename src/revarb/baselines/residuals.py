"""What the models without an uncertainty of their own share: a mean-only run, and a band from held-out errors."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from revarb.errors import InputError
from revarb.frame import Fitted
from revarb.numerics import AnyArray, with_numerics
from revarb.trajectory import Trajectory

Residuals = Literal["residuals"]


@dataclass(frozen=True, eq=False, repr=False)
class FittedByResiduals(Fitted):
    """A trained model whose `std` is that of its errors in free runs over held-out pieces of the training part.

    residual_std   that standard deviation, z-scored, one per output
    """

    residual_std: Float64[np.ndarray, " Dy"]

    compared = ("residuals",)

    @with_numerics
    def simulate(
        self, u: ArrayLike | None = None, method: Residuals = "residuals", *, steps: int | None = None
    ) -> Trajectory:
        """Free simulation on the inputs `u` [T, inputs], cold start; the band is as wide as the held-out errors."""
        if method != "residuals":
            raise InputError(
                f"method must be 'residuals', received {method!r}: this model has a mean, and a band from its errors "
                "on held-out training data"
            )
        mean = np.asarray(self.mean_run(self.frame.checked_inputs(u, steps)))
        variance = np.broadcast_to(self.residual_std**2, mean.shape)
        return self.frame.trajectory(method, self.skip, mean, variance)

    @abstractmethod
    def mean_run(self, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
        """The free run on z-scored inputs, z-scored."""
