"""A trained model as a C99 program: one header, one source, no allocation, and math.h as the only dependency."""

from typing import NamedTuple
from zlib import crc32

from revarb.models.export.c_header import write_declarations, write_header
from revarb.models.export.c_identifiers import check_include
from revarb.models.export.c_program import CProgram, write_function
from revarb.models.export.c_std import write_std_code, write_std_declarations


class CFiles(NamedTuple):
    """The contents of the two files."""

    header: str
    source: str


def make_c(program: CProgram, header_file: str) -> CFiles:
    """Write both files; a number in both says that they belong together."""
    declarations = write_declarations(program) + write_std_declarations(program)
    code = _write_code(program) + write_std_code(program)
    mark = f"0x{crc32((declarations + code).encode()):08x}UL"
    source = f"""/* One step of a trained model; the header says how to use it. */
#include "{check_include(header_file)}"

#include <math.h>

#if {program.names.macro}_EXPORT != {mark}
#error "the header is of another export than this source"
#endif

{code}"""
    return CFiles(write_header(program, declarations, header_file, mark), source)


def _write_code(program: CProgram) -> str:
    members = [member.write() for member in program.members]
    mean = [_write_mean(program)] if len(members) > 1 else []
    recent = [_write_remember(program)] if program.model.inputs else []
    return "\n".join([_write_tools(program), *members, *mean, *recent, _write_starts(program), _write_step(program)])


def _write_tools(program: CProgram) -> str:
    real = program.real
    return f"""static void fill(int count, {real.name} *to)
{{
    int i;

    for (i = 0; i < count; i++)
        to[i] = {real.number(0.0)};
}}

static void copy(int count, const {real.name} *from, {real.name} *to)
{{
    int i;

    for (i = 0; i < count; i++)
        to[i] = from[i];
}}

/* Put new values in front of a window and drop as many old ones at its end. */
static void shift(int size, {real.name} *window, int count, const {real.name} *newest)
{{
    int i;

    for (i = size - 1; i >= count; i--)
        window[i] = window[i - count];
    copy(count, newest, window);
}}
"""


def _write_mean(program: CProgram) -> str:
    real, outputs, members = program.real, program.model.outputs, program.members
    added = [
        line
        for each in members
        for line in (f"{each.tag}observe(x + {each.offset}, own);", *_loop(outputs, "y[j] += own[j];"))
    ]
    lines = [
        f"{real.name} own[{outputs}];",
        "int j;",
        "",
        f"fill({outputs}, y);",
        *added,
        *_loop(outputs, f"y[j] /= {real.number(float(len(members)))};"),
    ]
    head = f"static void observe(const {real.name} *x, {real.name} *y)"
    return write_function(head, lines, "The mean of the members' outputs.")


def _loop(count: int, line: str) -> tuple[str, str]:
    return f"for (j = 0; j < {count}; j++)", f"    {line}"


def _write_starts(program: CProgram) -> str:
    name, model, real = program.name, program.model, program.real.name
    inputs, states, past = model.inputs, model.states, model.past_inputs * model.inputs
    cold = (
        f"for (row = 0; row <= {model.past_inputs}; row++)",
        f"    copy({inputs}, u_start, state->u + row * {inputs});",
    )
    # The first row of u leaves with the next step, which no longer uses it.
    warm = (f"fill({inputs}, state->u);", f"copy({past}, vector + {states}, state->u + {inputs});")
    observed = "observe(state->x, state->y);"
    functions = [
        write_function(
            f"void {name}_init({name}_state *state)",
            [*(("int row;", "") if inputs else ()), f"fill({states}, state->x);", *(cold if inputs else ()), observed,
             "state->rows = 0;"],
        ),
        write_function(
            f"void {name}_set_state({name}_state *state, const {real} *vector)",
            [f"copy({states}, vector, state->x);", *(warm if inputs else ()), observed,
             f"state->rows = {model.past_inputs + 1};"],
        ),
        write_function(
            f"void {name}_get_state(const {name}_state *state, {real} *vector)",
            [f"copy({states}, state->x, vector);",
             *((f"copy({past}, state->u + {inputs}, vector + {states});",) if inputs else ())],
        ),
    ]  # fmt: skip
    start = program.real.table("u_start", model.members[0].scaling.u_mean)  # members have the same records
    table = [f"/* Past inputs of a cold start. */\n{start}\n"] if inputs else []
    return "\n".join([*table, *functions])


def _write_remember(program: CProgram) -> str:
    model, real = program.model, program.real.name
    past = model.past_inputs * model.inputs
    drop = ("int i;", "", f"for (i = 0; i < {past}; i++)", f"    recent[i] = recent[i + {model.inputs}];")
    return write_function(
        f"static void remember({real} *recent, const {real} *u)",
        (*(drop if past else ()), f"copy({model.inputs}, u, recent + {past});"),
        "Put the inputs of a sample behind those before it, and drop the oldest ones.",
    )


def _write_step(program: CProgram) -> str:
    name, model, real = program.name, program.model, program.real.name
    outputs = model.outputs
    resets = [
        line
        for each in program.members
        if each.reset_row is not None
        for line in (
            f"if (state->rows == {each.reset_row})",
            f"    fill({each.member.states}, state->x + {each.offset});",
        )
    ]
    lines = [
        "remember(state->u, u);" if model.inputs else "(void) u;",
        *resets,
        *(each.call_advance() for each in program.members),
        "observe(state->x, state->y);",
        f"if (state->rows <= {model.past_inputs})",
        "    state->rows++;",
        f"copy({outputs}, state->y, y);",
    ]
    step = write_function(f"void {name}_step({name}_state *state, const {real} *u, {real} *y)", lines)
    last = [f"copy({outputs}, state->y, y);"]
    return f"{step}\n{write_function(f'void {name}_output(const {name}_state *state, {real} *y)', last)}"
