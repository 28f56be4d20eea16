"""`revarb simulate`: from a model and new inputs to a trajectory."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revarb.cli import options
from revarb.cli.application import app
from revarb.errors import InputError, warn_user
from revarb.runtime.interrupts import exit_on_interrupt

if TYPE_CHECKING:
    import numpy as np

    from revarb.data.table_file import Table


@app.command()
def simulate(
    model_file: options.ModelFile,
    test: Annotated[Path, typer.Argument(metavar="TEST", help="CSV or Parquet file with the input columns.")],
    path_file: options.PathFile,
    method: Annotated[str | None, typer.Option(help="moments (default of an RGP), mean, samples or network.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of method=samples.")] = 0,
    samples: Annotated[int, typer.Option(help="Number of trajectories of method=samples, a column each.")] = 200,
    start: Annotated[
        str,
        typer.Option(
            metavar="cold|continue|FILE",
            help="cold; continue where training ended; or a table measured just before TEST.",
        ),
    ] = "cold",
    time_column: options.ModelTimes = None,
    decimal: options.Decimal = None,
    separator: options.Separator = None,
    skip_rows: options.SkipRows = 0,
) -> None:
    """Simulate a model on new inputs; draw the result and score it.

    The scores need a file that has the measured outputs too.
    """
    with exit_on_interrupt():
        from inspect import signature

        from revarb import Window, load
        from revarb.cli.tables import check_target, make_record, open_table, write_path
        from revarb.data.csv_file import CsvForm
    form, model = CsvForm(decimal, separator, skip_rows), load(model_file)
    table, time_name = open_table(test, model, time_column, form)
    begin: Any = start
    if start not in ("cold", "continue"):
        try:
            begin = make_record(Window, open_table(Path(start), model, time_column, form)[0], model)
        except InputError as error:
            raise InputError(f"--start takes cold, continue or a table measured just before: {error}") from None
    target = check_target(path_file, read=(model_file, test, *(() if begin is start else (Path(start),))))
    measured = _read_measured(table, model.output_names)
    u, steps = (table.columns(model.input_names), None) if model.input_names else (None, len(table))
    accepted = signature(model.simulate).parameters  # baselines start cold only, and most have no samples
    if start != "cold" and "start" not in accepted:
        raise InputError(f"--start {start}: a {type(model).__name__} starts cold only")
    arguments = {"steps": steps, "start": begin, "samples": samples, "seed": seed}
    arguments = {name: value for name, value in arguments.items() if name in accepted}
    path = model.simulate(u, model.methods[-1] if method is None else method, **arguments)
    where = "cold start" if path.start == "cold" else path.start
    write_path(path, table, time_name, measured, f"free simulation, {where}", target)


def _read_measured(table: "Table", names: tuple[str, ...]) -> "np.ndarray | None":
    if not all(name in table for name in names):
        return None
    try:
        return table.measured(names)
    except InputError as error:  # the measured output is optional
        warn_user(f"{error}; simulating without scores")
        return None
