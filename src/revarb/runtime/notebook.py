"""What a notebook shows of a value: a title and tables as HTML, every text escaped."""

from collections.abc import Sequence
from html import escape

_LEFT = ' style="text-align: left"'  # notebooks align cells to the right by default


def encode_title(title: str) -> str:
    """A line in bold type as HTML."""
    return f"<p><b>{escape(title)}</b></p>"


def encode_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a caption as HTML; without column heads where all of them are empty."""
    heads = "".join(f"<th{_LEFT}>{escape(column)}</th>" for column in columns)
    header = f"<thead><tr>{heads}</tr></thead>" if any(columns) else ""
    body = "".join("<tr>" + "".join(f"<td{_LEFT}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    caption = f'<caption style="text-align: left; font-weight: bold">{escape(title)}</caption>' if title else ""
    return f'<table style="margin-left: 0">{caption}{header}<tbody>{body}</tbody></table>'
