"""Model predictive control of a stirred tank reactor with learnt models, beside the plant's own equations and ARX.

The same controller on the plant's own equations, on the model that `revarb.fit` takes, with and without a tightened
limit, and on ARX. The seed draws the record, the noise in the loop, and starts the fits. Needs CasADi.
"""

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import revarb
from revarb.baselines import FittedARX
from studies.mpc.controller import ControlSettings, import_casadi
from studies.mpc.estimators import ARXEstimator, Estimator, PlantEstimator, RGPEstimator
from studies.mpc.loop import ClosedLoop, Excitation, Scenario, Task, draw_scenario, record_plant, record_rest, run_loop
from studies.mpc.reactor import DT, find_rest
from studies.output import GREY, LIMIT, MEASURED, MODEL, finish_figure
from studies.records import raise_if_interrupted
from studies.study import Fit, Result, Study
from studies.tables import Grid, Rows, SeedRange, Target, format_range, names_of, over_seeds, select

NOISE = 0.001  # mol/L, standard deviation of a measured concentration
DISTURBANCE_GAIN = 0.3  # share of a prediction error that is taken for a disturbance of the output, for all models
TIGHTEN = 2.0  # standard deviations by which the limit is lowered in the tightened version

# 50 minutes of jumps over the whole range that the controller may use. At 111 L/min the reaction is about to go out.
EXCITATION = Excitation(samples=500, levels=(85.0, 90.0, 95.0, 100.0, 105.0, 110.0), shortest=4, longest=15)
# Set-points (mol/L) and for how many samples of 0.1 min; in the last one the pump begins to give less than it is told.
TASK = Task(
    start=97.0,  # L/min
    targets=((0.08, 60), (0.12, 80), (0.07, 60), (0.125, 80), (0.10, 100)),
    disturbed_at=320,
    disturbance=-3.0,  # L/min
)
CONTROLLER = ControlSettings(
    horizon=20, lowest=85.0, highest=110.0, limit=0.13, output_scale=0.01, input_scale=5.0, move_weight=0.1,
    slack_weight=100.0,
)  # fmt: skip

# What the study must show, settled before it was run. Errors are medians over the seeds.
OF_PLANT = 1.3  # tracking error of the RGP / that of the plant's own equations; it is also at most that of ARX
MILLISECONDS = 50.0  # of a solve; and no sample above the limit in the tightened version

PLANT, RGP_MPC, TIGHTENED, ARX_MPC = "plant's own equations", "RGP", "RGP, tightened", "ARX"
CONTROLLERS = (PLANT, RGP_MPC, TIGHTENED, ARX_MPC)
SCALE = 1e3  # concentrations are shown in mmol/L


class ModelPredictiveControl(Study):
    """The closed loops of four controllers, seed by seed."""

    name, title = "mpc", "Model predictive control of a stirred tank reactor: tracking, limits, and time"
    protocol = (
        "500 noisy samples identify the plant; receding horizon with limits of input and output, set-point steps and a "
        "disturbance of the input; the same controller and disturbance estimate for all models"
    )
    columns = (
        "plant", "controller", "seed", "model", "fit_seconds", "tracking_rmse", "violations", "largest_violation",
        "samples", "not_solved", "solve_ms", "solve_ms_95", "observer_ms",
    )  # fmt: skip
    notes = (
        "tracking RMSE: concentration without noise minus set-point, all samples. violations: samples above the limit, "
        "in all seeds; largest: by how much. solve: wall time of one optimisation, median and 95th percentile of a "
        "run, medians over the seeds; observer: that of the estimate, with the tightening where there is one.",
        "plant's own equations: the same controller with the equations that simulate the plant, their state by an "
        "extended Kalman filter from the same measurements. ARX: its state is the measured outputs.",
    )
    default_seeds = 3
    concurrent = False  # the loops run alone, so that their times are those of one process
    excitation, task, controller = EXCITATION, TASK, CONTROLLER

    def check_ready(self) -> None:
        """Refuse before minutes of fits where CasADi is missing."""
        import_casadi()

    def fit_models(self, record: revarb.Series, seed: int) -> tuple[Any, FittedARX]:
        """The model that is chosen, and the linear one."""
        chosen = raise_if_interrupted(revarb.fit(record, seed=seed, jobs=self.jobs))
        return chosen, revarb.ARX(input_delay=0).fit(record, seed=seed)

    def list_fits(self) -> list[Fit]:
        """A fit and its closed loops per seed."""
        return [Fit("reactor", "revarb (chosen)", seed) for seed in range(self.seeds)]

    def run_fit(self, fit: Fit) -> Result:
        """Fit the models of a seed, and run all closed loops."""
        seed, begin = fit.seed or 0, time.perf_counter()
        chosen, linear = self.fit_models(record_plant(self.excitation, NOISE, seed), seed)
        if not isinstance(chosen, revarb.FittedRGP):
            raise revarb.ComputationError(
                f"the choice of seed {seed} is a {type(chosen).__name__}, not a recurrent GP, and has no observer"
            )
        taken = type(chosen).__name__ if chosen.choice is None else chosen.choice.taken
        about = {"model": taken, "fit_seconds": time.perf_counter() - begin}
        scenario, loops, rows = draw_scenario(self.task, NOISE, seed), {}, []
        for name in CONTROLLERS:
            loops[name] = self._run_loop(name, chosen, linear, scenario, seed)
            own = about if name in (RGP_MPC, TIGHTENED) else {"model": name, "fit_seconds": None}
            rows.append({"plant": "reactor", "controller": name, "seed": seed, **own,
                         **score_loop(loops[name], scenario, self.controller.limit)})  # fmt: skip
        return Result(rows, (loops, scenario))

    def _run_loop(
        self, name: str, chosen: revarb.FittedRGP, linear: FittedARX, scenario: Scenario, seed: int
    ) -> ClosedLoop:
        rest = find_rest(self.task.start)
        with warnings.catch_warnings():
            # The inputs of the loop keep to the range of the record, but for rounding.
            warnings.filterwarnings("ignore", message=".* leaves its training range")
            estimator = self._make_estimator(name, chosen, linear, seed)
            tighten = TIGHTEN if name == TIGHTENED else 0.0
            return run_loop(estimator, rest, self.task.start, scenario, self.controller, DISTURBANCE_GAIN, tighten)

    def _make_estimator(self, name: str, chosen: revarb.FittedRGP, linear: FittedARX, seed: int) -> Estimator:
        if name == PLANT:
            return PlantEstimator(find_rest(self.task.start), NOISE)
        warm_up = record_rest(self.task, NOISE, seed)
        return ARXEstimator(linear, warm_up) if name == ARX_MPC else RGPEstimator(chosen, warm_up)

    def tables(self, rows: Rows) -> list[Grid]:
        """A row per controller: every seed, and all together."""
        columns = ("controller", "tracking RMSE, mmol/L", "violations", "largest, mmol/L", "solve, ms", "95 %, ms",
                   "observer, ms")  # fmt: skip
        by_seed = {f"seed {seed}": select(rows, seed=seed) for seed in names_of(rows, "seed")}
        return [Grid(title, columns, control_table(own)) for title, own in {**by_seed, "All seeds": rows}.items()]

    def targets(self, rows: Rows) -> list[Target]:
        """Tracking near that of the plant's own equations, no violation when tightened, quick solves."""
        plant, rgp, _, arx = (over_seeds(rows, "tracking_rmse", controller=name).median for name in CONTROLLERS)
        tightened = select(rows, controller=TIGHTENED)
        violations, unsolved = sum(row["violations"] for row in tightened), sum(row["not_solved"] for row in rows)
        times = [over_seeds(rows, "solve_ms", controller=name).median for name in (RGP_MPC, TIGHTENED)]
        return [
            Target("tracking error of the RGP between that of the plant's equations and that of ARX",
                   plant <= rgp <= arx, f"{SCALE * rgp:.3f} between {SCALE * plant:.3f} and {SCALE * arx:.3f} mmol/L"),
            Target(f"at most {OF_PLANT:g} times that of the plant's equations", rgp <= OF_PLANT * plant,
                   f"{rgp / plant:.3f}"),
            Target(f"no violation of the limit, tightened, in {len(tightened)} seeds",
                   len(tightened) > 0 and violations == 0, str(violations)),
            Target(f"a solve under {MILLISECONDS:g} ms (median)", max(times) < MILLISECONDS,
                   f"{times[0]:.1f} ms, tightened {times[1]:.1f} ms"),
            Target("every optimisation converged", unsolved == 0, f"{unsolved} did not"),
        ]  # fmt: skip

    def caption(self, name: str) -> str:
        """What a figure shows."""
        return f"Closed loops, seed {name.removeprefix('mpc_')}."

    def figures(self, rows: Rows, drawn: Mapping[Fit, Any]) -> dict[str, Figure]:
        """The loops of every seed."""
        return {
            f"mpc_{fit.seed}": draw_loops(loops, scenario, self.controller.limit, f"Closed loops, seed {fit.seed}")
            for fit, (loops, scenario) in drawn.items()
        }


def score_loop(loop: ClosedLoop, scenario: Scenario, limit: float) -> dict[str, Any]:
    """Tracking error, violations of the limit, and times of a closed loop."""
    excess = loop.outputs - limit
    milliseconds = 1e3 * loop.solve_seconds
    return {
        "tracking_rmse": float(np.sqrt(np.mean((loop.outputs - scenario.targets) ** 2))),
        "violations": int((excess > 0.0).sum()),
        "largest_violation": float(max(excess.max(), 0.0)),
        "samples": len(loop.outputs),
        "not_solved": len(loop.outputs) - loop.solved,
        "solve_ms": float(np.median(milliseconds)),
        "solve_ms_95": float(np.quantile(milliseconds, 0.95)),
        "observer_ms": float(1e3 * np.median(loop.observer_seconds)),
    }


def control_table(rows: Rows) -> list[list[str]]:
    """A row per controller: error, number and size of violations, and times, as text."""
    return [[name, *_control_cells(select(rows, controller=name))] for name in CONTROLLERS]


def _control_cells(rows: Rows) -> list[str]:
    error, largest = (over_seeds(rows, name) for name in ("tracking_rmse", "largest_violation"))
    times = (over_seeds(rows, name) for name in ("solve_ms", "solve_ms_95", "observer_ms"))
    return [
        format_range(SeedRange(*(SCALE * value for value in error))),
        str(sum(row["violations"] for row in rows)),
        f"{SCALE * largest.high:.2f}",
        *(f"{each.median:.1f}" for each in times),
    ]


COLOURS = {PLANT: MEASURED, ARX_MPC: "#0072b2", RGP_MPC: MODEL, TIGHTENED: "#009e73"}
NEAR = 0.15  # share of the range of the set-points around the limit that the lowest panel shows


def draw_loops(loops: Mapping[str, ClosedLoop], scenario: Scenario, limit: float, title: str = "") -> Figure:
    """Outputs, inputs, and the outputs once more near the limit, with the tightened one."""
    figure = Figure(figsize=(10.0, 8.0), layout="constrained")
    outputs, inputs, near = figure.subplots(3, 1, sharex=True, height_ratios=(2.4, 1.6, 1.6))
    minutes = np.arange(len(scenario.targets)) * DT
    for axes in (outputs, near):
        axes.plot(minutes, scenario.targets, color=GREY, lw=1.0, ls="--", drawstyle="steps-post", label="set-point")
        axes.axhline(limit, color=LIMIT, lw=1.2, label="limit")
        for name, loop in loops.items():
            axes.plot(minutes, loop.outputs, color=COLOURS[name], lw=1.3, label=name)
    for name, loop in loops.items():
        inputs.plot(minutes, loop.inputs, color=COLOURS[name], lw=1.0, drawstyle="steps-post")
    if TIGHTENED in loops:
        lowered = {"color": COLOURS[TIGHTENED], "lw": 1.0, "ls": ":", "label": "tightened limit"}
        near.plot(minutes + DT, loops[TIGHTENED].limits, **lowered)
    _mark_disturbance(outputs, scenario, minutes)
    reach = NEAR * np.ptp(scenario.targets)
    near.set_ylim(limit - 2.0 * reach, limit + reach)
    outputs.set_ylabel("concentration (mol/L)")
    inputs.set_ylabel("coolant (L/min)")
    near.set(ylabel="near the limit", xlabel="time (min)")
    finish_figure(figure, title)
    return figure


def _mark_disturbance(axes: Axes, scenario: Scenario, minutes: np.ndarray) -> None:
    disturbed = np.flatnonzero(scenario.disturbance)
    if len(disturbed):
        begin, size = float(minutes[disturbed[0]]), float(scenario.disturbance[disturbed[0]])
        for each in axes.figure.axes:
            each.axvline(begin, color=GREY, lw=0.8)
        axes.text(begin, 0.02, f" the pump gives {size:+g} L/min", transform=axes.get_xaxis_transform(), fontsize=8)


STUDY = ModelPredictiveControl
