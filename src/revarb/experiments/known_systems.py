"""Generated systems whose states are known: to compare a learnt transition and its noise with the truth."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from revarb.data.series import Series

States = Float64[np.ndarray, "T Dx"]
Inputs = Float64[np.ndarray, "T Du"]


@dataclass(frozen=True)
class KnownSystem:
    """x_t = f(x_{t−1}, u_{t−1}) + process noise, y_t = x_t + output noise."""

    name: str
    states: int
    inputs: int
    transition: Callable[[States, Inputs], States]
    process_std: float
    output_std: float

    def generate(self, samples: int, seed: int) -> tuple[Series, States]:
        """Generate a record, and the states without output noise."""
        rng = np.random.default_rng(seed)
        u = rng.uniform(-1.0, 1.0, (samples, self.inputs))
        x = np.zeros((samples, self.states))
        x[0] = 0.5
        for t in range(1, samples):
            drive = self.process_std * rng.standard_normal(self.states)
            x[t] = self.transition(x[t - 1 : t], u[t - 1 : t])[0] + drive
        y = x + self.output_std * rng.standard_normal(x.shape)
        return Series(u if self.inputs else None, y), x


def _kink(x: States, u: Inputs) -> States:
    # Ialongo et al. 2019, section 5.
    return 0.8 + (x + 0.2) * (1.0 - 5.0 / (1.0 + np.exp(-2.0 * x)))


def _oscillator(x: States, u: Inputs) -> States:
    # The first state is linear in both, the second one is not.
    position, rate = x.T
    return np.column_stack([0.9 * position + 0.3 * rate, 0.7 * rate - 0.8 * np.sin(2.0 * position) + 0.8 * u[:, 0]])


SYSTEMS = {
    system.name: system
    for system in (
        KnownSystem("kink", 1, 0, _kink, process_std=0.1, output_std=0.2),
        KnownSystem("two states", 2, 1, _oscillator, process_std=0.1, output_std=0.2),
    )
}
