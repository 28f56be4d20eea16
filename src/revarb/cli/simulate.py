"""`revarb simulate`: from a model and new inputs to a trajectory."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from revarb.cli.app import app, figure_target
from revarb.cli.paths import Model, TimeColumn, _deliver, _record, _table
from revarb.data.series import Window
from revarb.data.tables.table import Table
from revarb.errors import InputError
from revarb.models.model_file import load
from revarb.simulation.starts import StartChoice


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
    picture = figure_target(path_file, ".png", read=(model_file, test, *before))
    measured = _measured(table, model.output_names)
    u, steps = (table.columns(model.input_names), None) if model.input_names else (None, len(table))
    path = model.simulate(u, method=_method(method), start=begin, steps=steps, samples=samples, seed=seed)
    where = "cold start" if path.start == "cold" else path.start
    _deliver(path, measured, test, f"free simulation, {where}", path_file, picture)


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
