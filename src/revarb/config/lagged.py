"""The part of a configuration that all models with lags share."""

from dataclasses import dataclass

from revarb.data.windows import Order
from revarb.errors import check_integer


@dataclass(frozen=True)
class Lagged:
    """The part of a configuration that all models with lags share.

    Parameters
    ----------
    lags : int
        L: number of past states (of a NARX model: outputs) among the regressors.
    input_lags : int
        L_u: number of past inputs among the regressors.
    input_delay : int
        Age of the newest input: 1 as in the paper, 0 for direct feedthrough, k for a dead time of k samples.
    """

    lags: int = 10
    input_lags: int = 10
    input_delay: int = 1

    def __post_init__(self):
        for name, least in (("lags", 1), ("input_lags", 1), ("input_delay", 0)):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), least))

    def order_for(self, inputs: int) -> Order:
        """The order of the model for a system with this number of inputs.

        Parameters
        ----------
        inputs : int
            Number of inputs of the system.

        Returns
        -------
        Order
            `lags`, `input_lags` and `input_delay`; `input_lags` is 0 for a system without inputs.
        """
        return Order(self.lags, self.input_lags if inputs else 0, self.input_delay)
