"""What the table of outliers must show: errors beside those without outliers, and outliers that are found."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from revarb.evaluation.comparison.lines import Line, SeedRange, default_lines, mean_only_lines, summarise
from revarb.experiments.field_targets import NOTHING, Target
from revarb.experiments.spoiling import CLEAN, KINDS, SPIKES, Condition
from revarb.report.tables import Grid, format_percent, format_range

GAUSSIAN, STUDENT = "REVARB, Gaussian", "REVARB, Student-t"
DETECTION = ("found", "listed", "listed_falsely")
NO_OUTLIERS = Condition(CLEAN, 0.0)


@dataclass(frozen=True)
class OutlierLimits:
    """Limits of the targets; ratios are of medians over the seeds, by the mean-only run."""

    robust: float  # Student-t with spikes / Gaussian without outliers,
    robust_share: float  # at this share of spikes,
    robust_records: tuple[str, ...]  # on these records
    clean: float  # Student-t / Gaussian, both without outliers
    found: float  # share of the spikes that are found at 5 % false alarms


@dataclass(frozen=True)
class OutlierOutcome:
    """The rows of one data set, summarised over the seeds."""

    name: str
    rows: Sequence[Mapping[str, Any]]

    @property
    def models(self) -> list[str]:
        """The models, in the order of the table."""
        return list(dict.fromkeys(row["model"] for row in self.rows))

    @property
    def shares(self) -> list[float]:
        """The shares of outliers, 0 first."""
        return sorted({row["share"] for row in self.rows})

    def conditions(self, kind: str) -> list[Condition]:
        """No outliers, and then those of one kind, by their share."""
        return [Condition(kind if share else CLEAN, share) for share in self.shares]

    def lines(self, condition: Condition) -> list[Line]:
        """Every model and method."""
        return summarise([row for row in self.rows if (row["kind"], row["share"]) == condition])

    def rmse(self, model: str, condition: Condition) -> SeedRange:
        """RMSE of the mean-only run, over the seeds that did not fail."""
        line = mean_only_lines(self.lines(condition)).get(model)
        return NOTHING if line is None else line.ranges["rmse"]

    def banded(self, model: str, condition: Condition, score: str) -> SeedRange:
        """A score of the run with uncertainty, over the seeds that did not fail."""
        line = default_lines(self.lines(condition)).get(model)
        return NOTHING if line is None else line.ranges[score]

    def failed(self, model: str, condition: Condition) -> int:
        """Number of seeds that failed."""
        line = mean_only_lines(self.lines(condition)).get(model)
        return 0 if line is None else line.seeds - line.worked

    def detection(self, condition: Condition, score: str) -> SeedRange:
        """What the model with Student-t noise says about the outliers: one of `DETECTION`."""
        own = [row for row in self.rows if row["model"] == STUDENT and (row["kind"], row["share"]) == condition]
        return next((line.ranges[score] for line in summarise(own, DETECTION)), NOTHING)


def list_outlier_outcomes(rows: Sequence[Mapping[str, Any]]) -> list[OutlierOutcome]:
    """An outcome per data set."""
    names = dict.fromkeys(row["dataset"] for row in rows)
    return [OutlierOutcome(name, [row for row in rows if row["dataset"] == name]) for name in names]


def list_outlier_targets(outcomes: Sequence[OutlierOutcome], limits: OutlierLimits) -> list[Target]:
    """All targets that the outcomes can be judged by. Where a seed failed they are missed."""
    return [
        *(_judge_robust(each, limits) for each in outcomes if each.name in limits.robust_records),
        *(_judge_clean(each, limits) for each in outcomes),
        *(target for each in outcomes for target in _judge_found(each, limits)),
    ]


def state_judgement(target: Target) -> str:
    """Whether a target is reached."""
    return "reached" if target.met else "missed"


def target_grid(targets: Sequence[Target], title: str) -> Grid:
    """A row per target."""
    return Grid(title, ("target", "found", ""), [[each.what, each.found, state_judgement(each)] for each in targets])


def outlier_grids(outcome: OutlierOutcome) -> list[Grid]:
    """RMSE of every model by share, a table for each kind, and the detection."""
    errors = [
        Grid(
            f"{outcome.name}: RMSE with {'spikes' if kind == SPIKES else 'stuck samples'}",
            ("model", *map(str, outcome.conditions(kind))),
            [[model, *error_cells(outcome, model, kind)] for model in outcome.models],
        )
        for kind in KINDS
    ]
    return [*errors, detection_grid(outcome)]


def error_cells(outcome: OutlierOutcome, model: str, kind: str) -> list[str]:
    """RMSE of a model by share of outliers, with the number of seeds that failed."""
    cells = []
    for condition in outcome.conditions(kind):
        failed = outcome.failed(model, condition)
        cells.append(format_range(outcome.rmse(model, condition)) + (f" [{failed} failed]" if failed else ""))
    return cells


def detection_grid(outcome: OutlierOutcome) -> Grid:
    """A row per condition: shares of the outliers that are found and listed, and of good samples that are listed."""
    columns = ("outliers", "found at 5 % false alarms", "listed", "listed falsely")
    conditions = [NO_OUTLIERS, *(each for kind in KINDS for each in outcome.conditions(kind)[1:])]
    rows = [[str(condition), *detection_cells(outcome, condition)] for condition in conditions]
    return Grid(f"{outcome.name}: outliers found by {STUDENT}", columns, rows)


def detection_cells(outcome: OutlierOutcome, condition: Condition) -> list[str]:
    """Medians over the seeds, as percentages."""
    return [format_percent(outcome.detection(condition, score).median) for score in DETECTION]


def _judge_robust(outcome: OutlierOutcome, limits: OutlierLimits) -> Target:
    condition = Condition(SPIKES, limits.robust_share)
    what = f"{outcome.name}, {condition}: Student-t at most {limits.robust:g} × Gaussian without outliers"
    return _judge_ratio(outcome, what, condition, limits.robust)


def _judge_clean(outcome: OutlierOutcome, limits: OutlierLimits) -> Target:
    what = f"{outcome.name}, no outliers: Student-t at most {limits.clean:g} × Gaussian"
    return _judge_ratio(outcome, what, NO_OUTLIERS, limits.clean)


def _judge_ratio(outcome: OutlierOutcome, what: str, condition: Condition, limit: float) -> Target:
    ratio = outcome.rmse(STUDENT, condition).median / outcome.rmse(GAUSSIAN, NO_OUTLIERS).median
    moments = (outcome.banded(model, each, "rmse").median for model, each in
               ((STUDENT, condition), (GAUSSIAN, NO_OUTLIERS)))  # fmt: skip
    failed = outcome.failed(STUDENT, condition) + outcome.failed(GAUSSIAN, NO_OUTLIERS)
    found = f"{ratio:.3f} (by moments {next(moments) / next(moments):.3f})"
    return Target(what, not failed and ratio <= limit, f"{found}, {failed} seed(s) failed" if failed else found)


def _judge_found(outcome: OutlierOutcome, limits: OutlierLimits) -> Iterator[Target]:
    for condition in outcome.conditions(SPIKES)[1:]:
        what = f"{outcome.name}, {condition}: at least {100.0 * limits.found:g} % found at 5 % false alarms"
        share, failed = outcome.detection(condition, "found").median, outcome.failed(STUDENT, condition)
        yield Target(what, not failed and share >= limits.found, format_percent(share))
