"""HTML report of a comparison: one self-contained page, without scripts, fonts or pictures from elsewhere."""

from collections.abc import Mapping
from html import escape
from typing import Any

from revarb.analysis.comparison import Comparison
from revarb.analysis.figures import draw_reliability
from revarb.analysis.tables import NOTES, Grid, comparison_grid, list_failures, output_grid
from revarb.analysis.verdict import rank_lines
from revarb.runtime.figure_style import encode_figure

MOST_PICTURES = 6
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
    pictures = {**_draw_outputs(comparison), **_draw_bands(comparison), **_draw_residuals(comparison)}
    figures = "\n".join(_figure(caption, picture) for caption, picture in pictures.items())
    made = "".join(f"<dt>{escape(str(key))}</dt><dd>{escape(_plain(value))}</dd>" for key, value in meta.items())
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
    lines, apart = comparison.lines, output_grid(comparison.rows)
    first = next(iter(rank_lines(lines, comparison.score).values()), None)
    best = next((number for number, line in enumerate(lines) if line is first), None)
    table = _table(comparison_grid("", lines, best, mixed=apart is not None))
    reasons = "".join(f"<p class=reason>{escape(reason)}</p>" for reason in list_failures(lines))
    by_output = "" if apart is None else f"<p>{escape(apart.title)}</p>{_table(apart)}"
    return f"{table}<p class=start>All numbers are from a cold start.</p>{reasons}{by_output}"


def _table(grid: Grid) -> str:
    header = "".join(f"<th>{escape(head)}</th>" for head in grid.columns)
    rows = []
    for number, cells in enumerate(grid.rows):
        inside = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f"<tr{' class=best' if number == grid.best else ''}>{inside}</tr>")
    return f"<div class=wide><table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _figure(caption: str, picture: bytes) -> str:
    text = picture.decode("utf-8")
    svg = text[text.index("<svg") :]  # the XML declaration in front of it is not allowed inside a page
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _draw_outputs(comparison: Comparison) -> dict[str, bytes]:
    outputs = comparison.test[0].output_names if comparison.paths else ()
    more = len(outputs) - MOST_PICTURES
    rest = f" {more} further output(s) are not drawn here." if more > 0 else ""
    return {
        f"{output}, measured and simulated from a cold start{_name_record(comparison)}, first seed. The axis follows "
        f"the measured output; a simulation may leave it.{rest}": encode_figure(comparison.plot(column), "svg")
        for column, output in enumerate(outputs[:MOST_PICTURES])
    }


def _draw_bands(comparison: Comparison) -> dict[str, bytes]:
    reliability = comparison.reliability()
    if not reliability:
        return {}
    records = "" if len(comparison.test) == 1 else f", {len(comparison.test)} test records together"
    caption = (
        f"Reliability of the bands. Simulated from a cold start, first seed{records}; left and middle without the "
        f"first {comparison.skip} rows. Left: the share of measurements inside a band, against its nominal level; "
        "below the diagonal bands are too narrow. Middle: where in its predicted distribution every measurement lies; "
        "flat is reliable, a valley means too narrow, a hill too wide. Right: root mean square error and predicted "
        "standard deviation, in standard deviations of the output; the axis may end before a line does. Grey is where "
        "reliable bands stay 95 % of the time if errors are independent; errors close in time seldom are."
    )
    return {caption: encode_figure(draw_reliability(reliability), "svg")}


def _draw_residuals(comparison: Comparison) -> dict[str, bytes]:
    drawn = comparison.test[0].output_names[:MOST_PICTURES]
    return {
        f"Residuals of {model}, one step ahead along the measured record{_name_record(comparison)}, first seed: "
        f"{residuals.sentence}.{'' if number else f' {RESIDUALS_READ}'}": encode_figure(
            residuals.plot(model, drawn), "svg"
        )
        for number, (model, residuals) in enumerate(comparison.residuals.items())
    }


def _name_record(comparison: Comparison) -> str:
    return "" if len(comparison.test) == 1 else f" (the first of {len(comparison.test)} test records)"


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value)


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
