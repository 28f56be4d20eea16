"""The closed loop: records that identify the plant, what the loop must do, and the loop itself, sample by sample."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb import Series, Window
from studies.mpc.controller import Controller, ControlSettings
from studies.mpc.estimators import Estimator
from studies.mpc.reactor import DT, ReactorState, advance_reactor, find_rest, run_reactor

INPUT, OUTPUT = "coolant", "concentration"
WARM_UP = 40  # measured samples at rest before the loop is closed


@dataclass(frozen=True)
class Excitation:
    """A random input that jumps between levels, held for random times."""

    samples: int
    levels: tuple[float, ...]
    shortest: int  # samples for which a level is held
    longest: int

    def draw(self, rng: np.random.Generator) -> Float64[np.ndarray, " T"]:
        """The input."""
        flows: list[float] = []
        while len(flows) < self.samples:
            flows += [float(rng.choice(self.levels))] * int(rng.integers(self.shortest, self.longest + 1))
        return np.array(flows[: self.samples])


@dataclass(frozen=True)
class Task:
    """What the loop must do: set-points with their numbers of samples, and a disturbance of the input."""

    start: float  # input before the loop is closed
    targets: Sequence[tuple[float, int]]
    disturbed_at: int  # sample
    disturbance: float  # added to the input, unseen by the controller


class Scenario(NamedTuple):
    """A task with its noise, a row per sample."""

    targets: Float64[np.ndarray, " T"]
    disturbance: Float64[np.ndarray, " T"]
    noise: Float64[np.ndarray, " T"]


def record_plant(excitation: Excitation, noise: float, seed: int) -> Series:
    """The record for identification: a row has an input, and the output measured when it has acted for a sample."""
    rng = np.random.default_rng([seed, 0])
    u = excitation.draw(rng)
    y = run_reactor(find_rest(float(np.mean(excitation.levels))), u)
    return _make_series(Series, u, y + noise * rng.standard_normal(len(y)))


def record_rest(task: Task, noise: float, seed: int) -> Window:
    """The measured samples before the loop is closed: the plant is at rest."""
    rng = np.random.default_rng([seed, 1])
    y = find_rest(task.start).concentration + noise * rng.standard_normal(WARM_UP)
    return _make_series(Window, np.full(WARM_UP, task.start), y)


def draw_scenario(task: Task, noise: float, seed: int) -> Scenario:
    """The task of a seed, which draws the noise."""
    targets = np.concatenate([np.full(samples, value) for value, samples in task.targets])
    disturbance = np.where(np.arange(len(targets)) >= task.disturbed_at, task.disturbance, 0.0)
    return Scenario(targets, disturbance, noise * np.random.default_rng([seed, 2]).standard_normal(len(targets)))


def _make_series(kind: type, u: Float64[np.ndarray, " T"], y: Float64[np.ndarray, " T"]):
    return kind(u, y, DT, (INPUT,), (OUTPUT,))


class ClosedLoop(NamedTuple):
    """A run of the loop: a row per sample."""

    outputs: Float64[np.ndarray, " T"]  # of the plant, without noise
    inputs: Float64[np.ndarray, " T"]
    limits: Float64[np.ndarray, " T"]  # of the output, as the controller had it for the next sample
    solve_seconds: Float64[np.ndarray, " T"]
    observer_seconds: Float64[np.ndarray, " T"]
    solved: int  # samples whose optimisation converged


def run_loop(
    estimator: Estimator,
    plant: ReactorState,
    last: float,
    scenario: Scenario,
    settings: ControlSettings,
    gain: float,
    tighten: float = 0.0,
) -> ClosedLoop:
    """Run the closed loop.

    `gain` is the share of a prediction error that is taken for a disturbance of the output, and added to all
    predictions: without it a wrong static gain would be an offset. `tighten` lowers the limit of the output by as many
    standard deviations of the outputs along the previous plan.
    """
    controller, rows, offset = Controller(estimator.step, settings), [], 0.0
    plan = np.full(settings.horizon, last)
    for target, disturbance, noise in zip(scenario.targets, scenario.disturbance, scenario.noise, strict=True):
        plant = advance_reactor(plant, last + disturbance)  # of the input of the last sample
        output = float(plant.concentration)
        measured, begin = output + noise, time.perf_counter()
        error = measured - offset - estimator.predict(last)
        estimator.correct(measured - offset)
        offset += gain * error
        limits = np.full(settings.horizon, settings.limit)
        if tighten:
            limits = limits - tighten * estimator.predict_std(plan)
        state, observed = estimator.state(), time.perf_counter() - begin
        solution = controller.solve(state, last, offset, float(target), limits)
        last, plan = float(solution.inputs[0]), np.append(solution.inputs[1:], solution.inputs[-1])
        rows.append((output, last, limits[0], solution.seconds, observed, solution.solved))
    outputs, inputs, limited, solving, observing, solved = (np.array(column) for column in zip(*rows, strict=True))
    return ClosedLoop(outputs, inputs, limited, solving, observing, int(solved.sum()))
