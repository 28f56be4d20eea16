"""Records from files: `read_records`."""

from collections.abc import Sequence
from pathlib import Path

from revarb.data.series import Series
from revarb.data.tables.sampling import common_interval
from revarb.data.tables.table import Table
from revarb.errors import InputError


def read_records(
    paths: Sequence[Path], inputs: Sequence[str], outputs: Sequence[str], dt: float | None, time: str | None
) -> list[Series]:
    """The named columns of every file as a record; `time` is the column that shows their sampling interval."""
    tables = [Table(path) for path in paths]
    interval = _interval(tables, dt, time)
    return [
        Series(table.columns(inputs), table.columns(outputs, missing=True), interval, tuple(inputs), tuple(outputs))
        for table in tables
    ]


def _interval(tables: Sequence[Table], dt: float | None, time: str | None) -> float:
    if time is None:
        return 1.0 if dt is None else dt
    if dt is not None:
        raise InputError("--dt and --time both say how the records are sampled; give one of them")
    return common_interval(tables, time)
