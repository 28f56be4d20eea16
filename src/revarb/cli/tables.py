"""Tables of commands: records to fit to, a table for a trained model, the trajectory that is written, scores."""

import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import rich.box
import rich.table

from revarb.analysis.report import Grid, format_number, format_percent
from revarb.analysis.scores import Scores, scores
from revarb.cli.application import error_screen, find_picture, print_line, print_written, screen
from revarb.data.csv_file import CsvForm
from revarb.data.record_files import Times, read_by_file
from revarb.data.sampling import check_interval
from revarb.data.series import Series
from revarb.data.table_file import Table, check_table_file, encode_csv, write_table
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, QualityWarning, warn_user
from revarb.models.base import Fitted
from revarb.runtime.figure_style import save_figure
from revarb.runtime.files import check_writable, is_stream
from revarb.runtime.interrupts import capture_interrupts

STANDARD_OUTPUT = ("-", "/dev/stdout")

Record = TypeVar("Record", bound=Series)


def read_files(
    files: Sequence[Path], inputs: Sequence[str] | None, outputs: Sequence[str] | None, times: Times, form: CsvForm
) -> list[list[Series]]:
    """The records of every file; warnings about their quality are issued here, and not again by a fit."""
    records = read_by_file(list(files), list(inputs or []), list(outputs or []), times, form)
    warnings.simplefilter("ignore", QualityWarning)  # until the command ends: `main` restores the filters
    return records


def leave_out_short(by_file: Sequence[Sequence[Series]], least: int) -> list[Series]:
    """The records of files, without pieces of a split file that have fewer than `least` samples; a warning says so."""
    records = [record for pieces in by_file for record in pieces]
    kept = [record for pieces in by_file for record in pieces if len(pieces) == 1 or len(record) >= least]
    if not kept:
        raise InputError(
            f"no record between gaps in time has the {least} samples that the lags need (the longest has "
            f"{max(map(len, records))}); use fewer lags or a longer record"
        )
    if len(kept) < len(records):
        warn_user(
            f"{len(records) - len(kept)} of {len(records)} records between gaps in time have fewer than the {least} "
            "samples that the lags need, and are left out"
        )
    return kept


def open_table(path: Path, model: Fitted, time_column: str | None, form: CsvForm) -> tuple[Table, str | None]:
    """A table that is sampled like the model, and its column of times."""
    table = Table(path, form)
    time_column = find_time_column(model, time_column, [table])
    if time_column is not None:
        check_interval(table, time_column, model.dt)
    return table, time_column


def find_time_column(model: Fitted, given: str | None, tables: Iterable[Table]) -> str | None:
    """The given column of times, or else that of the training, where all tables have it."""
    known = model.preprocessor.time_name
    return known if given is None and known is not None and all(known in table for table in tables) else given


def make_record(kind: type[Record], table: Table, model: Fitted) -> Record:
    """The columns of a model's inputs and outputs as a record."""
    u, y = table.columns(model.input_names), table.columns(model.output_names, missing=True)
    return kind(u, y, model.dt, model.input_names, model.output_names)


def check_target(path_file: Path, read: Sequence[Path]) -> tuple[Path, ...]:
    """The files to write, checked before the work: a table and, unless it is a pipe or a device, a picture beside it.

    None for a table on the standard output.
    """
    if str(path_file) in STANDARD_OUTPUT:
        return ()
    check_table_file(path_file)
    if is_stream(path_file):
        return (check_writable(path_file),)
    return path_file, find_picture(path_file, ".png", read)


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
            save_figure(picture, path.plot(measured, f"{table.path.name}: {what}"))
    if measured is not None and not np.isnan(measured[path.skip :]).all():
        shown = screen if targets else error_screen  # a table on the standard output is alone there
        shown.print(score_table(path.method, scores(path, measured), what))
    if path.warning is not None:
        print_line("warning", path.warning)
    print_written(*targets)
    if not targets:
        _write_to_standard_output(encode_csv(columns))


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
