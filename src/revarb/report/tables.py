"""Tables for the terminal: values in, rich tables out."""

import math
from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table

from revarb.experiments import Summary
from revarb.scores import Scores


def score_table(rows: Mapping[str, Scores]) -> Table:
    """Scores of one or more simulations."""
    skip = next(iter(rows.values())).skip
    table = Table(title=f"free simulation, first {skip} rows left out")
    for name in ("", "RMSE", "NRMSE", "NLPD", "in 50 %", "in 90 %", "in 95 %"):
        table.add_column(name, justify="right" if name else "left")
    for name, row in rows.items():
        shares = (row.coverage50, row.coverage90, row.coverage95)
        table.add_row(name, _number(row.rmse), _number(row.nrmse), _number(row.nlpd), *map(_percent, shares))
    return table


def dataset_table(lines: Mapping[str, str]) -> Table:
    """Benchmarks and what they are."""
    table = Table("name", "what it is")
    for name, about in lines.items():
        table.add_row(name, about)
    return table


def table1_table(title: str, lines: Sequence[Summary]) -> Table:
    """Median (minimum – maximum) over seeds beside the paper's number."""
    table = Table(title=title, box=box.SIMPLE, padding=(0, 1, 0, 0))
    for name in ("data", "method", "paper", "RMSE", "NLPD", "share in 95 %", "fit s"):
        table.add_column(name, justify="left" if name in ("data", "method") else "right", overflow="fold")
    for line in lines:
        table.add_row(
            line.dataset,
            line.method,
            "–" if line.paper is None else f"{line.paper:.4f}",
            *(_spread(line.spread[score]) for score in ("rmse", "nlpd", "coverage95")),
            f"{line.spread['fit_seconds'][1]:.1f}",
        )
    return table


def _spread(values: tuple[float, float, float]) -> str:
    low, middle, high = (_number(value) for value in values)
    return middle if math.isnan(values[1]) else f"{middle} ({low}–{high})"


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "–"


def _percent(value: float) -> str:
    return f"{100.0 * value:.1f} %" if math.isfinite(value) else "–"
