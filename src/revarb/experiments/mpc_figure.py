"""Figure of the closed loops of one seed: outputs with set-points and limit, and inputs."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from revarb.experiments.mpc_loop import ClosedLoop
from revarb.experiments.mpc_scenario import Scenario
from revarb.experiments.mpc_targets import ARX_MPC, PLANT, RGP_MPC, TIGHTENED
from revarb.experiments.reactor import DT
from revarb.runtime.figure_style import GREY, MEASURED, MODEL, OUTSIDE, finish_figure

COLOURS = {PLANT: MEASURED, ARX_MPC: "#0072b2", RGP_MPC: MODEL, TIGHTENED: "#009e73"}
NEAR = 0.15  # share of the range of the set-points around the limit that the lowest panel shows


def draw_loops(loops: Mapping[str, ClosedLoop], scenario: Scenario, limit: float, title: str = "") -> Figure:
    """Outputs, inputs, and the outputs once more near the limit, with the tightened one."""
    figure = Figure(figsize=(10.0, 8.0), layout="constrained")
    outputs, inputs, near = figure.subplots(3, 1, sharex=True, height_ratios=(2.4, 1.6, 1.6))
    time = np.arange(len(scenario.targets)) * DT
    for axes in (outputs, near):
        _draw_outputs(axes, loops, scenario, limit, time)
    for name, loop in loops.items():
        inputs.plot(time, loop.inputs, color=COLOURS[name], lw=1.0, drawstyle="steps-post")
    if TIGHTENED in loops:
        near.plot(time + DT, loops[TIGHTENED].limits, color=COLOURS[TIGHTENED], lw=1.0, ls=":", label="tightened limit")
    _shade_disturbance(outputs, scenario, time)
    reach = NEAR * np.ptp(scenario.targets)
    near.set_ylim(limit - 2.0 * reach, limit + reach)
    outputs.set_ylabel("concentration (mol/L)")
    inputs.set_ylabel("coolant (L/min)")
    near.set_ylabel("near the limit")
    near.set_xlabel("time (min)")
    finish_figure(figure, title)
    return figure


def _draw_outputs(
    axes: Axes, loops: Mapping[str, ClosedLoop], scenario: Scenario, limit: float, time: np.ndarray
) -> None:
    axes.plot(time, scenario.targets, color=GREY, lw=1.0, ls="--", drawstyle="steps-post", label="set-point")
    axes.axhline(limit, color=OUTSIDE, lw=1.2, label="limit")
    for name, loop in loops.items():
        axes.plot(time, loop.outputs, color=COLOURS[name], lw=1.3, label=name)


def _shade_disturbance(axes: Axes, scenario: Scenario, time: np.ndarray) -> None:
    disturbed = np.flatnonzero(scenario.disturbance)
    if len(disturbed):
        begin, size = float(time[disturbed[0]]), float(scenario.disturbance[disturbed[0]])
        for each in axes.figure.axes:
            each.axvline(begin, color=GREY, lw=0.8)
        axes.text(begin, 0.02, f" the pump gives {size:+g} L/min", transform=axes.get_xaxis_transform(), fontsize=8)
