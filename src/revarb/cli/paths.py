"""What `revarb simulate` and `revarb predict` share: reading a table for a model, writing a trajectory."""

from pathlib import Path
from typing import TypeVar

import numpy as np

from revarb.cli.application import print_line, print_written, screen
from revarb.data.series import Series
from revarb.data.tables import Table, check_interval
from revarb.data.trajectory import Trajectory
from revarb.evaluation.scoring import scores
from revarb.models.base import Fitted
from revarb.report.tables import score_table
from revarb.runtime.figure_style import save_figure
from revarb.runtime.interrupts import capture_interrupts

Record = TypeVar("Record", bound=Series)


def open_table(path: Path, model: Fitted, time_column: str | None) -> Table:
    """A table whose sampling, where a column of times is named, is that of the model."""
    table = Table(path)
    if time_column is not None:
        check_interval(table, time_column, model.dt)
    return table


def make_record(kind: type[Record], table: Table, model: Fitted) -> Record:
    """The columns of a model's inputs and outputs as a record."""
    u, y = table.columns(model.input_names), table.columns(model.output_names, missing=True)
    return kind(u, y, model.dt, model.input_names, model.output_names)


def write_path(
    path: Trajectory, measured: np.ndarray | None, source: Path, what: str, path_file: Path, picture: Path
) -> None:
    """Write a trajectory as a table and a picture; print its scores, where there are measured outputs, and warnings."""
    with capture_interrupts():
        path.to_csv(path_file)
        save_figure(picture, path.plot(measured, f"{source.name}: {what}"))
    if measured is not None and not np.isnan(measured[path.skip :]).all():
        screen.print(score_table({path.method: scores(path, measured)}, what))
    if path.warning is not None:
        print_line("warning", path.warning)
    print_written(path_file, picture)
