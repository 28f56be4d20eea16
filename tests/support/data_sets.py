"""Parts of data sets as lists of records."""

from revarb.data.series import Series


def list_records(part):
    """The records of a training or test part, which is one or several."""
    return [part] if isinstance(part, Series) else list(part)
