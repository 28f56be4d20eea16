"""Tables of commands: records to fit to, a table for a trained model, and the trajectory that is written."""

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from revarb.analysis.scores import scores
from revarb.analysis.tables import score_table
from revarb.cli.application import figure_target, print_line, print_written, screen
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


class PathTarget(NamedTuple):
    """Where a trajectory is written: a table (None: the standard output), and a picture beside a file."""

    table: Path | None
    picture: Path | None


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
    """A table that is sampled like the model, and its column of times: the given one, or else that of the training."""
    table, remembered = Table(path, form), model.preprocessor.time_name
    if time_column is None and remembered is not None and remembered in table:
        time_column = remembered
    if time_column is not None:
        check_interval(table, time_column, model.dt)
    return table, time_column


def make_record(kind: type[Record], table: Table, model: Fitted) -> Record:
    """The columns of a model's inputs and outputs as a record."""
    u, y = table.columns(model.input_names), table.columns(model.output_names, missing=True)
    return kind(u, y, model.dt, model.input_names, model.output_names)


def check_target(path_file: Path, read: Sequence[Path]) -> PathTarget:
    """Where to write, checked before the work: the ending is known, and no file that is read would be replaced."""
    if str(path_file) in STANDARD_OUTPUT:
        return PathTarget(None, None)
    check_table_file(path_file)
    if is_stream(path_file):
        return PathTarget(check_writable(path_file), None)
    return PathTarget(path_file, figure_target(path_file, ".png", read=read))


def write_path(
    path: Trajectory,
    table: Table,
    time_name: str | None,
    measured: np.ndarray | None,
    what: str,
    target: PathTarget,
) -> None:
    """Write a trajectory as a table and a picture; print its scores, where there are measured outputs, and warnings."""
    columns = path.labelled_columns(time_name, None if time_name is None else table.labels(time_name))
    with capture_interrupts():
        if target.table is not None:
            write_table(target.table, columns)
        if target.picture is not None:
            save_figure(target.picture, path.plot(measured, f"{table.path.name}: {what}"))
    with _free_standard_output(target):
        if measured is not None and not np.isnan(measured[path.skip :]).all():
            screen.print(score_table({path.method: scores(path, measured)}, what))
        if path.warning is not None:
            print_line("warning", path.warning)
        print_written(*(each for each in target if each is not None))
    if target.table is None:
        _write_to_standard_output(encode_csv(columns))


@contextmanager
def _free_standard_output(target: PathTarget) -> Iterator[None]:
    # A table on the standard output is alone there.
    before, screen.stderr = screen.stderr, target.table is None
    try:
        yield
    finally:
        screen.stderr = before


def _write_to_standard_output(content: bytes) -> None:
    try:
        sys.stdout.write(content.decode())
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has read enough; Python flushes once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
