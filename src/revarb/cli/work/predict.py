"""Predict along the record of a table; write, draw and score the predictions."""

from pathlib import Path

from revarb.cli.application import figure_target
from revarb.cli.paths import make_record, open_table, write_path
from revarb.data.series import Series
from revarb.errors import InputError
from revarb.models.model_file import load


def predict_table(model_file: Path, record_file: Path, path_file: Path, horizon: int, time_column: str | None) -> None:
    """`revarb predict` with its options."""
    model = load(model_file)
    if not hasattr(model, "predict"):  # most baselines only simulate
        raise InputError(f"{model_file} contains a {type(model).__name__}, which cannot predict; use revarb simulate")
    record = make_record(Series, open_table(record_file, model, time_column), model)
    picture = figure_target(path_file, ".png", read=(model_file, record_file))
    path = model.predict(record, horizon)
    write_path(path, record.y, record_file, f"prediction, {path.start}", path_file, picture)
