"""`revarb simulate`: from a model and new inputs to a trajectory."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app
from revarb.cli.options import Decimal, ModelFile, ModelTimes, PathFile, Separator, SkipRows
from revarb.runtime.interrupts import exit_on_interrupt


@app.command()
def simulate(
    model_file: ModelFile,
    test: Annotated[Path, typer.Argument(metavar="TEST", help="CSV or Parquet file with the input columns.")],
    path_file: PathFile,
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
    time_column: ModelTimes = None,
    decimal: Decimal = None,
    separator: Separator = None,
    skip_rows: SkipRows = 0,
) -> None:
    """Simulate a model on new inputs; draw the result and score it.

    The scores need a file that has the measured outputs too.
    """
    with exit_on_interrupt():
        from revarb.cli.work.simulate import simulate_table
        from revarb.data.tables.csv_form import CsvForm
    simulate_table(
        model_file, test, path_file, method, seed, samples, start, time_column, CsvForm(decimal, separator, skip_rows)
    )
