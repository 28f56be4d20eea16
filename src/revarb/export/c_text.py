"""Text of a C program: identifiers made from column names, comments, numbers, tables, filled templates, layers.

A layer is a function void NAME(const real *x, real *f), z-scored regressors in, z-scored values out.
"""

import re
import textwrap
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError, describe
from revarb.export.step_model import MemberParts, StepModel
from revarb.simulation.formulas import Affine, Formula, RadialBasis, TanhNetwork

LONGEST = 40  # characters of an identifier made from a column
WIDTH = 110  # characters of a line of a table
SUFFIXES = {"double": "", "float": "f"}  # of numbers, and of the functions of math.h
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
UNIT = re.compile(r".*\S\s*\[([^\[\]]+)\]\s*")  # "level [cm]"
FLAGGED = re.compile(r"^%(!?)(\w+) ?(.*\n)", re.MULTILINE)  # a line of a template
UNQUOTABLE = re.compile(r'["\\\x00-\x1f\x7f]|\?\?')  # what cannot stand between the quotes of #include


def make_identifiers(names: Sequence[str]) -> tuple[str, ...]:
    """One capital identifier per name, all of them different; they are the ends of longer identifiers."""
    made: list[str] = []
    for position, name in enumerate(names):
        stem = clean_identifier(name).upper()[:LONGEST].rstrip("_") or f"COLUMN_{position + 1}"
        made.append(make_unique(stem, made))
    return tuple(made)


def make_unique(name: str, taken: Collection[str]) -> str:
    """The name, with a number behind it if it is taken."""
    number, made = 1, name
    while made in taken:
        number += 1
        made = f"{name}_{number}"
    return made


def clean_identifier(name: str) -> str:
    """The letters and digits of a name, without accents; everything else becomes one underscore."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")


def check_name(name: str | None, path: Path) -> str:
    """The name of the program: the one that was given, or else one made from the file's."""
    if name is not None:
        if not IDENTIFIER.fullmatch(name):
            raise InputError(
                f"name must be an identifier of C (letters, digits and underscores, a letter first), received "
                f"{describe(name)}"
            )
        return name
    made = clean_identifier(path.stem)
    return made if IDENTIFIER.fullmatch(made) else f"model_{made}".rstrip("_")


def check_include(file: str) -> str:
    """A file name that `#include "…"` can name."""
    if UNQUOTABLE.search(file):
        raise InputError(f"the C source must include {describe(file)}, which no quotes can hold; choose another name")
    return file


def find_units(names: Sequence[str], given: Mapping[str, str] | None) -> dict[str, str]:
    """Units by column: those that were given, or else the ones in brackets at the end of a name, as in "level [cm]"."""
    units = {name: found.group(1).strip() for name in names if (found := UNIT.fullmatch(name))}
    for name, unit in (given or {}).items():
        if name not in names:
            raise InputError(f"units has the column {describe(name)}, but those of the model are {list(names)}")
        if not isinstance(unit, str) or not unit.strip():
            raise InputError(f"the unit of {describe(name)} must be a text, received {describe(unit)}")
        units[name] = unit.strip()
    return {name: unit for name, unit in units.items() if unit}


def quote_comment(text: str) -> str:
    """Text in quotes that neither ends a comment nor means anything else to a C compiler."""
    printable = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
    # No end or beginning of a comment, and no trigraph.
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", r"\g<0> ", f'"{printable}"')


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
            number = (np.float64 if self.base == "double" else np.float32)(value)
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


@dataclass(frozen=True, eq=False)
class CProgram:
    """A step model with the names of its C program."""

    model: StepModel
    name: str
    base: str  # the type of its numbers: double or float
    units: Mapping[str, str]  # by column
    std: Sequence[MemberParts] | None = None  # None: the mean only

    @property
    def macro(self) -> str:
        """What the names of its constants begin with."""
        return self.name.upper()

    @property
    def real(self) -> CReal:
        """The type of all numbers."""
        return CReal(f"{self.name}_real", self.base)

    def fill(self, file: str, flags: Sequence[str] = (), **values: object) -> str:
        """A template of this package with names, sizes and these values in place of ${…}.

        A line that begins with %FLAG is kept only if that flag is given, one with %!FLAG only if not; `inputs` and
        `past` are given for models with inputs, and with past inputs.
        """
        model = self.model
        past = model.past_inputs * model.inputs
        known = {
            "name": self.name, "macro": self.macro, "real": self.real.name, "base": self.base, "past": past,
            "inputs": model.inputs, "outputs": model.outputs, "states": model.states,
            "state_size": model.state_size, "past_inputs": model.past_inputs, "dt": repr(model.dt),
        }  # fmt: skip
        given = {*flags, *(name for name in ("inputs", "past") if known[name])}
        text = (files("revarb.export") / file).read_text(encoding="utf-8")
        chosen = FLAGGED.sub(lambda line: line[3] if (line[2] in given) is (line[1] == "") else "", text)
        return Template(chosen).substitute({**known, **values})


def write_layer(program: CProgram, name: str, title: str, formula: Formula) -> str:
    """The tables of a layer, and the function that evaluates it."""
    if isinstance(formula, RadialBasis):
        return _write_radial_basis(program, name, title, formula)
    if isinstance(formula, TanhNetwork):
        return _write_network(program, name, title, formula)
    return f"/* {title}: linear in {formula.regressors} regressors. */\n{_write_affine(program, name, formula)}"


def _write_radial_basis(program: CProgram, name: str, title: str, formula: RadialBasis) -> str:
    real = program.real
    # With the root of w / 2 in the regressors and in the centres the exponent is a plain sum of squares. The inner loop
    # runs over neighbours in memory, and compilers make vector instructions of it.
    scale = np.sqrt(0.5 * formula.w)
    tables = [
        real.table(f"{name}_scale", scale),
        real.table(f"{name}_centres", (scale * formula.zeta).T),
        real.table(f"{name}_weights", formula.variance * formula.beta),
    ]
    # In single precision exp(−s) − 1: where a kernel is wide, s is small, and large weights of opposite signs would
    # multiply the rounding of values near 1. The sum of the weights is in the offset then.
    small = real.base == "float"
    first, begin = _write_begin(program, name, formula, small)
    return program.fill(
        "c_parts/radial_basis.c",
        layer=name,
        title=title,
        tail="" if formula.affine is None else " and a linear part",
        centres=len(formula.zeta),
        regressors=formula.regressors,
        values=formula.outputs,
        tables="\n".join(tables),
        first=first,
        begin=begin,
        exp="expm1f" if small else "exp",
    )


def _write_begin(program: CProgram, name: str, formula: RadialBasis, add_weights: bool) -> tuple[str, str]:
    # What the sum over the basis functions is added to: definitions, and the statement that sets f to it.
    total = formula.variance * formula.beta.sum(axis=0)
    if formula.affine is not None:
        affine = formula.affine
        if add_weights:
            affine = affine._replace(offset=affine.offset + total)
        return _write_affine(program, f"{name}_linear", affine), f"{name}_linear(x, f);"
    if add_weights:
        return f"{program.real.table(f'{name}_offset', total)}\n", f"copy({formula.outputs}, {name}_offset, f);"
    return "", f"fill({formula.outputs}, f);"


def _write_network(program: CProgram, name: str, title: str, formula: TanhNetwork) -> str:
    return program.fill(
        "c_parts/tanh_network.c",
        layer=name,
        title=title,
        units=formula.hidden.outputs,
        regressors=formula.regressors,
        hidden=_write_affine(program, f"{name}_hidden", formula.hidden),
        readout=_write_affine(program, f"{name}_readout", formula.readout),
        tanh=f"tanh{program.real.suffix}",
    )


def _write_affine(program: CProgram, name: str, affine: Affine) -> str:
    return program.fill(
        "c_parts/affine.c",
        layer=name,
        offset=program.real.table(f"{name}_offset", affine.offset),
        coefficients=program.real.table(f"{name}_coefficients", affine.coefficients.T),
        values=affine.outputs,
        regressors=affine.regressors,
    )
