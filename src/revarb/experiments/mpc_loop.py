"""The closed loop: plant, estimator, disturbance estimate and controller, sample by sample."""

import time
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.experiments.mpc_controller import Controller, ControlSettings
from revarb.experiments.mpc_estimators import Estimator
from revarb.experiments.mpc_scenario import Scenario
from revarb.experiments.reactor import ReactorState, advance_reactor


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
