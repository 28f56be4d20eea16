"""Analyse the residuals of a model along the record of a table; say what is left in them, and draw it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from revarb.cli.application import print_written, screen
from revarb.cli.paths import make_record, open_table
from revarb.data.series import Series
from revarb.data.tables.csv_form import CsvForm
from revarb.errors import InputError
from revarb.models.model_file import load
from revarb.models.prediction import Predictor
from revarb.runtime.figure_style import save_figure
from revarb.runtime.files import check_writable
from revarb.runtime.interrupts import capture_interrupts


def check_model(
    model_file: Path, record_file: Path, picture: Path, max_lag: int | None, time_column: str | None, form: CsvForm
) -> None:
    """`revarb check` with its options."""
    _check_picture(picture, read=(model_file, record_file))
    model = load(model_file)
    if not isinstance(model, Predictor):  # most baselines only simulate
        raise InputError(f"{model_file} contains a {type(model).__name__}, which cannot predict and has no residuals")
    record = make_record(Series, open_table(record_file, model, time_column, form).table, model)
    residuals = model.residuals(record, max_lag)
    for sentence in residuals.sentences:
        screen.print(sentence, style="bold", soft_wrap=True)
    screen.print(replace(residuals.summary(), title=record_file.name))
    with capture_interrupts():
        print_written(save_figure(picture, residuals.plot()))


def _check_picture(picture: Path, read: Sequence[Path]) -> None:
    # Before the work.
    if picture.suffix.lower() != ".png":
        raise InputError(f"-o {picture}: the picture is a PNG file; choose a name that ends in .png")
    if check_writable(picture).resolve() in [path.resolve() for path in read]:
        raise InputError(f"-o {picture} would overwrite a file that is read; choose another name")
