"""`revarb predict`: k steps ahead along a measured record."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app
from revarb.cli.options import Decimal, ModelFile, ModelTimes, PathFile, Separator, SkipRows
from revarb.runtime.interrupts import exit_on_interrupt


@app.command()
def predict(
    model_file: ModelFile,
    record_file: Annotated[
        Path, typer.Argument(metavar="RECORD", help="CSV or Parquet file with the input and output columns.")
    ],
    path_file: PathFile,
    horizon: Annotated[int, typer.Option(help="How many samples ahead.")] = 1,
    time_column: ModelTimes = None,
    decimal: Decimal = None,
    separator: Separator = None,
    skip_rows: SkipRows = 0,
) -> None:
    """Predict a measured record, HORIZON samples ahead.

    Every sample is predicted from those up to HORIZON before it. Outputs may be missing. Draws and scores the
    predictions.
    """
    with exit_on_interrupt():
        from revarb.cli.work.predict import predict_table
        from revarb.data.tables.csv_form import CsvForm
    predict_table(model_file, record_file, path_file, horizon, time_column, CsvForm(decimal, separator, skip_rows))
