"""Simulate a model on the inputs of a table; write, draw and score the trajectory."""

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from revarb.cli.paths import check_target, make_record, open_table, write_path
from revarb.data.series import Window
from revarb.data.tables.csv_form import CsvForm
from revarb.data.tables.table import Table
from revarb.errors import InputError, warn_user
from revarb.models.base import Fitted
from revarb.models.model_file import load
from revarb.simulation.starts import StartChoice


def simulate_table(
    model_file: Path,
    test: Path,
    path_file: Path,
    method: str | None,
    seed: int,
    samples: int,
    start: str,
    time_column: str | None,
    form: CsvForm,
) -> None:
    """`revarb simulate` with its options; the score needs measured outputs in the table."""
    model = load(model_file)
    source = open_table(test, model, time_column, form)
    begin = _read_start(start, model, time_column, form)
    before = [] if isinstance(begin, str) else [Path(start)]
    target = check_target(path_file, read=(model_file, test, *before))
    table = source.table
    measured = _read_measured(table, model.output_names)
    u, steps = (table.columns(model.input_names), None) if model.input_names else (None, len(table))
    options: dict[str, Any] = {"steps": steps, "start": begin, "samples": samples, "seed": seed}
    accepted = signature(model.simulate).parameters  # baselines start cold only, and most have no samples
    if start != "cold" and "start" not in accepted:
        raise InputError(f"--start {start}: a {type(model).__name__} starts cold only")
    options = {name: value for name, value in options.items() if name in accepted}
    chosen: Any = model.methods[-1] if method is None else method
    path = model.simulate(u, chosen, **options)
    where = "cold start" if path.start == "cold" else path.start
    write_path(path, source, measured, f"free simulation, {where}", target)


def _read_start(choice: str, model: Fitted, time_column: str | None, form: CsvForm) -> StartChoice:
    if choice == "cold" or choice == "continue":
        return choice
    try:
        return make_record(Window, open_table(Path(choice), model, time_column, form).table, model)
    except InputError as error:
        raise InputError(f"--start takes cold, continue or a table measured just before: {error}") from None


def _read_measured(table: Table, names: Sequence[str]) -> np.ndarray | None:
    if not all(name in table for name in names):
        return None
    try:
        return table.measured(names)
    except InputError as error:  # the measured output is optional
        warn_user(f"{error}; simulating without scores")
        return None
