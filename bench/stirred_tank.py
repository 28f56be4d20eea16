"""A generator of long records: a stirred-tank reactor whose coolant flow changes in random steps.

The equations and constants are the textbook exothermic reactor that the DaISy record "cstr" was simulated with
(Lightbody & Irwin 1997, "Nonlinear control structures based on embedded neural system models").
"""

import math

import numpy as np

from revarb.data.series import Series

DT = 0.1  # minutes between samples
SUBSTEPS = 4  # of the Runge-Kutta rule per sample
FLOWS = (88.0, 108.0)  # l/min; with much more coolant the reaction goes out
HOLDS = (10, 80)  # samples between two steps of the flow
NOISE = 0.01  # standard deviation of the measurement noise, in those of the outputs
SETTLE = 100  # samples that are left out: the tank comes from its rest point

State = tuple[float, float]  # concentration (mol/l) and temperature (K)
REST: State = (0.0836, 440.2)


def make_record(samples: int, seed: int) -> Series:
    """Simulate a record: coolant flow in, concentration and temperature out, with measurement noise."""
    rng = np.random.default_rng(seed)
    flow = _draw_flow(samples + SETTLE, rng)
    states = np.empty((len(flow), 2))
    state = REST
    for sample, litres in enumerate(flow.tolist()):
        states[sample] = state
        state = _advance(state, litres)
    y = states + NOISE * states.std(0) * rng.standard_normal(states.shape)
    return Series(flow[SETTLE:], y[SETTLE:], DT * 60.0, ["coolant"], ["concentration", "temperature"])


def _draw_flow(samples: int, rng: np.random.Generator) -> np.ndarray:
    holds = rng.integers(*HOLDS, size=1 + samples // HOLDS[0])
    return np.repeat(rng.uniform(*FLOWS, size=len(holds)), holds)[:samples]


def _advance(state: State, flow: float) -> State:
    # One sample with the flow held: the classical Runge-Kutta rule.
    h = DT / SUBSTEPS
    for _ in range(SUBSTEPS):
        k1 = _slope(state, flow)
        k2 = _slope(_add(state, k1, h / 2.0), flow)
        k3 = _slope(_add(state, k2, h / 2.0), flow)
        k4 = _slope(_add(state, k3, h), flow)
        for slope, weight in ((k1, 1.0), (k2, 2.0), (k3, 2.0), (k4, 1.0)):
            state = _add(state, slope, weight * h / 6.0)
    return state


def _add(state: State, slope: State, step: float) -> State:
    return state[0] + step * slope[0], state[1] + step * slope[1]


def _slope(state: State, flow: float) -> State:
    concentration, temperature = state
    reaction = concentration * math.exp(-1e4 / temperature)
    cooling = 0.01 * flow * (1.0 - math.exp(-700.0 / flow)) * (350.0 - temperature)
    return 1.0 - concentration - 7.2e10 * reaction, 350.0 - temperature + 1.44e13 * reaction + cooling
