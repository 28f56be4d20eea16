"""Records without gaps: what most rivals need."""

from collections.abc import Sequence

from revarb.errors import InputError
from revarb.series import Series, as_records


def complete_records(train: Series | Sequence[Series], model: str) -> tuple[Series, ...]:
    """The training records of a model that needs every output value; missing ones are refused in its name."""
    records = as_records(train)
    missing = sum(record.missing for record in records)
    if missing:
        total = sum(record.y.size for record in records)
        raise InputError(
            f"{model} needs every output value, and {missing} of {total} are missing; fill them, or use RGP, which can "
            "do without"
        )
    return records
