"""Tables that commands write and show: a trajectory, scores, a table of texts."""

import os
import sys
from pathlib import Path

import numpy as np
import rich.box
import rich.table
from matplotlib.figure import Figure

from revarb.analysis.report import Grid, format_number, format_percent
from revarb.analysis.scores import Scores, scores
from revarb.cli.application import error_screen, print_line, print_written, screen
from revarb.data.table_file import Table, encode_csv, write_table
from revarb.data.trajectory import Trajectory
from revarb.runtime.figure_style import save_figure
from revarb.runtime.interrupts import capture_interrupts


def write_path(
    path: Trajectory,
    table: Table,
    time_name: str | None,
    measured: np.ndarray | None,
    what: str,
    targets: tuple[Path, ...],
    first: int = 0,
) -> None:
    """Write a trajectory as a table and a picture; print its scores, where there are measured outputs, and warnings.

    It has the rows of the table from the first one on.
    """
    labels = np.arange(len(table)) if time_name is None else table.labels(time_name)
    columns = path.labelled_columns(time_name, labels[first:])
    measured = None if measured is None else measured[first:]
    with capture_interrupts():
        if targets:
            write_table(targets[0], columns)
        for picture in targets[1:]:
            save_figure(picture, _draw(path, table, time_name, measured, f"{table.path.name}: {what}"))
    if measured is not None and not np.isnan(measured[path.skip :]).all():
        shown = screen if targets else error_screen  # a table on the standard output is alone there
        shown.print(score_table(path.method, scores(path, measured), what))
    if path.warning is not None:
        print_line("warning", path.warning)
    print_written(*targets)
    if not targets:
        _write_to_standard_output(encode_csv(columns))


def _draw(path: Trajectory, table: Table, time_name: str | None, measured: np.ndarray | None, title: str) -> Figure:
    # Over the times of the file.
    if time_name is None:
        return path.plot(measured, title)
    figure = path.plot(measured, title, times=table.seconds(time_name)[-len(path) :])  # its last rows
    are_numbers = table.labels(time_name).dtype.kind == "f"
    figure.axes[-1].set_xlabel(time_name if are_numbers else f"seconds after {table.cell(time_name, 0)}")
    return figure


def _write_to_standard_output(content: bytes) -> None:
    try:
        sys.stdout.write(content.decode())
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has read enough; Python flushes once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def score_table(method: str, row: Scores, what: str) -> rich.table.Table:
    """Scores of a trajectory; `what` is the title."""
    table = rich.table.Table(title=f"{what}, first {row.skip} rows left out" if row.skip else what)
    for name in ("", "RMSE", "NRMSE", "NLPD", "in 50 %", "in 90 %", "in 95 %"):
        table.add_column(name, justify="right" if name else "left")
    for output, each in row.by_output.items():
        table.add_row(f"{method}, {output}", *_score_cells(each))
    # Errors and densities of outputs with different units cannot be summed up.
    cells = _score_cells(row)
    table.add_row(*([f"{method}, all", "–", cells[1], "–", *cells[3:]] if row.by_output else [method, *cells]))
    return table


def _score_cells(row: Scores) -> list[str]:
    shares = (row.coverage50, row.coverage90, row.coverage95)
    return [*map(format_number, (row.rmse, row.nrmse, row.nlpd)), *map(format_percent, shares)]


def terminal_table(grid: Grid) -> rich.table.Table:
    """A table of texts as one for the screen."""
    table = rich.table.Table(title=grid.title, box=rich.box.SIMPLE, padding=(0, 1, 0, 0))
    for name in grid.columns:
        table.add_column(name, justify="left" if name in ("model", "method") else "right", overflow="fold")
    for cells in grid.rows:
        table.add_row(*cells)
    return table
