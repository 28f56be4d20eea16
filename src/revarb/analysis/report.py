"""Reports of a comparison: the results file, tables as text, and one self-contained HTML page."""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import compress
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from revarb.analysis.comparison import Comparison
from revarb.analysis.figures import draw_reliability
from revarb.analysis.verdict import Line, SeedRange, rank_lines
from revarb.runtime.figure_style import encode_figure
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
    content = {"meta": {**meta, **describe_machine()}, "rows": [_replace_nan(row) for row in rows]}
    return write_atomic(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _replace_nan(value: Any) -> Any:
    if isinstance(value, Mapping):  # a row, and in it the scores of several outputs
        return {key: _replace_nan(each) for key, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Grid:
    """A table as text, for the terminal and for a page. `best` is the row to mark."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: int | None = None


def comparison_grids(title: str, comparison: Comparison) -> list[Grid]:
    """A comparison summarised over seeds; where there are several outputs, a second table has each by itself."""
    lines, apart = comparison.lines, output_grid(comparison.rows)
    first = next(iter(rank_lines(lines, comparison.score).values()), None)
    best = next((number for number, line in enumerate(lines) if line is first), None)
    # Errors and densities of outputs with different units cannot be summed up.
    shown = [apart is None or name not in ("RMSE", "NLPD") for name in COLUMNS]
    rows = [list(compress(_comparison_cells(line), shown)) for line in lines]
    return [Grid(title, list(compress(COLUMNS, shown)), rows, best), *([] if apart is None else [apart])]


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
    return f"{format_number(rmse)} ({format_number(nrmse)})"


def list_failures(lines: Sequence[Line]) -> list[str]:
    """Which models failed and why, each reason once."""
    return list(dict.fromkeys(f"{line.model}: {reason}" for line in lines for reason in line.reasons))


def format_range(values: SeedRange) -> str:
    """Median (smallest – largest)."""
    low, middle, high = (format_number(value) for value in values)
    return middle if low == high else f"{middle} ({low}–{high})"


def format_number(value: float) -> str:
    """A score."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 1000.0 else f"{value:.3g}"


def format_percent(value: float) -> str:
    """A share between 0 and 1."""
    return f"{100.0 * value:.1f} %" if math.isfinite(value) else "–"


MOST_PICTURES = 6
BANDS_READ = (
    "Left: the share of measurements inside a band, against its nominal level; below the diagonal bands are too "
    "narrow. Middle: where in its predicted distribution every measurement lies; flat is reliable, a valley means "
    "too narrow, a hill too wide. Right: root mean square error and predicted standard deviation, in standard "
    "deviations of the output; the axis may end before a line does. Grey is where reliable bands stay 95 % of the "
    "time if errors are independent; errors close in time seldom are."
)
RESIDUALS_READ = (
    "How to read it: errors in which nothing is left are correlated neither with each other (left) nor with an input "
    "at any lag (middle), and often follow the normal density (right). Grey holds 95 % of single correlations if "
    "nothing is left, the dashed limit all of them together; what is beyond it is red. A correlation with an input at "
    "a positive lag is a part of its effect that the model does not have, one at a negative lag is feedback."
)


def comparison_page(title: str, name: str, comparison: Comparison, meta: Mapping[str, Any]) -> str:
    """The verdict, the scores, and pictures of the first test record; `name` heads them.

    `meta` describes how and where the comparison was made.
    """
    opening = " ".join(filter(None, [comparison.incomplete, comparison.verdict]))
    figures = "\n".join(_embed(caption, figure) for caption, figure in _draw(comparison))
    made = "".join(f"<dt>{escape(str(key))}</dt><dd>{escape(_describe(value))}</dd>" for key, value in meta.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p class="opening">{escape(opening)}</p>
<h2>{escape(name)}</h2>
{_tables(comparison)}
{figures}
<h2>How to read it</h2>
<ul>{"".join(f"<li>{escape(note)}</li>" for note in NOTES)}</ul>
<dl>{made}</dl>
</main>
</body>
</html>
"""


def _tables(comparison: Comparison) -> str:
    scored, *apart = comparison_grids("", comparison)
    reasons = "".join(f"<p class=reason>{escape(reason)}</p>" for reason in list_failures(comparison.lines))
    by_output = "".join(f"<p>{escape(grid.title)}</p>{_table(grid)}" for grid in apart)
    return f"{_table(scored)}<p class=start>All numbers are from a cold start.</p>{reasons}{by_output}"


def _table(grid: Grid) -> str:
    header = "".join(f"<th>{escape(head)}</th>" for head in grid.columns)
    rows = []
    for number, cells in enumerate(grid.rows):
        inside = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f"<tr{' class=best' if number == grid.best else ''}>{inside}</tr>")
    return f"<div class=wide><table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _embed(caption: str, figure: Figure) -> str:
    text = encode_figure(figure, "svg").decode("utf-8")
    svg = text[text.index("<svg") :]  # the XML declaration in front of it is not allowed inside a page
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _draw(comparison: Comparison) -> Iterator[tuple[str, Figure]]:
    # The figures with their captions: outputs, bands, residuals.
    count, names = len(comparison.test), comparison.test[0].output_names
    record = "" if count == 1 else f" (the first of {count} test records)"
    drawn = names[:MOST_PICTURES]
    rest = f" {len(names) - len(drawn)} further output(s) are not drawn here." if len(names) > len(drawn) else ""
    for column, output in enumerate(drawn if comparison.paths else ()):
        yield (
            f"{output}, measured and simulated from a cold start{record}, first seed. The axis follows the measured "
            f"output; a simulation may leave it.{rest}",
            comparison.plot(column),
        )
    if reliability := comparison.reliability():
        records = "" if count == 1 else f", {count} test records together"
        yield (
            f"Reliability of the bands. Simulated from a cold start, first seed{records}; left and middle without the "
            f"first {comparison.skip} rows. {BANDS_READ}",
            draw_reliability(reliability),
        )
    how_to_read = f" {RESIDUALS_READ}"
    for model, residuals in comparison.residuals.items():
        caption = f"Residuals of {model}, one step ahead along the measured record{record}, first seed: "
        yield f"{caption}{residuals.sentence}.{how_to_read}", residuals.plot(model, drawn)
        how_to_read = ""


def _describe(value: Any) -> str:
    return ", ".join(f"{key} {each}" for key, each in value.items()) if isinstance(value, Mapping) else str(value)


_STYLE = """
body { margin: 0; background: #fff; color: #222; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem; }
.opening { font-size: 1.15rem; border-left: .3rem solid #c1272d; padding-left: .8rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #e3e3e3; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
tr.best td { background: #fdf0ea; font-weight: 600; }
.start { color: #666; font-size: .85rem; margin: .3rem 0; }
.reason { color: #8a3a1d; font-size: .9rem; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; } figcaption { color: #666; font-size: .85rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .8rem; color: #666; }
dd { margin: 0; }
"""
