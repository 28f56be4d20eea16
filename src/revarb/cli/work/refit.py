"""Read the model of `revarb fit --from`, and how its records are to be read."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from revarb.data.tables.csv_form import CsvForm
from revarb.data.tables.records import Times
from revarb.data.tables.table import Table
from revarb.errors import InputError
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.model_file import load


class RefitSource(NamedTuple):
    """The model to refit, and how to read its records."""

    model: FittedRGP
    times: Times

    @property
    def inputs(self) -> list[str]:
        """Its input columns."""
        return list(self.model.input_names)

    @property
    def outputs(self) -> list[str]:
        """Its output columns."""
        return list(self.model.output_names)


def read_source(
    file: Path, train: Sequence[Path], inputs: Sequence[str] | None, outputs: Sequence[str] | None, times: Times,
    form: CsvForm,
) -> RefitSource:  # fmt: skip
    """Read the model; columns that are given must be its own."""
    model = load(file)
    if not isinstance(model, FittedRGP):
        raise InputError(
            f"--from {file}: a {type(model).__name__} cannot be refitted, only a single recurrent GP; fit it again"
        )
    for option, given, own in (("-u", inputs, model.input_names), ("-y", outputs, model.output_names)):
        if given is not None and tuple(given) != own:
            raise InputError(
                f"{option} {' '.join(given)}: the columns of {file} are {list(own)}; leave out {option} with --from"
            )
    column = times.column or _find_time_column(model, train, form)
    dt = model.dt if column is None and times.dt is None else times.dt
    return RefitSource(model, times._replace(column=column, dt=dt))


def _find_time_column(model: FittedRGP, train: Sequence[Path], form: CsvForm) -> str | None:
    # That of the fit, where all files have it.
    name = model.preprocessor.time_name
    return name if name is not None and all(name in Table(path, form) for path in train) else None
