"""A summary of a trained model: tables of texts that print in a terminal and in a notebook."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from rich import box
from rich.console import Console, Group
from rich.table import Table

TEXT_WIDTH = 110  # columns of the plain text
_LEFT = ' style="text-align: left"'  # notebooks align cells to the right by default


class SummaryTable(NamedTuple):
    """A titled table of texts; without column heads where all of them are empty."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, repr=False)
class Summary:
    """Tables about a model. `print(summary)` gives text, `rich.print(summary)` colours, a notebook HTML."""

    title: str
    tables: tuple[SummaryTable, ...]

    def __rich__(self) -> Group:
        return Group(self.title, *(_rich_table(table) for table in self.tables))

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=TEXT_WIDTH, color_system=None)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.title)}</b></p>" + "".join(_html_table(table) for table in self.tables)


def _rich_table(table: SummaryTable) -> Table:
    drawn = Table(title=table.title, title_justify="left", box=box.SIMPLE, show_header=any(table.columns))
    for column in table.columns:
        drawn.add_column(column)
    for row in table.rows:
        drawn.add_row(*row)
    return drawn


def _html_table(table: SummaryTable) -> str:
    heads = "".join(f"<th{_LEFT}>{escape(column)}</th>" for column in table.columns)
    header = f"<thead><tr>{heads}</tr></thead>" if any(table.columns) else ""
    rows = "".join("<tr>" + "".join(f"<td{_LEFT}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    caption = f'<caption style="text-align: left; font-weight: bold">{escape(table.title)}</caption>'
    return f'<table style="margin-left: 0">{caption}{header}<tbody>{rows}</tbody></table>'
