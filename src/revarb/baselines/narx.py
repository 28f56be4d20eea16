"""What the baselines with lags check of their records."""

from collections.abc import Sequence

from revarb.data.series import Series, as_records
from revarb.errors import InputError


def require_complete(train: Series | Sequence[Series], model: str) -> tuple[Series, ...]:
    """Return the training records of a model that needs every output value; refuse missing ones."""
    records = as_records(train)
    missing = sum(record.missing for record in records)
    if missing:
        total = sum(record.y.size for record in records)
        raise InputError(
            f"{model} needs every output value, and {missing} of {total} are missing; fill them, or use RGP, which "
            "accepts missing outputs"
        )
    return records
