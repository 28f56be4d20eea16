"""What every kind of table gives: its cells, as numbers, times or texts."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64


class Column(NamedTuple):
    """A column as numbers, NaN where a value is missing.

    `odd` says of each row whose cell is something else why it cannot be used; there, the value is NaN too.
    """

    values: Float64[np.ndarray, " N"]
    odd: Mapping[int, str]


@runtime_checkable
class Cells(Protocol):
    """Access to the cells of one kind of file. Rows are counted from 0."""

    names: tuple[str, ...]

    def __len__(self) -> int: ...

    def place(self, row: int) -> str:
        """Where a person finds a row in the file."""
        ...

    def text(self, name: str, row: int) -> str:
        """A cell as it can be shown."""
        ...

    def numbers(self, name: str) -> Column:
        """A column as numbers."""
        ...

    def seconds(self, name: str) -> Column:
        """A column of numbers as they are, or of points in time as seconds after the first."""
        ...
