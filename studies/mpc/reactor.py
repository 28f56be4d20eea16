"""A stirred tank reactor: the nonlinear plant of the control experiment.

An irreversible exothermic reaction A → B in a continuous stirred tank, cooled by a coolant flow. The equations and
numbers are those of Morningred, Paden, Seborg and Mellichamp, "An adaptive nonlinear predictive controller", Chemical
Engineering Science 47 (1992), 755 to 762, who also gave the plant of DaISy's record 98-002 (`cstr`). The code is ours.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

DT = 0.1  # min, the sampling interval
SUBSTEPS = 5  # of the Runge-Kutta method in a sample
FLOW, VOLUME = 100.0, 100.0  # of the feed, L/min, and of the tank, L
FEED_CONCENTRATION, FEED_TEMPERATURE, COOLANT_TEMPERATURE = 1.0, 350.0, 350.0  # mol/L, K, K
RATE, ACTIVATION = 7.2e10, 1e4  # 1/min, K
HEAT = 200.0  # K L/mol: −ΔH / (ρ c_p)
COOLING, TRANSFER = 0.01, 700.0  # 1/L: ρ_c c_pc / (ρ c_p V), and L/min: h A / (ρ_c c_pc)
REST_SAMPLES = 2000  # after which the reactor is at rest


class ReactorState(NamedTuple):
    """Concentration of A in the tank (mol/L), the output, and its temperature (K). Numbers, or symbols of CasADi."""

    concentration: Any
    temperature: Any


def advance_reactor(
    state: ReactorState, coolant: Any, exp: Callable[[Any], Any] = math.exp, substeps: int = SUBSTEPS
) -> ReactorState:
    """The state one sample later, with a constant coolant flow (L/min); `exp` is that of the kind of numbers."""
    step = DT / substeps
    for _ in range(substeps):
        first = _find_rates(state, coolant, exp)
        second = _find_rates(_move(state, first, 0.5 * step), coolant, exp)
        third = _find_rates(_move(state, second, 0.5 * step), coolant, exp)
        fourth = _find_rates(_move(state, third, step), coolant, exp)
        state = ReactorState(*(
            x + step / 6.0 * (a + 2.0 * b + 2.0 * c + d)
            for x, a, b, c, d in zip(state, first, second, third, fourth, strict=True)
        ))  # fmt: skip
    return state


def find_rest(coolant: float) -> ReactorState:
    """The state at rest with a constant coolant flow, from the burning side: above 111 L/min the reaction goes out."""
    state = ReactorState(0.1, 438.5)
    for _ in range(REST_SAMPLES):
        state = advance_reactor(state, coolant)
    return state


def run_reactor(state: ReactorState, coolant: Float64[np.ndarray, " T"]) -> Float64[np.ndarray, " T"]:
    """Concentrations after every sample of a coolant flow."""
    concentrations = []
    for flow in coolant.tolist():
        state = advance_reactor(state, flow)
        concentrations.append(state.concentration)
    return np.array(concentrations)


def _move(state: ReactorState, rates: tuple[Any, Any], time: float) -> ReactorState:
    return ReactorState(state.concentration + time * rates[0], state.temperature + time * rates[1])


def _find_rates(state: ReactorState, coolant: Any, exp: Callable[[Any], Any]) -> tuple[Any, Any]:
    concentration, temperature = state
    reaction = RATE * concentration * exp(-ACTIVATION / temperature)
    cooling = COOLING * coolant * (1.0 - exp(-TRANSFER / coolant)) * (COOLANT_TEMPERATURE - temperature)
    renewal = FLOW / VOLUME
    return (
        renewal * (FEED_CONCENTRATION - concentration) - reaction,
        renewal * (FEED_TEMPERATURE - temperature) + HEAT * reaction + cooling,
    )
