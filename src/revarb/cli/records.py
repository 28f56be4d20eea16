"""Tables that commands read, and the files they will write: checked before anything that takes seconds to import."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from revarb.cli.application import find_picture
from revarb.data.csv_file import CsvForm
from revarb.data.record_files import Times, read_by_file
from revarb.data.sampling import check_interval
from revarb.data.series import Series
from revarb.data.table_file import Table, check_table_file
from revarb.errors import InputError, QualityWarning, warn_user
from revarb.models.container import read_columns
from revarb.runtime.files import check_writable, is_stream

if TYPE_CHECKING:
    from revarb.models.base import Fitted

STANDARD_OUTPUT = ("-", "/dev/stdout")

Record = TypeVar("Record", bound=Series)


def read_files(
    files: Sequence[Path], inputs: Sequence[str] | None, outputs: Sequence[str] | None, times: Times, form: CsvForm
) -> list[list[Series]]:
    """The records of every file; warnings about their quality are issued here, and not again by a fit."""
    records = read_by_file(list(files), list(inputs or []), list(outputs or []), times, form)
    warnings.simplefilter("ignore", QualityWarning)  # until the command ends: `main` restores the filters
    return records


def read_files_of_model(
    model_file: Path,
    files: Sequence[Path],
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    times: Times,
    form: CsvForm,
) -> list[list[Series]]:
    """The records of every file, with the columns of a model; columns that are given must be its own."""
    known = read_columns(model_file)
    for option, given, own in (("-u", inputs, known.input_names), ("-y", outputs, known.output_names)):
        if given is not None and tuple(given) != own:
            raise InputError(
                f"{option} {' '.join(given)}: the columns of {model_file} are {list(own)}; leave out {option} with "
                "--from"
            )
    column = _find_time_column(known.time_name, times.column, (Table(path, form) for path in files))
    dt = known.dt if column is None and times.dt is None else times.dt
    return read_files(files, known.input_names, known.output_names, times._replace(column=column, dt=dt), form)


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


def open_table(path: Path, time_column: str | None, form: CsvForm) -> Table:
    """A table that has this column of times, if one is given."""
    table = Table(path, form)
    if time_column is not None:
        table.check_name(time_column)
    return table


def match_times(table: Table, model: "Fitted", time_column: str | None) -> str | None:
    """The column of times of a table, the given one or that of the training; its interval must be that of the model."""
    time_column = _find_time_column(model.preprocessor.time_name, time_column, [table])
    if time_column is not None:
        check_interval(table, time_column, model.dt)
    return time_column


def _find_time_column(known: str | None, given: str | None, tables: Iterable[Table]) -> str | None:
    # The given one, or else that of the training, where all tables have it.
    return known if given is None and known is not None and all(known in table for table in tables) else given


def make_record(kind: type[Record], table: Table, model: "Fitted") -> Record:
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
