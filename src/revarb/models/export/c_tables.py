"""Numbers and tables of a C file."""

import textwrap
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError

WIDTH = 110  # characters of a line
SUFFIXES = {"double": "", "float": "f"}  # of numbers, and of the functions of math.h
_DTYPES = {"double": np.float64, "float": np.float32}


class CReal(NamedTuple):
    """The floating-point type of a program: the name that the program gives it, and the type of C that it is."""

    name: str
    base: str

    @property
    def suffix(self) -> str:
        """Ending of numbers, and of the functions of math.h."""
        return SUFFIXES[self.base]

    def number(self, value: float) -> str:
        """The shortest decimal number that is read back as this value exactly."""
        with np.errstate(over="ignore"):
            number = _DTYPES[self.base](value)
        if not np.isfinite(number):
            raise InputError(
                f"the model has the number {value:g}, which a {self.base} cannot hold; export it as double"
            )
        return f"{number!s}{self.suffix}"

    def table(self, name: str, values: Float64[np.ndarray, "*sizes"]) -> str:
        """A constant array; the last axis is written in lines."""
        sizes = "".join(f"[{size}]" for size in values.shape)
        return f"static const {self.name} {name}{sizes} = {self._values(values)};"

    def _values(self, values: Float64[np.ndarray, "*sizes"]) -> str:
        if values.ndim > 1:
            rows = ",\n".join(self._values(row) for row in values)
            return "{\n" + textwrap.indent(rows, "    ") + "\n}"
        text = ", ".join(self.number(value) for value in values.tolist())
        if len(text) < WIDTH:
            return "{" + text + "}"
        return "{\n" + textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent="    ") + "\n}"
