"""Bands beyond the training data: generated plants whose test part runs 1.2 to 2 times further than their training.

The seed draws the parameters of the plant, its inputs and its noise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

import revarb

TRAINING_ROWS = 500
INSIDE, BEYOND, RETURN = 150, 190, 60  # rows of the test record: as in training, further, as in training again
WARM_UP = 200  # rows before every record, which are dropped: it begins in the middle of an operation
VARIATION = 0.2  # of every parameter, as a share of it
NOISE = (0.01, 0.02)  # standard deviation, as a share of that of the training output
FACTOR = (1.2, 2.0)  # largest output of the test record, as a multiple of that of the training record, from rest
SCALES = np.geomspace(1.0, 8.0, 209)  # of the first input beyond training: the smallest that reaches the factor
SUBSTEPS = 4  # of the method of Runge and Kutta, for every sample

Derivative = Callable[..., tuple[np.ndarray, ...]]  # of the states, from states, inputs and parameters


@dataclass(frozen=True)
class Plant:
    """A plant as differential equations, its parameters before they are varied, and how it is excited."""

    derivative: Derivative
    parameters: Mapping[str, float]
    limits: Mapping[str, tuple[float, float]]  # of every input in training; only the first one goes further in the test
    hold: tuple[int, int]  # samples between two steps of the inputs
    dt: float
    output: str
    column: int  # of the output among the states
    start: tuple[float, ...]  # states before the warm-up
    rest: float = 0.0  # the output without an input


def derive_motor(current, speed, voltage, *, resistance, inductance, constant, saturation, inertia, viscous, coulomb):
    """Torque saturates with the current; viscous and Coulomb friction, smooth around standstill."""
    torque = constant * saturation * np.tanh(current / saturation)
    friction = viscous * speed + coulomb * np.tanh(speed / 2.0)
    return (voltage - resistance * current - constant * speed) / inductance, (torque - friction) / inertia


def derive_tanks(upper, lower, voltage, *, pump, area, upper_outlet, lower_outlet, weir, rim):
    """One tank drains into the other (Torricelli), which overflows above its rim."""
    outflows = [outlet * np.sqrt(2.0 * 981.0 * np.maximum(level, 0.0))
                for outlet, level in ((upper_outlet, upper), (lower_outlet, lower))]  # fmt: skip
    over = weir * np.maximum(lower - rim, 0.0) ** 1.5
    return (pump * voltage - outflows[0]) / area, (outflows[0] - outflows[1] - over) / area


def derive_room(radiator, room, power, outdoor, *, radiator_capacity, emission, capacity, loss):
    """A radiator emits with the power 1.3 of its excess temperature; the room loses heat to the outside."""
    excess = radiator - room
    emitted = emission * np.sign(excess) * np.abs(excess) ** 1.3
    return (power - emitted) / radiator_capacity, (emitted - loss * (room - outdoor)) / capacity


def derive_duffing(position, velocity, force, *, stiffness, hardening, damping):
    """A unit mass on a spring that becomes stiffer."""
    return velocity, force - damping * velocity - stiffness * position - hardening * position**3


PLANTS = {
    "dc_motor": Plant(
        derive_motor,
        {"resistance": 1.0, "inductance": 0.01, "constant": 0.1, "saturation": 7.0, "inertia": 0.002,
         "viscous": 0.004, "coulomb": 0.05},
        {"voltage": (-6.0, 6.0)}, (8, 30), 0.02, "speed", 1, (0.0, 0.0),
    ),
    "tanks": Plant(
        derive_tanks,
        {"pump": 9.0, "area": 60.0, "upper_outlet": 0.36, "lower_outlet": 0.32, "weir": 4.0},
        {"voltage": (1.0, 4.0)}, (10, 35), 4.0, "level", 1, (2.0, 2.0),
    ),
    "heated_room": Plant(  # kW, kW min / K, min; the room's time constant is that of 40 to 90 samples
        derive_room,
        {"radiator_capacity": 1.2, "emission": 0.03, "capacity": 30.0, "loss": 0.1},
        {"power": (0.0, 2.0), "outdoor": (0.0, 6.0)}, (20, 50), 5.0, "temperature", 1, (15.0, 15.0), rest=3.0,
    ),
    "duffing": Plant(
        derive_duffing,
        {"stiffness": 1.0, "hardening": 0.2, "damping": 0.4},
        {"force": (-1.0, 1.0)}, (8, 25), 0.3, "position", 0, (0.0, 0.0),
    ),
}  # fmt: skip


def draw_plant(name: str, seed: int) -> tuple[revarb.Series, revarb.Series]:
    """A training record of 500 rows, and a test record of 400 rows that leaves its range."""
    if name not in PLANTS:
        raise revarb.InputError(f"no plant {name!r}; there are {', '.join(PLANTS)}")
    plant, rng = PLANTS[name], np.random.default_rng([seed, list(PLANTS).index(name)])
    factor = rng.uniform(*FACTOR)
    parameters = {key: value * rng.uniform(1.0 - VARIATION, 1.0 + VARIATION) for key, value in plant.parameters.items()}
    u_train = _draw_inputs(plant, (WARM_UP, TRAINING_ROWS), rng)
    if name == "tanks":
        levels = _integrate(plant, {**parameters, "rim": np.inf}, u_train[..., None])[:, plant.column]
        parameters["rim"] = 0.5 * (1.0 + factor) * levels.max()  # above training, below the test
    y_train = _integrate(plant, parameters, u_train[..., None])[WARM_UP:, plant.column, 0]
    u_test = _draw_inputs(plant, (WARM_UP, INSIDE, BEYOND, RETURN), rng)[..., None].repeat(len(SCALES), axis=2)
    u_test[WARM_UP + INSIDE : -RETURN, 0] *= SCALES
    y_test = _integrate(plant, parameters, u_test)[WARM_UP:, plant.column]
    reached = np.abs(y_test - plant.rest).max(axis=0) / np.abs(y_train - plant.rest).max()
    if reached.max() < factor:
        raise revarb.ComputationError(f"{name}, seed {seed}: no input takes the output {factor:.2f} times as far")
    chosen = int(np.argmax(reached >= factor))
    noise = rng.uniform(*NOISE) * y_train.std()

    def measure(u, y):
        y = y + noise * rng.standard_normal(len(y))
        return revarb.Series(u[WARM_UP:], y, plant.dt, tuple(plant.limits), (plant.output,))

    return measure(u_train, y_train), measure(u_test[..., chosen], y_test[:, chosen])


def _draw_inputs(plant: Plant, parts: tuple[int, ...], rng: np.random.Generator) -> Float64[np.ndarray, "N Du"]:
    # Every part has steps of its own.
    columns = [np.concatenate([_draw_steps(rows, plant.hold, limits, rng) for rows in parts])
               for limits in plant.limits.values()]  # fmt: skip
    return np.stack(columns, axis=1)


def _draw_steps(
    rows: int, hold: tuple[int, int], limits: tuple[float, float], rng: np.random.Generator
) -> Float64[np.ndarray, " N"]:
    # Levels at equal distances, both limits among them, in random order.
    held = rng.integers(*hold, size=rows // hold[0] + 1, endpoint=True)
    held = held[: np.searchsorted(np.cumsum(held), rows) + 1]
    return np.repeat(rng.permutation(np.linspace(*limits, len(held))), held)[:rows]


def _integrate(plant: Plant, parameters: Mapping, u: Float64[np.ndarray, "N Du S"]) -> Float64[np.ndarray, "N Dx S"]:
    # By the method of Runge and Kutta, for all S inputs at once; every input is held for a sample.
    def derive(states, inputs):
        return np.array(plant.derivative(*states, *inputs, **parameters))

    states = np.repeat(np.array(plant.start)[:, None], u.shape[2], axis=1)
    found, step = np.empty((len(u), *states.shape)), plant.dt / SUBSTEPS
    for k, inputs in enumerate(u):
        found[k] = states
        for _ in range(SUBSTEPS):
            first = derive(states, inputs)
            second = derive(states + 0.5 * step * first, inputs)
            third = derive(states + 0.5 * step * second, inputs)
            fourth = derive(states + step * third, inputs)
            states = states + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
    return found
