"""What header and source of a generated C program share: names, sizes, members."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from revarb.models.export.c_identifiers import CNames, name_program
from revarb.models.export.c_member import CMember
from revarb.models.export.c_tables import CReal
from revarb.models.export.moment_model import MomentModel, ResidualModel
from revarb.models.export.step_model import StepModel


@dataclass(frozen=True, eq=False)
class CProgram:
    """A step model with the names of its C program."""

    model: StepModel
    name: str
    base: str  # the type of its numbers: double or float
    units: Mapping[str, str]  # by column
    std: MomentModel | ResidualModel | None = None  # None: the mean only

    @cached_property
    def names(self) -> CNames:
        """Identifiers."""
        return name_program(self.name, self.model.input_names, self.model.output_names)

    @property
    def real(self) -> CReal:
        """The type of all numbers."""
        return CReal(f"{self.name}_real", self.base)

    @cached_property
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


def write_function(head: str, lines: Iterable[str], comment: str = "") -> str:
    """A function with these lines as its body, whose first level of indentation is added."""
    body = "\n".join(f"    {line}" if line else "" for line in lines)
    return f"{comment and f'/* {comment} */' + chr(10)}{head}\n{{\n{body}\n}}\n"
