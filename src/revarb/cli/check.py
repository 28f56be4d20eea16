"""`revarb check`: residual analysis of a model along a measured record."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli import options
from revarb.cli.application import app, print_written, screen
from revarb.errors import InputError
from revarb.runtime.files import check_writable
from revarb.runtime.interrupts import capture_interrupts, exit_on_interrupt


@app.command()
def check(
    model_file: options.ModelFile,
    record_file: options.RecordFile,
    picture: Annotated[Path, typer.Option("-o", "--out", help="Where to write the picture (PNG).")] = Path("check.png"),
    max_lag: Annotated[
        int | None, typer.Option(help="Largest lag of the correlations; default: 25, or more if the model has more.")
    ] = None,
    time_column: options.ModelTimes = None,
    decimal: options.Decimal = None,
    separator: options.Separator = None,
    skip_rows: options.SkipRows = 0,
) -> None:
    """Check a model by its residuals on a measured record.

    The residuals are the errors one step ahead. Says whether they are white and independent of the inputs, and if not,
    what to try. Draws autocorrelation, cross-correlation with every input, and histogram. Outputs may be missing.
    """
    with exit_on_interrupt():
        from dataclasses import replace

        from revarb import Series, load
        from revarb.cli.tables import make_record, open_table
        from revarb.data.csv_file import CsvForm
        from revarb.runtime.figure_style import save_figure
    if picture.suffix.lower() != ".png":
        raise InputError(f"-o {picture}: the picture is a PNG file; choose a name that ends in .png")
    if check_writable(picture).resolve() in (model_file.resolve(), record_file.resolve()):
        raise InputError(f"-o {picture} would overwrite a file that is read; choose another name")
    model = load(model_file)
    if not hasattr(model, "residuals"):  # most baselines only simulate
        raise InputError(f"{model_file} contains a {type(model).__name__}, which cannot predict and has no residuals")
    table, _ = open_table(record_file, model, time_column, CsvForm(decimal, separator, skip_rows))
    residuals = model.residuals(make_record(Series, table, model), max_lag)
    for sentence in residuals.sentences:
        screen.print(sentence, style="bold", soft_wrap=True)
    screen.print(replace(residuals.summary(), title=record_file.name))
    with capture_interrupts():
        print_written(save_figure(picture, residuals.plot()))
