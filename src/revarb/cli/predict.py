"""`revarb predict`: k steps ahead along a measured record."""

from typing import Annotated

import typer

from revarb.cli import options
from revarb.cli.application import app
from revarb.errors import InputError
from revarb.runtime.interrupts import exit_on_interrupt


@app.command()
def predict(
    model_file: options.ModelFile,
    record_file: options.RecordFile,
    path_file: options.PathFile,
    horizon: Annotated[int, typer.Option(help="How many samples ahead.")] = 1,
    time_column: options.ModelTimes = None,
    decimal: options.Decimal = None,
    separator: options.Separator = None,
    skip_rows: options.SkipRows = 0,
) -> None:
    """Predict a measured record, HORIZON samples ahead.

    Every sample is predicted from those up to HORIZON before it. Outputs may be missing. Draws and scores the
    predictions.
    """
    with exit_on_interrupt():
        from revarb import Series, load
        from revarb.cli.tables import check_target, make_record, open_table, write_path
        from revarb.data.csv_file import CsvForm
    model = load(model_file)
    if not hasattr(model, "predict"):  # most baselines only simulate
        raise InputError(f"{model_file} contains a {type(model).__name__}, which cannot predict; use revarb simulate")
    target = check_target(path_file, read=(model_file, record_file))
    table, time_name = open_table(record_file, model, time_column, CsvForm(decimal, separator, skip_rows))
    record = make_record(Series, table, model)
    path = model.predict(record, horizon)
    write_path(path, table, time_name, record.y, f"prediction, {path.start}", target)
