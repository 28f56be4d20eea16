"""Rows of a results file as tables: summaries over seeds, targets, and how numbers are printed."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich.table import Table

Row = Mapping[str, Any]
Rows = Sequence[Row]

RESIDUALS = "residuals"  # the method of models that have only one
MIN_GAIN, SIMILAR_ERROR = 0.05, 1.5  # where a linear model is enough: see `is_linear_enough`


class SeedRange(NamedTuple):
    """Smallest, median and largest value over the seeds that did not fail."""

    low: float
    median: float
    high: float


NOTHING = SeedRange(math.nan, math.nan, math.nan)


class Target(NamedTuple):
    """What a study must show, whether it does, and the number that was found, as text."""

    what: str
    met: bool
    found: str


@dataclass(frozen=True)
class Grid:
    """A table as text, for the terminal and for a page. `best` is the row to mark."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: int | None = None


@dataclass(frozen=True)
class Line:
    """One model by one method over all seeds: the rows that worked, and the reasons of the seeds that failed."""

    model: str
    method: str
    rows: Rows
    seeds: int
    failures: tuple[str, ...] = ()

    @property
    def worked(self) -> int:
        """Number of seeds that did not fail."""
        return self.seeds - len(self.failures)

    def range(self, column: str) -> SeedRange:
        """A column over the seeds that did not fail; NaN where one of them has no value."""
        return find_range([row[column] for row in self.rows])


def select(rows: Rows, **where: Any) -> list[Row]:
    """The rows whose columns have these values."""
    return [row for row in rows if where.items() <= row.items()]


def find_range(values: Sequence[float | None]) -> SeedRange:
    """Smallest, median and largest of these values; NaN where one is missing, or all are."""
    numbers = np.array([math.nan if value is None else value for value in values] or [math.nan], dtype=float)
    return SeedRange(float(numbers.min()), float(np.median(numbers)), float(numbers.max()))


def over_seeds(rows: Rows, column: str, **where: Any) -> SeedRange:
    """A column over the rows with these values; nothing where there is none, or one of them failed."""
    own = select(rows, **where)
    failed = any(row.get("reason") is not None for row in own)
    return NOTHING if failed else find_range([row[column] for row in own if row.get(column) is not None])


def summarise(rows: Rows) -> list[Line]:
    """One line per model and method of one record; failed seeds appear in the reasons, not in the ranges."""
    lines = []
    for model in dict.fromkeys(row["model"] for row in rows):
        own = _share_methods(select(rows, model=model))
        failed = {row["seed"]: row["reason"] for row in own if row["reason"] is not None}
        good = [row for row in own if row["seed"] not in failed]
        seeds = len({row["seed"] for row in own})
        lines += [
            Line(model, method, [row for row in good if row["method"] == method], seeds, tuple(failed.values()))
            for method in dict.fromkeys(row["method"] for row in good) or ("",)
        ]
    return lines


def _share_methods(rows: Rows) -> Rows:
    # A model that chooses may be linear with one seed and not with another. The single run of a linear one then counts
    # under all methods of the others, so that every line is over all seeds.
    methods = dict.fromkeys(row["method"] for row in rows if row["reason"] is None)
    if RESIDUALS not in methods or len(methods) == 1:
        return rows
    others = [method for method in methods if method != RESIDUALS]
    return [
        {**row, "method": method}
        for row in rows
        for method in (others if row["method"] == RESIDUALS else [row["method"]])
    ]


def mean_only_lines(rows: Rows) -> dict[str, Line]:
    """One line per model of one record: its mean-only run, which all models have. It is the first one."""
    first: dict[str, Line] = {}
    for line in summarise(rows):
        first.setdefault(line.model, line)
    return first


def default_lines(rows: Rows) -> dict[str, Line]:
    """One line per model of one record: the method that its `simulate` uses by default, the last one."""
    return {line.model: line for line in summarise(rows)}


def rank_models(rows: Rows) -> dict[str, float]:
    """Median RMSE of the mean-only runs, the smallest first; models of which most seeds failed are left out."""
    lines = [line for line in mean_only_lines(rows).values() if 2 * line.worked > line.seeds]
    errors = {line.model: line.range("rmse").median for line in lines}
    return dict(sorted(errors.items(), key=lambda item: item[1]))


def is_linear_enough(rows: Rows) -> bool:
    """Whether ARX does as well as the best other model, by the mean-only runs.

    That is where the other gains less than a twentieth of the error of the training mean, and less than a third of
    ARX's own error.
    """
    errors = rank_models(rows)
    other = next((error for model, error in errors.items() if model not in ("Mean", "ARX")), None)
    if "ARX" not in errors or other is None:
        return False
    gain = errors["ARX"] - other
    return gain <= 0.0 or (gain < MIN_GAIN * errors.get("Mean", math.inf) and errors["ARX"] < SIMILAR_ERROR * other)


def list_failures(rows: Rows) -> list[str]:
    """Why runs failed: each reason once per record and model, with the number of runs."""
    reasons = Counter(f"{row['dataset']}, {row['model']}: {row['reason']}" for row in rows if row.get("reason"))
    return [f"{count} run(s) failed: {reason}" for reason, count in reasons.items()]


def score_grid(title: str, rows: Rows, paper: Mapping[str, float] | None = None) -> Grid:
    """Scores of every model and method on one record, of failed models dashes; `paper` adds the paper's numbers."""
    printed = ["paper"] if paper else []
    columns = ["model", "method", *printed, "RMSE", "NRMSE", "NLPD", "in 95 %", "fit s", "simulate s"]
    cells = []
    for line in summarise(rows):
        number = [f"{paper[line.model]:.4f}" if line.model in paper else "–"] if paper else []
        scores = [format_range(line.range(name)) for name in ("rmse", "nrmse", "nlpd")]
        share = format_percent(line.range("coverage95").median)
        seconds = [format_seconds(line.range(name).median) for name in ("fit_seconds", "simulate_seconds")]
        cells.append([line.model, line.method or "failed", *number, *scores, share, *seconds])
    return Grid(title, columns, cells)


def target_grid(targets: Sequence[Target]) -> Grid:
    """A row per target."""
    cells = [[each.what, each.found, "reached" if each.met else "missed"] for each in targets]
    return Grid("Targets", ("target", "found", ""), cells)


def at_most(what: str, value: float, limit: float) -> Target:
    """A target that is met by a value of at most `limit`; NaN misses it."""
    return Target(f"{what} at most {limit:g}", value <= limit, f"{value:.3f}")


def between(what: str, value: float, low: float, high: float) -> Target:
    """A target that is met by a share between two others."""
    return Target(f"{what} between {low:.0%} and {high:.0%}", low <= value <= high, format_percent(value))


def format_range(values: SeedRange) -> str:
    """Median (smallest – largest); a dash where there is no value."""
    low, middle, high = map(format_number, values)
    return middle if low == high else f"{middle} ({low}–{high})"


def format_number(value: float) -> str:
    """Three digits after the point, or three in all where there are many before it."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 1000.0 else f"{value:.3g}"


def format_seconds(value: float) -> str:
    """A time with one digit after the point."""
    return f"{value:.1f}" if math.isfinite(value) else "–"


def format_percent(value: float) -> str:
    """A share between 0 and 1."""
    return f"{100.0 * value:.1f} %" if math.isfinite(value) else "–"


def terminal_table(grid: Grid) -> Table:
    """The table for the terminal."""
    table = Table(title=grid.title, box=box.SIMPLE, padding=(0, 1, 0, 0))
    for number, name in enumerate(grid.columns):
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for cells in grid.rows:
        table.add_row(*cells)
    return table


def by_record(rows: Rows) -> dict[str, Rows]:
    """The rows of every record, in the order of the records."""
    return {name: select(rows, dataset=name) for name in names_of(rows)}


def names_of(rows: Iterable[Row], column: str = "dataset") -> list[str]:
    """The different values of a column, in their order."""
    return list(dict.fromkeys(row[column] for row in rows))
