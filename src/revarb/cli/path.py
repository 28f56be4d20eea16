"""`revarb simulate`, `revarb predict`: from a model to a trajectory."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import typer

from revarb.cli.app import app, complain, picture_beside, say_written, screen
from revarb.ensemble import Ensemble
from revarb.errors import InputError
from revarb.files import write_whole
from revarb.fitted import FittedRGP
from revarb.interrupts import held_interrupts
from revarb.load import load
from revarb.report.figures import simulation_figure
from revarb.report.tables import score_table
from revarb.scores import scores
from revarb.series import Series, Window
from revarb.start import StartChoice
from revarb.table import Table, is_same_interval, sampling_interval, write_table
from revarb.trajectory import Trajectory

Model = FittedRGP | Ensemble
Record = TypeVar("Record", bound=Series)
TimeColumn = Annotated[str | None, typer.Option("--time", help="Column of times; must be even, and as in the fit.")]


@app.command()
def simulate(
    model_file: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `revarb fit` wrote.")],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="CSV or Parquet file with the input columns.")],
    path_file: Annotated[Path, typer.Option("-o", "--out", help="Where to write the simulated trajectory (CSV).")],
    method: Annotated[str, typer.Option(help="moments, mean, samples or network.")] = "moments",
    seed: Annotated[int, typer.Option(help="Seed of method=samples.")] = 0,
    samples: Annotated[int, typer.Option(help="Number of trajectories of method=samples, a column each.")] = 200,
    start: Annotated[
        str,
        typer.Option(
            metavar="cold|continue|FILE",
            help="cold; continue where training ended; or a table with what was measured just before TEST.",
        ),
    ] = "cold",
    time_column: TimeColumn = None,
) -> None:
    """Simulate a model on new inputs; draws it, and scores it where the file has the measured output."""
    model = load(model_file)
    table = _table(test, model, time_column)
    begin = _start(start, model, time_column)
    before = [] if isinstance(begin, str) else [Path(start)]
    picture = picture_beside(path_file, ".png", read=(model_file, test, *before))
    measured = _measured(table, model.output_names)
    u, steps = (table.columns(model.input_names), None) if model.input_names else (None, len(table))
    path = model.simulate(u, method=_method(method), start=begin, steps=steps, samples=samples, seed=seed)
    where = "cold start" if path.start == "cold" else path.start
    _deliver(path, measured, test, f"free simulation, {where}", path_file, picture)


@app.command()
def predict(
    model_file: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `revarb fit` wrote.")],
    record_file: Annotated[
        Path, typer.Argument(metavar="RECORD", help="CSV or Parquet file with the input and output columns.")
    ],
    path_file: Annotated[Path, typer.Option("-o", "--out", help="Where to write the predictions (CSV).")],
    horizon: Annotated[int, typer.Option(help="How many samples ahead.")] = 1,
    time_column: TimeColumn = None,
) -> None:
    """Predict every sample of a measured record from what was measured up to HORIZON samples before it.

    Outputs may be missing. Draws and scores the predictions.
    """
    model = load(model_file)
    record = _record(Series, _table(record_file, model, time_column), model)
    picture = picture_beside(path_file, ".png", read=(model_file, record_file))
    path = model.predict(record, horizon)
    _deliver(path, record.y, record_file, f"prediction, {path.start}", path_file, picture)


def _deliver(
    path: Trajectory, measured: np.ndarray | None, source: Path, what: str, path_file: Path, picture: Path
) -> None:
    # Everything that is known of a path: a table, a picture, scores where there is something to score, a warning.
    with held_interrupts():
        write_table(path_file, trajectory_columns(path))
        write_whole(picture, simulation_figure(path, measured, f"{source.name}: {what}"))
    if measured is not None and not np.isnan(measured[path.skip :]).all():
        screen.print(score_table({path.method: scores(path, measured)}, what))
    if path.warning is not None:
        complain("warning", path.warning)
    say_written(path_file, picture)


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


def _start(choice: str, model: Model, time_column: str | None) -> StartChoice:
    if choice == "cold" or choice == "continue":
        return choice
    try:
        table = _table(Path(choice), model, time_column)
        return _record(Window, table, model)
    except InputError as error:
        raise InputError(
            f"--start takes cold, continue or a file with what was measured just before: {error}"
        ) from None


def _check_sampling(table: Table, column: str, dt: float) -> None:
    interval = sampling_interval(table, column)
    if not is_same_interval(interval, dt):
        raise InputError(
            f"{table.path} is sampled every {interval:g}, but the model was fitted with dt={dt:g}; resample the file, "
            "or fit with --time or --dt"
        )


def _method(name: str):
    if name not in ("moments", "mean", "samples", "network"):
        raise InputError(f"--method must be moments, mean, samples or network, received {name!r}")
    return name


def _measured(table: Table, names: Sequence[str]) -> np.ndarray | None:
    if not all(name in table for name in names):
        return None
    try:
        return table.columns(names, missing=True)
    except InputError as error:  # the measured output is welcome, not needed
        warnings.warn(f"{error}; simulating without scores", stacklevel=2)
        return None
