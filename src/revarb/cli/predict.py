"""`revarb predict`: k steps ahead along a measured record."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app, figure_target
from revarb.cli.paths import TimeColumn, make_record, open_table, write_path
from revarb.data.series import Series
from revarb.errors import InputError
from revarb.models.model_file import load


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
    """Predict every sample of a measured record from the samples up to HORIZON before it.

    Outputs may be missing. Draws and scores the predictions.
    """
    model = load(model_file)
    if not hasattr(model, "predict"):  # most baselines only simulate
        raise InputError(f"{model_file} contains a {type(model).__name__}, which cannot predict; use revarb simulate")
    record = make_record(Series, open_table(record_file, model, time_column), model)
    picture = figure_target(path_file, ".png", read=(model_file, record_file))
    path = model.predict(record, horizon)
    write_path(path, record.y, record_file, f"prediction, {path.start}", path_file, picture)
