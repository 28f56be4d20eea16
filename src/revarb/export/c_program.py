"""A generated C program: its names, sizes and members, and the header that says how to use it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template

import revarb
from revarb.export.c_layers import CMember
from revarb.export.c_text import CReal, make_identifiers, quote_comment
from revarb.export.step_model import MemberParts, StepModel

FLAGGED = re.compile(r"^%(!?)(\w+) ?(.*\n)", re.MULTILINE)  # a line of a template


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

    @property
    def members(self) -> tuple[CMember, ...]:
        """The members, with names of their own where there are several."""
        many = len(self.model.members) > 1
        places = enumerate(zip(self.model.members, self.model.locate_members(), strict=True), start=1)
        return tuple(
            CMember(
                member,
                f"member_{number}_" if many else "",
                f"Member {number}. " if many else "",
                own.start,
                self.model.past_inputs,
                self.real,
            )
            for number, (member, own) in places
        )


def write_header(program: CProgram, header_file: str, mark: str, std: str) -> str:
    """The header; its source has the same mark. `std` declares what adds standard deviations."""
    model, members = program.model, len(program.model.members)
    return program.fill(
        "c_parts/program.h",
        what=f"One step of {members} trained models, whose mean it gives"
        if members > 1
        else "One step of a trained model",
        version=revarb.__version__,
        header_file=quote_comment(header_file),
        mark=mark,
        places=_write_places(program, "inputs", "IN", model.input_names)
        + _write_places(program, "outputs", "OUT", model.output_names),
        std=std,
    )


def _write_places(program: CProgram, what: str, tag: str, columns: Sequence[str]) -> str:
    # One constant per column.
    if not columns:
        return ""
    lines = []
    for number, (column, identifier) in enumerate(zip(columns, make_identifiers(columns), strict=True)):
        end, unit = "," if number < len(columns) - 1 else "", program.units.get(column)
        comment = quote_comment(column) + ("" if unit is None else f", unit {quote_comment(unit)}")
        lines.append(f"    {program.macro}_{tag}_{identifier} = {number}{end} /* {comment} */")
    return "\n".join([f"/* Places in the array of {what}. */", "enum {", *lines, "};", "", ""])
