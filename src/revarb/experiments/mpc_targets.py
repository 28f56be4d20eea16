"""What the table of model predictive control must show: tracking errors, violations of the limit, and time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revarb.evaluation.comparison.lines import SeedRange
from revarb.experiments.field_targets import NOTHING, Target
from revarb.report.tables import Grid

PLANT, RGP_MPC, TIGHTENED, ARX_MPC = "plant's own equations", "RGP", "RGP, tightened", "ARX"
CONTROLLERS = (PLANT, RGP_MPC, TIGHTENED, ARX_MPC)
SCALE = 1e3  # concentrations are shown in mmol/L


@dataclass(frozen=True)
class ControlLimits:
    """Limits of the targets."""

    of_plant: float
    violations: int
    milliseconds: float


@dataclass(frozen=True)
class ControlOutcome:
    """The rows of one controller, summarised over the seeds."""

    name: str
    rows: Sequence[Mapping[str, Any]]

    def over_seeds(self, column: str) -> SeedRange:
        """Smallest, median and largest value of a column."""
        values = [row[column] for row in self.rows]
        return SeedRange(min(values), float(np.median(values)), max(values)) if values else NOTHING

    @property
    def violations(self) -> int:
        """Samples above the limit, in all seeds together."""
        return sum(row["violations"] for row in self.rows)


def list_control_outcomes(rows: Sequence[Mapping[str, Any]]) -> dict[str, ControlOutcome]:
    """An outcome per controller."""
    return {name: ControlOutcome(name, [row for row in rows if row["controller"] == name]) for name in CONTROLLERS}


def list_control_targets(outcomes: Mapping[str, ControlOutcome], limits: ControlLimits) -> list[Target]:
    """All targets, with what was found."""
    plant, rgp, arx = (outcomes[name].over_seeds("tracking_rmse").median for name in (PLANT, RGP_MPC, ARX_MPC))
    tightened, found = outcomes[TIGHTENED], f"{SCALE * rgp:.3f} between {SCALE * plant:.3f} and {SCALE * arx:.3f}"
    times = [outcomes[name].over_seeds("solve_ms").median for name in (RGP_MPC, TIGHTENED)]
    return [
        Target("tracking error of the RGP between that of the plant's equations and that of ARX", plant <= rgp <= arx,
               f"{found} mmol/L"),
        Target(f"at most {limits.of_plant:g} times that of the plant's equations", rgp <= limits.of_plant * plant,
               f"{rgp / plant:.3f}"),
        Target(f"no violation of the limit, tightened, in {len(tightened.rows)} seeds",
               len(tightened.rows) > 0 and tightened.violations <= limits.violations, str(tightened.violations)),
        Target(f"a solve under {limits.milliseconds:g} ms (median)", max(times) < limits.milliseconds,
               f"{times[0]:.1f} ms, tightened {times[1]:.1f} ms"),
    ]  # fmt: skip


def control_grid(outcomes: Mapping[str, ControlOutcome], title: str) -> Grid:
    """A row per controller."""
    columns = ("controller", "tracking RMSE, mmol/L", "violations", "largest, mmol/L", "solve, ms", "95 %, ms",
               "observer, ms")  # fmt: skip
    return Grid(title, columns, [[each.name, *control_cells(each)] for each in outcomes.values() if each.rows])


def control_cells(outcome: ControlOutcome) -> list[str]:
    """Error, number and size of violations, and times, as text."""
    error, largest = (outcome.over_seeds(name) for name in ("tracking_rmse", "largest_violation"))
    times = (outcome.over_seeds(name).median for name in ("solve_ms", "solve_ms_95", "observer_ms"))
    low, middle, high = (f"{SCALE * value:.3f}" for value in error)
    return [
        middle if low == high else f"{middle} ({low}–{high})",
        str(outcome.violations),
        f"{SCALE * largest.high:.2f}",
        *(f"{value:.1f}" for value in times),
    ]
