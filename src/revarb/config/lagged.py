"""The part of a configuration that all models with lags share."""

from dataclasses import dataclass

from revarb.data.windows import Order
from revarb.errors import check_integer


@dataclass(frozen=True)
class Lagged:
    """The part of a configuration that all models with lags share.

    lags         L: how many past states (of a NARX model: outputs) are seen
    input_lags   L_u: how many past inputs are seen
    input_delay  age of the newest input seen: 1 as in the paper, 0 for direct feedthrough, k for dead time
    """

    lags: int = 10
    input_lags: int = 10
    input_delay: int = 1

    def __post_init__(self):
        for name, least in (("lags", 1), ("input_lags", 1), ("input_delay", 0)):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), least))

    def order_for(self, inputs: int) -> Order:
        """How far back the model looks when the system has so many inputs."""
        return Order(self.lags, self.input_lags if inputs else 0, self.input_delay)
