"""Model predictive control of a stirred tank reactor with learnt models, beside the plant's own equations and ARX."""

import time
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from revarb.baselines.arx import ARX
from revarb.data.series import Series
from revarb.errors import ComputationError
from revarb.experiments.common import raise_if_interrupted, read_settings
from revarb.experiments.experiment import Experiment, Part, Report
from revarb.experiments.mpc_controller import ControlSettings, import_casadi
from revarb.experiments.mpc_estimators import ARXEstimator, Estimator, PlantEstimator, RGPEstimator
from revarb.experiments.mpc_figure import draw_loops
from revarb.experiments.mpc_loop import ClosedLoop, run_loop
from revarb.experiments.mpc_scenario import Excitation, Scenario, Task, draw_scenario, record_plant, record_rest
from revarb.experiments.mpc_targets import (
    ARX_MPC,
    CONTROLLERS,
    PLANT,
    RGP_MPC,
    TIGHTENED,
    ControlLimits,
    control_grid,
    list_control_outcomes,
    list_control_targets,
)
from revarb.experiments.outlier_targets import target_grid
from revarb.experiments.reactor import find_rest
from revarb.models.base import Fitted
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.report.tables import Grid
from revarb.training.choose import fit

NOTES = (
    "tracking RMSE: concentration without noise minus set-point, all samples. violations: samples above the limit, in "
    "all seeds; largest: by how much. solve: wall time of one optimisation, median and 95th percentile of a run, "
    "medians over the seeds; observer: that of the estimate, with the tightening where there is one.",
    "plant's own equations: the same controller with the equations that simulate the plant, their state by an extended "
    "Kalman filter from the same measurements. ARX: its state is the measured outputs.",
)


@dataclass(frozen=True, eq=False)
class ControlPart(Part):
    """The closed loops of one seed."""

    rows: list[dict[str, Any]]
    loops: Mapping[str, ClosedLoop]
    scenario: Scenario
    limit: float

    def grids(self) -> list[Grid]:
        """A row per controller."""
        return [control_grid(list_control_outcomes(self.rows), f"seed {self.rows[0]['seed']}")]

    def sentences(self) -> list[str]:
        """Which model was taken."""
        taken = next(row for row in self.rows if row["controller"] == RGP_MPC)
        return [f"taken: {taken['model']}, after {taken['fit_seconds']:.0f} s"]

    def figures(self) -> dict[str, Figure]:
        """The loops of this seed."""
        seed = self.rows[0]["seed"]
        return {f"mpc_{seed}": draw_loops(self.loops, self.scenario, self.limit, f"Closed loops, seed {seed}")}


@dataclass(frozen=True, eq=False)
class ControlSummary(Part):
    """All seeds together, and which targets are reached. Its rows are those of the other parts, so it adds none."""

    all_rows: Sequence[Mapping[str, Any]]
    limits: ControlLimits

    @property
    def rows(self) -> list[dict[str, Any]]:  # pyright: ignore[reportIncompatibleVariableOverride] (read only)
        """Nothing to write."""
        return []

    def grids(self) -> list[Grid]:
        """A row per controller, and every target with what was found."""
        outcomes = list_control_outcomes(self.all_rows)
        targets = list_control_targets(outcomes, self.limits)
        return [control_grid(outcomes, "All seeds"), target_grid(targets, "Targets")]

    def sentences(self) -> list[str]:
        """How many targets are reached."""
        targets = list_control_targets(list_control_outcomes(self.all_rows), self.limits)
        return [f"{sum(target.met for target in targets)} of {len(targets)} targets are reached."]


@dataclass(frozen=True)
class ControlTable(Experiment[Part]):
    """The experiment with the settings of mpc.toml."""

    name: ClassVar[str] = "mpc"
    protocol: ClassVar[str] = (
        "500 noisy samples identify the plant; receding horizon with limits of input and output, set-point steps and a "
        "disturbance of the input; the same controller and disturbance estimate for all models"
    )

    title: str
    noise: float
    disturbance_gain: float
    tighten: float
    excitation: Excitation
    task: Task
    controller: ControlSettings
    limits: ControlLimits

    def count_steps(self, seeds: int) -> int:
        """A fit and the loops of every seed."""
        return seeds * (1 + len(CONTROLLERS))

    def fit_models(self, record: Series, seed: int, jobs: int) -> tuple[Fitted, FittedARX]:
        """The model that is chosen, and the linear one."""
        return fit(record, seed=seed, jobs=jobs), ARX(input_delay=0).fit(record, seed=seed)

    def run(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[Part]:
        """Run the seeds one after the other, then give a summary; `jobs` processes share the fits.

        The loops run alone, so that their times are those of one process.
        """
        import_casadi()  # before minutes of fits
        rows: list[dict[str, Any]] = []
        for seed in range(seeds):
            part = self._run_seed(seed, jobs, report)
            rows += part.rows
            yield part
        yield ControlSummary(rows, self.limits)

    def _run_seed(self, seed: int, jobs: int, report: Report) -> ControlPart:
        record, begin = record_plant(self.excitation, self.noise, seed), time.perf_counter()
        chosen, linear = self.fit_models(record, seed, jobs)
        about = {"model": _describe(raise_if_interrupted(chosen)), "fit_seconds": time.perf_counter() - begin}
        report(f"seed {seed}: {about['model']}")
        scenario, loops, rows = draw_scenario(self.task, self.noise, seed), {}, []
        for name in CONTROLLERS:
            loops[name] = self._run_loop(name, chosen, linear, scenario, seed)
            own = about if name in (RGP_MPC, TIGHTENED) else {"model": name, "fit_seconds": None}
            rows.append({"plant": "reactor", "controller": name, "seed": seed, **own,
                         **score_loop(loops[name], scenario, self.controller.limit)})  # fmt: skip
            report(f"seed {seed}: {name}")
        return ControlPart(rows, loops, scenario, self.controller.limit)

    def _run_loop(self, name: str, chosen: Fitted, linear: FittedARX, scenario: Scenario, seed: int) -> ClosedLoop:
        rest = find_rest(self.task.start)
        with warnings.catch_warnings():
            # The inputs of the loop keep to the range of the record, but for rounding.
            warnings.filterwarnings("ignore", message=".* leaves its training range")
            return run_loop(
                self._make_estimator(name, chosen, linear, seed), rest, self.task.start, scenario, self.controller,
                self.disturbance_gain, self.tighten if name == TIGHTENED else 0.0,
            )  # fmt: skip

    def _make_estimator(self, name: str, chosen: Fitted, linear: FittedARX, seed: int) -> Estimator:
        if name == PLANT:
            return PlantEstimator(find_rest(self.task.start), self.noise)
        warm_up = record_rest(self.task, self.noise, seed)
        if name == ARX_MPC:
            return ARXEstimator(linear, warm_up)
        if isinstance(chosen, FittedRGP):
            return RGPEstimator(chosen, warm_up)
        raise ComputationError(f"the choice of seed {seed} is a {type(chosen).__name__}, not a recurrent GP")

    def notes(self, seeds: int) -> list[str]:
        """The protocol, and how to read the tables."""
        return [*super().notes(seeds), *NOTES]


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


def load_mpc() -> ControlTable:
    """Load the experiment that ships with the package."""
    values = tomllib.loads(read_settings("mpc.toml"))
    excitation, task = values.pop("excitation"), values.pop("task")
    return ControlTable(
        **{key: values[key] for key in ("title", "noise", "disturbance_gain", "tighten")},
        excitation=Excitation(**{**excitation, "levels": tuple(excitation["levels"])}),
        task=Task(**{**task, "targets": tuple((value, samples) for value, samples in task["targets"])}),
        controller=ControlSettings(**values["controller"]),
        limits=ControlLimits(**values["limits"]),
    )


def _describe(model: Fitted) -> str:
    return type(model).__name__ if model.choice is None else model.choice.taken
