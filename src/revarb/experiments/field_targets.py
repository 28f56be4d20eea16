"""What the field table must show: aims per record, ratios to ARX and R0, and coverage of the chosen model's bands."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from revarb.evaluation.comparison.lines import Line, SeedRange, mean_only_lines, summarise
from revarb.experiments.benchmarks import Benchmark
from revarb.report.tables import Grid, format_percent, format_range

MEAN, ARX, R0, CHOSEN = "Mean", "ARX", "REVARB (R0)", "revarb (chosen)"
NOTHING = SeedRange(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class FieldRecord:
    """A benchmark of the table, the set it belongs to, its aims, and numbers that others have published."""

    benchmark: Benchmark
    set: Literal["development", "report"]
    aim: float
    aim_nlpd: float | None = None
    aim_method: Literal["mean", "moments"] = "mean"
    published: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the benchmark."""
        return self.benchmark.name


@dataclass(frozen=True)
class Limits:
    """Limits of the targets that are common to the records."""

    arx: float
    r0: float
    band: tuple[float, float]
    band_records: int
    band_least: float


class Target(NamedTuple):
    """A target, whether it is met, and the number that was found, as text."""

    what: str
    met: bool
    found: str


@dataclass(frozen=True)
class Outcome:
    """The rows of one record: the models by their mean-only runs, and the chosen one with its uncertainty."""

    record: FieldRecord
    rows: Sequence[Mapping[str, Any]]

    @property
    def lines(self) -> list[Line]:
        """The rows summarised over seeds."""
        return summarise(self.rows)

    def rmse(self, model: str) -> SeedRange:
        """RMSE of the mean-only run."""
        line = mean_only_lines(self.lines).get(model)
        return NOTHING if line is None else _judged(line, "rmse")

    def banded(self, score: str) -> SeedRange:
        """A score of the chosen model with its uncertainty: by moments, or its single run where it is linear."""
        own = [line for line in self.lines if line.model == CHOSEN]
        return _judged(own[-1], score) if own else NOTHING

    def ratio(self, model: str) -> float:
        """Median RMSE of the chosen model, relative to that of another."""
        return self.rmse(CHOSEN).median / self.rmse(model).median

    @property
    def aimed(self) -> SeedRange:
        """The RMSE that is compared with the aim."""
        return self.banded("rmse") if self.record.aim_method == "moments" else self.rmse(CHOSEN)

    @property
    def taken(self) -> str:
        """Which candidates were chosen, with the number of seeds where they differ."""
        by_seed = {row["seed"]: row["taken"] for row in self.rows if row.get("taken") is not None}
        names = Counter(by_seed.values())
        return ", ".join(name if len(names) == 1 else f"{name} ({count})" for name, count in names.most_common()) or "–"


def list_outcomes(records: Sequence[FieldRecord], rows: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    """The outcomes of the records that have rows."""
    found = [Outcome(record, [row for row in rows if row["dataset"] == record.name]) for record in records]
    return [outcome for outcome in found if outcome.rows]


def list_targets(outcomes: Sequence[Outcome], limits: Limits) -> list[Target]:
    """All targets that the outcomes can be judged by; those of a record with a failed seed are missed."""
    targets = [target for outcome in outcomes for target in _record_targets(outcome, limits)]
    single = {
        outcome.record.name: outcome.banded("coverage95").median
        for outcome in outcomes
        if not outcome.record.benchmark.drawn
    }
    return [*targets, *_band_targets(single, limits)]


def state_targets(targets: Sequence[Target]) -> list[str]:
    """How many targets are met, and a sentence for each that is missed."""
    met = sum(target.met for target in targets)
    missed = [f"Missed: {target.what}; found {target.found}." for target in targets if not target.met]
    return [f"{met} of {len(targets)} targets are met.", *missed]


def error_grid(outcomes: Sequence[Outcome], title: str) -> Grid:
    """A row per record: RMSE of the references and of the chosen model, beside the aim."""
    columns = ("record", "units", MEAN, ARX, R0, CHOSEN, "by moments", "aim")
    return Grid(title, columns, [_error_cells(outcome) for outcome in outcomes])


def choice_grid(outcomes: Sequence[Outcome], title: str) -> Grid:
    """A row per record: the chosen model relative to the references, its band, its seconds, and what was taken."""
    columns = ("record", "set", "/ ARX", "/ R0", "in 95 %", "fit s", "taken")
    return Grid(title, columns, [_choice_cells(outcome) for outcome in outcomes])


def _error_cells(outcome: Outcome) -> list[str]:
    record = outcome.record
    medians = (outcome.rmse(model).median for model in (MEAN, ARX, R0))
    ours = (outcome.rmse(CHOSEN), outcome.banded("rmse"))
    by_moments = " by moments" if record.aim_method == "moments" else ""
    units = "z-scored" if record.benchmark.z_scored else "raw"
    return [record.name, units, *map(_format, medians), *map(format_range, ours), f"{record.aim:g}{by_moments}"]


def _choice_cells(outcome: Outcome) -> list[str]:
    share, seconds = outcome.banded("coverage95").median, outcome.banded("fit_seconds").median
    ratios = (f"{outcome.ratio(model):.2f}" for model in (ARX, R0))
    return [outcome.record.name, outcome.record.set, *ratios, format_percent(share), f"{seconds:.0f}", outcome.taken]


def _record_targets(outcome: Outcome, limits: Limits) -> Iterator[Target]:
    record, name = outcome.record, outcome.record.name
    yield _at_most(f"{name}: RMSE by {record.aim_method} at most {record.aim:g}", outcome.aimed.median, record.aim)
    if record.aim_nlpd is not None:
        nlpd = outcome.banded("nlpd").median
        yield _at_most(f"{name}: NLPD at most {record.aim_nlpd:g}", nlpd, record.aim_nlpd)
    yield _at_most(f"{name}: at most {limits.arx:g} × {ARX}", outcome.ratio(ARX), limits.arx)
    if record.set == "development":
        yield _at_most(f"{name}: at most {limits.r0:g} × {R0}", outcome.ratio(R0), limits.r0)


def _at_most(what: str, value: float, limit: float) -> Target:
    return Target(what, value <= limit, f"{value:.3f}")  # NaN is missed


def _band_targets(shares: Mapping[str, float], limits: Limits) -> Iterator[Target]:
    low, high = limits.band
    outside = [f"{name} {format_percent(share)}" for name, share in shares.items() if not low <= share <= high]
    if len(shares) >= limits.band_records:  # with fewer records it could not be met
        inside = len(shares) - len(outside)
        what = f"95 % bands hold {low:.0%} to {high:.0%} on at least {limits.band_records} of {len(shares)} records"
        yield Target(what, inside >= limits.band_records, f"{inside}; outside: {', '.join(outside)}")
    narrow = [f"{name} {format_percent(share)}" for name, share in shares.items() if not share >= limits.band_least]
    if shares:
        yield Target(f"95 % bands hold at least {limits.band_least:.0%} on every record", not narrow, ", ".join(narrow))


def _judged(line: Line, score: str) -> SeedRange:
    # Seeds of the chosen model that fail are misses: a median over those that worked would hide them.
    return NOTHING if line.model == CHOSEN and line.worked < line.seeds else line.ranges[score]


def _format(value: float) -> str:
    return format_range(SeedRange(value, value, value))
