"""The surface that every trained model has."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.optim.status import Status


@dataclass(frozen=True, eq=False, repr=False)
class Fitted(ABC):
    """A trained model of any kind.

    frame    names, sampling, scaling and lags
    status   how its training ended
    seed     what the training drew its random numbers from
    """

    preprocessor: Preprocessor
    status: Status
    seed: int

    methods: ClassVar[tuple[str, ...]]
    """The methods of `simulate` that a comparison shows, the plainest (a mean-only run) first."""

    @abstractmethod
    def simulate(self, u: ArrayLike | None = None, method: Any = ..., *, steps: int | None = ...) -> Trajectory:
        """Free simulation on the inputs `u` [T, inputs], cold start, raw units in and out; one row out per row in."""

    @property
    def scaling(self) -> Standardiser:
        """The scaling of the training data."""
        return self.preprocessor.scaling

    @property
    def order(self) -> Order:
        """How far back the model looks: `lags`, `input_lags`, `input_delay`."""
        return self.preprocessor.order

    @property
    def skip(self) -> int:
        """Rows of a cold run that are left out of the scores."""
        return self.preprocessor.skip

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.preprocessor.input_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.preprocessor.output_names

    @property
    def dt(self) -> float:
        """Sampling interval."""
        return self.preprocessor.dt
