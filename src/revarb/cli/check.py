"""`revarb check`: what is left in a model's errors one step ahead along a measured record."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app
from revarb.cli.options import Decimal, ModelFile, ModelTimes, Separator, SkipRows
from revarb.runtime.interrupts import exit_on_interrupt


@app.command()
def check(
    model_file: ModelFile,
    record_file: Annotated[
        Path, typer.Argument(metavar="RECORD", help="CSV or Parquet file with the input and output columns.")
    ],
    picture: Annotated[Path, typer.Option("-o", "--out", help="Where to write the picture (PNG).")] = Path("check.png"),
    max_lag: Annotated[
        int | None, typer.Option(help="Largest lag of the correlations; default: 25, or more if the model has more.")
    ] = None,
    time_column: ModelTimes = None,
    decimal: Decimal = None,
    separator: Separator = None,
    skip_rows: SkipRows = 0,
) -> None:
    """Check a model by its residuals on a measured record.

    The residuals are the errors one step ahead. Says whether they are white and independent of the inputs, and if not,
    what to try. Draws autocorrelation, cross-correlation with every input, and histogram. Outputs may be missing.
    """
    with exit_on_interrupt():
        from revarb.cli.work.check import check_model
        from revarb.data.tables.csv_form import CsvForm
    check_model(model_file, record_file, picture, max_lag, time_column, CsvForm(decimal, separator, skip_rows))
