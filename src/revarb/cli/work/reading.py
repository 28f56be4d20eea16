"""Read the records to fit to, and leave out what is too short where files are split at gaps in time."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from revarb.config.lagged import Lagged
from revarb.data.series import Series
from revarb.data.tables.csv_form import CsvForm
from revarb.data.tables.records import Times, read_by_file
from revarb.data.windows import Order
from revarb.errors import InputError, QualityWarning, warn_user
from revarb.models.base import ModelSpec
from revarb.training.candidates import DELAYS, MORE_LAGS
from revarb.training.choose import Chosen

Names = Sequence[str]


def read_files(files: Sequence[Path], inputs: Names, outputs: Names, times: Times, form: CsvForm) -> list[list[Series]]:
    """The records of every file; what is said about their quality here is not said again by a fit."""
    records = read_by_file(list(files), list(inputs), list(outputs), times, form)
    warnings.simplefilter("ignore", QualityWarning)  # until the command ends: `main` restores the filters
    return records


def leave_out_short(by_file: Sequence[Sequence[Series]], least: int) -> list[Series]:
    """The records of files, without pieces of a split file that have fewer than `least` samples; a warning says so."""
    records = [record for pieces in by_file for record in pieces]
    kept = [record for pieces in by_file for record in pieces if len(pieces) == 1 or len(record) >= least]
    if not kept:
        raise InputError(
            f"no record between gaps in time has the {least} samples that the lags need (the longest has "
            f"{max(map(len, records))}); use fewer lags or a longer record"
        )
    if len(kept) < len(records):
        warn_user(
            f"{len(records) - len(kept)} of {len(records)} records between gaps in time have fewer than the {least} "
            "samples that the lags need, and are left out"
        )
    return kept


def count_rows_to_fit(model: ModelSpec | None, inputs: int) -> int:
    """The fewest samples of a record that the model can be fitted to; None is a choice, which sees to it itself."""
    return model.order_for(inputs).first_row + 2 if isinstance(model, Lagged) else 1


def count_rows_to_compare(models: Sequence[ModelSpec], inputs: int) -> int:
    """The fewest samples of a record that all models can be fitted to, and of which some can be scored."""
    orders = [model.order_for(inputs) for model in models if isinstance(model, Lagged)]
    if any(isinstance(model, Chosen) for model in models):
        orders.append(Order(MORE_LAGS, MORE_LAGS if inputs else 0, max(DELAYS)))
    return max((order.skip + 2 for order in orders), default=1)
