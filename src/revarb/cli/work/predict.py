"""Predict along the record of a table; write, draw and score the predictions."""

from pathlib import Path

from revarb.cli.paths import check_target, make_record, open_table, write_path
from revarb.data.series import Series
from revarb.data.tables.csv_form import CsvForm
from revarb.errors import InputError
from revarb.models.model_file import load


def predict_table(
    model_file: Path, record_file: Path, path_file: Path, horizon: int, time_column: str | None, form: CsvForm
) -> None:
    """`revarb predict` with its options."""
    model = load(model_file)
    if not hasattr(model, "predict"):  # most baselines only simulate
        raise InputError(f"{model_file} contains a {type(model).__name__}, which cannot predict; use revarb simulate")
    target = check_target(path_file, read=(model_file, record_file))
    source = open_table(record_file, model, time_column, form)
    record = make_record(Series, source.table, model)
    path = model.predict(record, horizon)
    write_path(path, source, record.y, f"prediction, {path.start}", target)
