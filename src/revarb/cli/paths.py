"""What `revarb simulate` and `revarb predict` share: reading a table for a model, writing a trajectory."""

from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import typer

from revarb.cli.app import print_line, print_written, screen
from revarb.data.series import Series
from revarb.data.tables.sampling import is_same_interval, sampling_interval
from revarb.data.tables.table import Table
from revarb.data.tables.writing import write_table
from revarb.data.trajectory import Trajectory
from revarb.data.trajectory_figure import trajectory_figure
from revarb.errors import InputError
from revarb.evaluation.scoring import scores
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.report.tables import score_table
from revarb.runtime.files import write_atomic
from revarb.runtime.interrupts import capture_interrupts

Model = FittedRGP | Ensemble


Record = TypeVar("Record", bound=Series)


TimeColumn = Annotated[str | None, typer.Option("--time", help="Column of times; must be even, and as in the fit.")]


def _deliver(
    path: Trajectory, measured: np.ndarray | None, source: Path, what: str, path_file: Path, picture: Path
) -> None:
    # Everything that is known of a path: a table, a picture, scores where there is something to score, a warning.
    with capture_interrupts():
        write_table(path_file, trajectory_columns(path))
        write_atomic(picture, trajectory_figure(path, measured, f"{source.name}: {what}"))
    if measured is not None and not np.isnan(measured[path.skip :]).all():
        screen.print(score_table({path.method: scores(path, measured)}, what))
    if path.warning is not None:
        print_line("warning", path.warning)
    print_written(path_file, picture)


def trajectory_columns(path: Trajectory) -> dict[str, np.ndarray]:
    """A trajectory as the columns of a table: mean, standard deviation and 95 % band of every output, and samples."""
    columns: dict[str, np.ndarray] = {}
    band = None if path.std is None else path.interval(0.95)
    for column, name in enumerate(path.output_names):
        columns[f"{name}_mean"] = path.mean[:, column]
        if path.std is not None and band is not None:
            columns[f"{name}_std"] = path.std[:, column]
            columns[f"{name}_lower"], columns[f"{name}_upper"] = band[0][:, column], band[1][:, column]
        if path.samples is not None:
            columns |= {f"{name}_sample{k}": path.samples[k, :, column] for k in range(len(path.samples))}
    return columns


def _table(path: Path, model: Model, time_column: str | None) -> Table:
    table = Table(path)
    if time_column is not None:
        _check_sampling(table, time_column, model.dt)
    return table


def _record(kind: type[Record], table: Table, model: Model) -> Record:
    u, y = table.columns(model.input_names), table.columns(model.output_names, missing=True)
    return kind(u, y, model.dt, model.input_names, model.output_names)


def _check_sampling(table: Table, column: str, dt: float) -> None:
    interval = sampling_interval(table, column)
    if not is_same_interval(interval, dt):
        raise InputError(
            f"{table.path} is sampled every {interval:g}, but the model was fitted with dt={dt:g}; resample the file, "
            "or fit with --time or --dt"
        )
