"""Self-contained HTML pages: no scripts, fonts or pictures from elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from revarb.evaluation.comparison import state_verdict
from revarb.evaluation.comparison.comparison import Comparison
from revarb.evaluation.comparison.lines import Line
from revarb.evaluation.comparison.verdict import Score, ranking
from revarb.report.reliability_figures import draw_reliability
from revarb.report.tables import NOTES, Grid, comparison_grid, list_failures, output_grid
from revarb.runtime.figure_style import encode_figure

MOST_PICTURES = 6
RESIDUALS_READ = (
    "How to read it: errors in which nothing is left are correlated neither with each other (left) nor with an input "
    "at any lag (middle), and often follow the normal density (right). Grey holds 95 % of single correlations if "
    "nothing is left, the dashed limit all of them together; what is beyond it is red. A correlation with an input at "
    "a positive lag is a part of its effect that the model does not have, one at a negative lag is feedback."
)
START = "<p class=start>All numbers are from a cold start.</p>"


@dataclass(frozen=True)
class Section:
    """A comparison on one test part, for the page. `pictures` are SVG, by their captions; `score` ranks.

    `apart` has the outputs one by one, where they may have different units.
    """

    title: str
    verdict: str
    lines: Sequence[Line]
    pictures: Mapping[str, bytes]
    score: Score = "rmse"
    paper: Mapping[str, float] | None = None
    remarks: Sequence[str] = ()
    apart: Grid | None = None


def comparison_section(
    title: str,
    comparison: Comparison,
    lines: Sequence[Line] | None = None,
    paper: Mapping[str, float] | None = None,
    remarks: Sequence[str] = (),
) -> Section:
    """A comparison as a section, with its first test record drawn; `lines` replaces the comparison's own."""
    apart = output_grid(comparison.rows) if lines is None else None  # a benchmark has its outputs in common units
    lines = comparison.lines if lines is None else lines
    sentence = state_verdict(lines, comparison.score)
    pictures = {**_pictures(comparison), **_reliability_picture(comparison), **_residual_pictures(comparison)}
    return Section(title, sentence, lines, pictures, comparison.score, paper, remarks, apart)


def _pictures(comparison: Comparison) -> dict[str, bytes]:
    record = comparison.test[0]
    of_several = "" if len(comparison.test) == 1 else f" (the first of {len(comparison.test)} test records)"
    shown = record.output_names[:MOST_PICTURES] if comparison.paths else ()
    more = len(record.output_names) - len(shown)
    rest = f" {more} further output(s) are not drawn here." if more and shown else ""
    return {
        f"{output}, measured and simulated from a cold start{of_several}, first seed. The axis follows the "
        f"measured output; a simulation may leave it.{rest}": encode_figure(comparison.plot(column), "svg")
        for column, output in enumerate(shown)
    }


def _reliability_picture(comparison: Comparison) -> dict[str, bytes]:
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


def _residual_pictures(comparison: Comparison) -> dict[str, bytes]:
    several = "" if len(comparison.test) == 1 else f" (the first of {len(comparison.test)} test records)"
    shown = comparison.test[0].output_names[:MOST_PICTURES]
    return {
        f"Residuals of {model}, one step ahead along the measured record{several}, first seed: {residuals.sentence}."
        f"{'' if number else f' {RESIDUALS_READ}'}": encode_figure(residuals.plot(model, shown), "svg")
        for number, (model, residuals) in enumerate(comparison.residuals.items())
    }


def comparison_page(title: str, opening: str, sections: Sequence[Section], meta: Mapping[str, Any]) -> str:
    """The page: `opening` is its main statement, `meta` how and where it was made."""
    several = len(sections) > 1
    contents = "".join(f"<li>{escape(section.title)}: {escape(section.verdict)}</li>" for section in sections)
    body = f"""{f"<ul>{contents}</ul>" if several else ""}
{sections_html(sections, with_verdict=several)}"""
    return page_shell(title, opening, body, meta)


def page_shell(title: str, opening: str, body: str, meta: Mapping[str, Any], style: str = "") -> str:
    """A page around `body`, which is HTML; all else is text. `style` is added to the common style sheet."""
    made = "".join(f"<dt>{escape(str(key))}</dt><dd>{escape(_plain(value))}</dd>" for key, value in meta.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}{style}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p class="opening">{escape(opening)}</p>
{body}
<dl>{made}</dl>
</main>
</body>
</html>
"""


def sections_html(sections: Sequence[Section], with_verdict: bool) -> str:
    """Comparisons one below the other, then notes on their numbers."""
    body = "\n".join(_section(section, with_verdict) for section in sections)
    notes = "".join(f"<li>{escape(note)}</li>" for note in NOTES)
    return f"""{body}
<h2>How to read it</h2>
<ul>{notes}</ul>"""


def _section(section: Section, with_verdict: bool) -> str:
    verdict = f'<p class="verdict">{escape(section.verdict)}</p>' if with_verdict else ""
    pictures = "\n".join(figure_html(caption, picture) for caption, picture in section.pictures.items())
    remarks = "".join(f"<p>{escape(remark)}</p>" for remark in section.remarks)
    return f"""<section>
<h2>{escape(section.title)}</h2>
{verdict}
{_table(section)}
{remarks}
{pictures}
</section>"""


def _table(section: Section) -> str:
    first = next(iter(ranking(section.lines, section.score).values()), None)
    best = next((number for number, line in enumerate(section.lines) if first is not None and line is first.line), None)
    reasons = "".join(f"<p class=reason>{escape(reason)}</p>" for reason in list_failures(section.lines))
    table = comparison_grid(section.title, section.lines, section.paper, best, mixed=section.apart is not None)
    apart = "" if section.apart is None else f"<p>{escape(section.apart.title)}</p>{grid_html(section.apart)}"
    return grid_html(table) + START + reasons + apart


def grid_html(grid: Grid) -> str:
    """A table for a page, without its title."""
    header = "".join(f"<th>{escape(head)}</th>" for head in grid.columns)
    rows = []
    for number, cells in enumerate(grid.rows):
        inside = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f"<tr{' class=best' if number == grid.best else ''}>{inside}</tr>")
    return f"<div class=wide><table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def figure_html(caption: str, picture: bytes) -> str:
    """An SVG picture with its caption."""
    return f"<figure>{_inline(picture)}<figcaption>{escape(caption)}</figcaption></figure>"


def _inline(picture: bytes) -> str:
    # Without the XML declaration in front of <svg, which is not allowed inside a page.
    text = picture.decode("utf-8")
    return text[text.index("<svg") :]


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value)


_STYLE = """
body { margin: 0; background: #fff; color: #222; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem; }
.opening { font-size: 1.15rem; border-left: .3rem solid #c1272d; padding-left: .8rem; }
.verdict { font-weight: 600; }
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
