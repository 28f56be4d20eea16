"""A trained model as a C99 program: one header, one source, no allocation, and math.h as the only dependency.

With standard deviations: of propagated moments, or those of the errors of a model with a mean only. Moments are the
joint Gaussian of all states, with its full covariance; the algorithm is that of simulation/moments.py, and
c_parts/gaussian_layers.c has it for layers of any size.

A member has its layers, its window of inputs, its step and its outputs. The last inputs come in raw units, one row per
sample, oldest first; the last row is the sample of the step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from jaxtyping import Float64

import revarb
from revarb.errors import InputError
from revarb.export.c_text import CProgram, check_include, make_identifiers, quote_comment, write_layer
from revarb.export.step_model import GaussianLayer, MemberParts, StepMember, list_gaussian_layers
from revarb.simulation.extrapolation import DOUBT
from revarb.simulation.formulas import Formula
from revarb.simulation.mean import ROUNDING

FLOAT_ROUNDING = 1e-5  # of a program in single precision


@dataclass(frozen=True, eq=False)
class CMember:
    """A member, what its functions are called, and where its states are in the vector of all of them."""

    program: CProgram
    member: StepMember
    offset: int  # of its states
    tag: str  # begins the names of its functions and tables
    title: str  # begins comments

    @property
    def _has_window(self) -> bool:
        return self.member.order.input_lags > 0 and self.program.model.inputs > 0

    def call_advance(self, states: str, inputs: str) -> str:
        """The call that advances its states, given the last inputs."""
        return f"{self.tag}advance({states}{f', {inputs}' if self._has_window else ''});"

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


def list_members(program: CProgram) -> list[CMember]:
    """The members, with names of their own where there are several."""
    model, members = program.model, []
    for number, (member, own) in enumerate(zip(model.members, model.locate_members(), strict=True), start=1):
        tag, title = (f"member_{number}_", f"Member {number}. ") if len(model.members) > 1 else ("", "")
        members.append(CMember(program, member, own.start, tag, title))
    return members


def make_c(program: CProgram, header_file: str) -> tuple[str, str]:
    """Header and source; a number in both says that they belong together."""
    std, std_code = ("", "") if program.std is None else _write_std(program, program.std)
    code = _write_code(program) + std_code
    mark = f"0x{crc32((_write_header(program, header_file, '', std) + code).encode()):08x}UL"
    source = f"""/* One step of a trained model; the header says how to use it. */
#include "{check_include(header_file)}"

#include <math.h>

#if {program.macro}_EXPORT != {mark}
#error "the header is of another export than this source"
#endif

{code}"""
    return _write_header(program, header_file, mark, std), source


def _write_header(program: CProgram, header_file: str, mark: str, std: str) -> str:
    # `std` declares what adds standard deviations.
    model, members = program.model, len(program.model.members)
    return program.fill(
        "c_parts/program.h",
        what="a trained model" if members == 1 else f"{members} trained models, whose mean it gives",
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


def _write_code(program: CProgram) -> str:
    members = list_members(program)
    written, flags = [each.write() for each in members], []
    if program.model.inputs or program.std is not None or len(members) > 1 or any("fill(" in each for each in written):
        flags = ["fill"]  # a compiler warns of a function that is not used
    parts = [program.fill("c_parts/arrays.c", flags, zero=program.real.number(0.0)), *written]
    if len(members) > 1:
        parts.append(_write_mean(program, members))
    return "\n".join([*parts, _write_run(program, members)])


def _write_mean(program: CProgram, members: Sequence[CMember]) -> str:
    loop = f"    for (j = 0; j < {program.model.outputs}; j++)\n        "
    added = [f"    {each.tag}observe(x + {each.offset}, own);\n{loop}y[j] += own[j];" for each in members]
    return program.fill("c_parts/mean.c", added="\n".join(added), members=program.real.number(float(len(members))))


def _write_run(program: CProgram, members: Sequence[CMember]) -> str:
    model, table = program.model, program.real.table
    return program.fill(
        "c_parts/run.c",
        x_start=table("x_start", model.make_cold_state()[: model.states]),
        u_start=table("u_start", model.members[0].scaling.u_mean),  # members have the same records
        advance="\n".join(f"    {each.call_advance(f'state->x + {each.offset}', 'state->u')}" for each in members),
    )


def _write_std(program: CProgram, parts: Sequence[MemberParts]) -> tuple[str, str]:
    # What the header declares and what the source defines.
    if len(parts) > 1:
        raise InputError(
            f"the standard deviation of an ensemble cannot be exported, only the mean of its {len(parts)} members; "
            "leave it out, or export one of its members"
        )
    [part] = parts
    struct, code = ("", "") if part.known_range is None else _write_beyond(program, part)
    header, rest = _write_own_std(program, part)
    return program.fill("c_parts/std.h", about=header[0], struct=struct + header[1]), "\n" + code + rest


def _write_own_std(program: CProgram, part: MemberParts) -> tuple[tuple[str, str], str]:
    # What the header says and declares, and what the source defines.
    if part.residual_std is None:
        return _write_moments(program, part, list_gaussian_layers(part))
    assert part.cold_std is not None  # it comes with the other
    [own] = list_members(program)
    about = "They are those of the model's errors on held-out data, and of what is not known of the start."
    calls = {
        name: own.call_advance(f"moments->{name} + i * {program.model.states}", "moments->run.u")
        for name in ("above", "below")
    }
    past_u = "moments->run.u" if program.model.inputs else "0"
    code = program.fill(
        "c_parts/held_out_std.c",
        table=program.real.table("stds", part.residual_std),
        rows=len(part.residual_std),
        cold_table=program.real.table("cold_stds", part.cold_std),
        cold_rows=len(part.cold_std),
        last_row=max(len(part.residual_std), len(part.cold_std)),  # later steps are all alike
        cov_start=_write_cov(program, own.member),
        rounding=program.real.number(ROUNDING if program.base == "double" else FLOAT_ROUNDING),
        sqrt=f"sqrt{program.real.suffix}",
        past_u=past_u,
        **calls,
    )
    return (about, program.fill("c_parts/held_out_std.h")), code


def _write_beyond(program: CProgram, part: MemberParts) -> tuple[str, str]:
    # What is declared and defined of the runs beside, by which bands are wider beyond the training data.
    [own] = list_members(program)
    known, scaling, inputs = part.finite_range, own.member.scaling, program.model.inputs
    raw = (end[:inputs] * scaling.u_std + scaling.u_mean for end in known.inputs)  # at every lag the same
    tables = dict(zip(("low", "high", "input_low", "input_high"), (*known.states, *raw), strict=True))

    def write_holds(run: str, sign: str, end: str) -> str:
        return "\n".join(
            f"    hold({sign}, {dim}, {own.member.lags}, {end} + {window[0]}, before + {window[0]}, "
            f"beyond->{run} + {window[0]});"
            for window, dim in zip(own.member.windows, own.member.latent_dims, strict=True)
        )

    advance = {"free": "u", "raised": "inside", "lowered": "inside"}
    code = program.fill(
        "c_parts/beyond.c",
        **{name: program.real.table(name, values) for name, values in tables.items()},
        **{f"advance_{run}": own.call_advance(f"beyond->{run}", inputs) for run, inputs in advance.items()},
        share=program.real.number(DOUBT),
        hypot=f"hypot{program.real.suffix}",
        hold_raised=write_holds("raised", "-1", "low"),
        hold_lowered=write_holds("lowered", "1", "high"),
    )
    return program.fill("c_parts/beyond.h"), code


def _write_widths(program: CProgram, name: str, widths: Float64[np.ndarray, "K #Dy"]) -> str:
    return program.real.table(name, np.tile(widths, (1, program.model.outputs // widths.shape[1])))


def _write_cov(program: CProgram, member: StepMember) -> str:
    return program.real.table("cov_start", np.asarray(member.cold.cov, dtype=np.float64).ravel())


def _write_moments(
    program: CProgram, part: MemberParts, layers: Sequence[GaussianLayer]
) -> tuple[tuple[str, str], str]:
    if program.base == "float":
        raise InputError("propagated moments need double precision; leave out with_std, or export double")
    about = (
        "The uncertainty of the states is propagated: the means are those of revarb's\n"
        f'   simulate(method="moments") and not exactly those of {program.name}_step.'
    )
    order = program.model.members[0].order
    known = order.input_lags * program.model.inputs  # regressors of the first layer that are known exactly
    counts = [known, *(0 for _ in layers[1:])]
    struct = program.fill(
        "c_parts/moments.h",
        [] if part.known_range is None else ["beyond"],
        regressors=max(layer.formula.regressors - count for layer, count in zip(layers, counts, strict=True)),
        centres=max(len(layer.formula.zeta) for layer in layers),
        values=max(layer.formula.outputs for layer in layers),
    )
    names = [f"layer_{number}" for number in range(1, len(part.chain.hidden) + 1)]
    names += [] if part.chain.output is None else ["readout"]
    sections = (
        "",
        program.fill("c_parts/gaussian_layers.c"),
        *(_write_gaussian(program, *each) for each in zip(names, layers, counts, strict=True)),
        _write_moments_run(program, part, known),
    )
    return (about, struct), "\n".join(sections)


def _write_gaussian(program: CProgram, name: str, layer: GaussianLayer, known: int) -> str:
    formula, real = layer.formula, program.real
    slopes = f"{name}_linear_coefficients[0], {name}_linear_offset" if formula.affine else "0, 0"
    triangles = np.stack([_pack(each) for each in layer.reductions])
    return f"""{real.table(f"{name}_reduction", triangles)}
static const gaussian_layer {name}_gaussian = {{
    {len(formula.zeta)}, {formula.regressors - known}, {known}, {formula.outputs}, {len(triangles)}, \
{real.number(formula.variance)}, {real.number(layer.noise)},
    {name}_scale, {name}_centres[0], {name}_weights[0], {name}_reduction[0], {slopes}
}};
"""


def _pack(matrix: Float64[np.ndarray, "M M"]) -> Float64[np.ndarray, " T"]:
    # The lower triangle, row by row.
    return (0.5 * (matrix + matrix.T))[np.tril_indices(len(matrix))]


def _write_moments_run(program: CProgram, part: MemberParts, known: int) -> str:
    [own] = list_members(program)
    windows = own.member.windows
    below = [f"0, 0, {'z' if known else 0}", *(f"{window[0]}, {len(window)}, 0" for window in windows[:-1])]
    advance = [
        f"    advance_moments(&layer_{number}_gaussian, {program.model.states}, moments->x, moments->cov, {window[0]}, "
        f"{len(window)}, {side}, &moments->work);"
        for number, (window, side) in enumerate(zip(windows, below, strict=True), start=1)
    ]
    flags = {"readout": part.chain.output, "known": known, "beyond": part.known_range}
    return program.fill(
        "c_parts/moments.c",
        [name for name, value in flags.items() if value],
        **{name: _write_widths(program, name, getattr(part, name)) for name in ("widths", "cold_widths")},
        count=len(part.widths),
        cold_count=len(part.cold_widths),
        cov_start=_write_cov(program, own.member),
        begin=windows[-1][0],
        window=len(windows[-1]),
        known=known,
        past_u="moments->u" if program.model.inputs else "0",
        advance="\n".join(advance),
        last_row=max(len(part.widths), len(part.cold_widths)),  # later steps are all alike
    )
