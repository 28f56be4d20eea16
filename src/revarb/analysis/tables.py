"""Tables of scores and comparisons: results files, the terminal, and pages."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.table import Table

from revarb.analysis.scores import Scores
from revarb.analysis.verdict import Line, SeedRange
from revarb.runtime.files import write_atomic
from revarb.runtime.machine import describe_machine

NOTES = (
    "Median (smallest – largest) over seeds. Free simulation from the inputs alone, cold start, raw units; the same "
    "rows are scored for every model. ARX chooses its order, up to ten lags or those of the others if they are more.",
    "mean: the mean-only free run. moments: mean and uncertainty propagated with full covariance. The verdict judges "
    "every model by one method, its last one here, for its error and its band: it is what `simulate` uses by default.",
    "residuals: a model without its own uncertainty. Its run is mean-only, and its band is as wide as its errors "
    "in free runs over held-out parts of the training record. They also chose its size, so the band is rather narrow.",
    "NLPD (smaller is better) and the share inside the 95 % band judge the band. Seconds include compilation the first "
    "time.",
)
COLUMNS = ("model", "method", "RMSE", "NRMSE", "NLPD", "in 95 %", "fit s", "simulate s")


def write_results(path: str | os.PathLike[str], meta: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write a results file, `{"meta": {...}, "rows": [...]}` with flat rows (atomic write).

    `meta` describes the run; the machine is added to it. NaN and infinity become null.
    """
    content = {
        "meta": {**meta, **describe_machine()},
        "rows": [{key: _plain(v) for key, v in row.items()} for row in rows],
    }
    return write_atomic(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):  # scores of several outputs
        return {key: _plain(each) for key, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def score_table(rows: Mapping[str, Scores], what: str) -> Table:
    """Scores of trajectories of one record; `what` is the title."""
    skip = next(iter(rows.values())).skip
    table = Table(title=f"{what}, first {skip} rows left out" if skip else what)
    for name in ("", "RMSE", "NRMSE", "NLPD", "in 50 %", "in 90 %", "in 95 %"):
        table.add_column(name, justify="right" if name else "left")
    for name, row in rows.items():
        for output, each in row.by_output.items():
            table.add_row(f"{name}, {output}", *_score_cells(each))
        # Errors and densities of outputs with different units cannot be summed up.
        cells = _score_cells(row)
        table.add_row(*([f"{name}, all", "–", cells[1], "–", *cells[3:]] if row.by_output else [name, *cells]))
    return table


def _score_cells(row: Scores) -> list[str]:
    shares = (row.coverage50, row.coverage90, row.coverage95)
    return [*map(_format_number, (row.rmse, row.nrmse, row.nlpd)), *map(format_percent, shares)]


def dataset_table(lines: Mapping[str, str]) -> Table:
    """Names and descriptions of the benchmarks."""
    table = Table("name", "what it is")
    for name, about in lines.items():
        table.add_row(name, about)
    return table


@dataclass(frozen=True)
class Grid:
    """A table as text, for the terminal and for a page. `best` is the row to mark."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: int | None = None


def comparison_grid(title: str, lines: Sequence[Line], best: int | None = None, mixed: bool = False) -> Grid:
    """A comparison summarised over seeds.

    With `mixed` the outputs have different units, and what would sum them up is left out.
    """
    shown = [number for number, name in enumerate(COLUMNS) if not (mixed and name in ("RMSE", "NLPD"))]
    rows = [_comparison_cells(line) for line in lines]
    return Grid(title, [COLUMNS[number] for number in shown], [[row[number] for number in shown] for row in rows], best)


def _comparison_cells(line: Line) -> list[str]:
    if not line.worked:
        return [line.model, "failed", *["–"] * (len(COLUMNS) - 2)]
    numbers = [format_range(line.ranges[name]) for name in ("rmse", "nrmse", "nlpd")]
    seconds = [f"{line.ranges[name].median:.1f}" for name in ("fit_seconds", "simulate_seconds")]
    return [line.model, line.method, *numbers, format_percent(line.ranges["coverage95"].median), *seconds]


def output_grid(rows: Sequence[Mapping[str, Any]]) -> Grid | None:
    """Every output by itself, each in its own unit: medians over the seeds; None where there is one output only."""
    scored = [row for row in rows if "outputs" in row and row.get("reason") is None]
    if not scored:
        return None
    names = list(dict.fromkeys(name for row in scored for name in row["outputs"]))
    groups = dict.fromkeys((row["model"], row["method"]) for row in scored)
    cells = []
    for model, method in groups:
        own = [row for row in scored if (row["model"], row["method"]) == (model, method)]
        cells.append([model, method, *(_describe_output(own, name) for name in names)])
    return Grid("by output: RMSE (NRMSE)", ["model", "method", *names], cells)


def _describe_output(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    known = [row["outputs"][name] for row in rows if name in row["outputs"]]
    if not known:
        return "–"
    rmse, nrmse = (median(each[score] for each in known) for score in ("rmse", "nrmse"))
    return f"{_format_number(rmse)} ({_format_number(nrmse)})"


def terminal_table(grid: Grid) -> Table:
    """A grid as a rich table."""
    table = Table(title=grid.title, box=box.SIMPLE, padding=(0, 1, 0, 0))
    for name in grid.columns:
        table.add_column(name, justify="left" if name in ("model", "method") else "right", overflow="fold")
    for cells in grid.rows:
        table.add_row(*cells)
    return table


def list_failures(lines: Sequence[Line]) -> list[str]:
    """Which models failed and why, each reason once."""
    return list(dict.fromkeys(f"{line.model}: {reason}" for line in lines for reason in line.reasons))


def format_range(values: SeedRange) -> str:
    """Median (smallest – largest)."""
    low, middle, high = (_format_number(value) for value in values)
    return middle if low == high else f"{middle} ({low}–{high})"


def _format_number(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 1000.0 else f"{value:.3g}"


def format_percent(value: float) -> str:
    """A share between 0 and 1."""
    return f"{100.0 * value:.1f} %" if math.isfinite(value) else "–"
