"""One member of a model in C: its layers, its window of inputs, its step and its outputs.

A layer is a function void NAME(const real *x, real *f), z-scored regressors in, z-scored values out. The last inputs
come in raw units, one row per sample, oldest first; the last row is the sample of the step. The code uses `fill`,
`copy` and `shift` of c_parts/arrays.c.
"""

from dataclasses import dataclass

import numpy as np

from revarb.export.c_text import CProgram
from revarb.export.step_model import StepMember
from revarb.simulation.chain import Affine, Formula, RadialBasis, TanhNetwork


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


@dataclass(frozen=True, eq=False)
class CMember:
    """A member, what its functions are called, and where its states are in the vector of all of them."""

    program: CProgram
    member: StepMember
    offset: int  # of its states
    tag: str  # begins the names of its functions and tables
    title: str  # begins comments

    @property
    def reset_row(self) -> int | None:
        """The row at which a cold run starts again; None: there is no such row."""
        return self.member.order.reach or None

    @property
    def _has_window(self) -> bool:
        return self.member.order.input_lags > 0 and self.program.model.inputs > 0

    def call_advance(self) -> str:
        """The call that advances its states."""
        recent = ", state->u" if self._has_window else ""
        return f"{self.tag}advance(state->x + {self.offset}{recent});"

    def write(self) -> str:
        """All of its tables and functions."""
        member, order, real = self.member, self.member.order, self.program.real
        steps = [line for number in range(len(member.hidden)) for line in self._advance_layer(number)]
        flags = {"window": self._has_window, "readout": member.output}
        functions = self.program.fill(
            "c_parts/member.c",
            [name for name, value in flags.items() if value],
            tag=self.tag,
            title=self.title,
            lags=order.input_lags,
            delay=order.input_delay,
            newest=self.program.model.past_inputs - order.input_delay,  # the model may keep more than this member needs
            regressors=max(layer.regressors for layer in member.hidden),
            values=max(member.latent_dims),
            advance="\n".join(f"    {line}" for line in steps),
            begin=member.windows[-1][0],
            **{name: real.table(f"{self.tag}{name}", values) for name, values in vars(member.scaling).items()},
        )
        return "\n".join([*self._write_layers(), functions])

    def _write_layers(self) -> list[str]:
        def write(name: str, title: str, formula: Formula) -> str:
            return write_layer(self.program, f"{self.tag}{name}", f"{self.title}{title}", formula)

        hidden = [
            write(f"layer_{number}", f"Layer {number}", each) for number, each in enumerate(self.member.hidden, 1)
        ]
        output = self.member.output
        return hidden if output is None else [*hidden, write("readout", "Output layer", output)]

    def _advance_layer(self, number: int) -> list[str]:
        window, dim = self.member.windows[number], self.member.latent_dims[number]
        own = f"copy({len(window)}, x + {window[0]}, regressors);"
        if number > 0:
            below = self.member.windows[number - 1]
            side = [f"copy({len(below)}, x + {below[0]}, regressors + {len(window)});"]
        else:
            side = [f"{self.tag}window(u, regressors + {len(window)});"] if self._has_window else []
        return [
            own,
            *side,
            f"{self.tag}layer_{number + 1}(regressors, f);",
            f"shift({len(window)}, x + {window[0]}, {dim}, f);",
        ]


def list_members(program: CProgram) -> tuple[CMember, ...]:
    """The members, with names of their own where there are several."""
    model, many = program.model, len(program.model.members) > 1
    places = enumerate(zip(model.members, model.locate_members(), strict=True), start=1)
    return tuple(
        CMember(
            program,
            member,
            own.start,
            f"member_{number}_" if many else "",
            f"Member {number}. " if many else "",
        )
        for number, (member, own) in places
    )
