"""A trained model as a C99 program: one header, one source, no allocation, and math.h as the only dependency."""

from zlib import crc32

from revarb.export.c_moments import write_std
from revarb.export.c_program import CProgram, write_header
from revarb.export.c_text import check_include


def make_c(program: CProgram, header_file: str) -> tuple[str, str]:
    """Header and source; a number in both says that they belong together."""
    std, std_code = ("", "") if program.std is None else write_std(program, program.std)
    code = _write_code(program) + std_code
    mark = f"0x{crc32((write_header(program, header_file, '', std) + code).encode()):08x}UL"
    source = f"""/* One step of a trained model; the header says how to use it. */
#include "{check_include(header_file)}"

#include <math.h>

#if {program.macro}_EXPORT != {mark}
#error "the header is of another export than this source"
#endif

{code}"""
    return write_header(program, header_file, mark, std), source


def _write_code(program: CProgram) -> str:
    members = [member.write() for member in program.members]
    return "\n".join([
        program.fill("c_parts/arrays.c", zero=program.real.number(0.0)),
        *members,
        *([_write_mean(program)] if len(members) > 1 else []),
        _write_run(program),
    ])  # fmt: skip


def _write_run(program: CProgram) -> str:
    resets = [
        f"    if (state->rows == {each.reset_row})\n        fill({each.member.states}, state->x + {each.offset});"
        for each in program.members
        if each.reset_row is not None
    ]
    calls = [f"    {each.call_advance()}" for each in program.members]
    u_start = program.real.table("u_start", program.model.members[0].scaling.u_mean)  # members have the same records
    return program.fill("c_parts/run.c", u_start=u_start, advance="\n".join([*resets, *calls]))


def _write_mean(program: CProgram) -> str:
    real, outputs, members = program.real, program.model.outputs, program.members
    loop = f"    for (j = 0; j < {outputs}; j++)\n        "
    added = "\n".join(f"    {each.tag}observe(x + {each.offset}, own);\n{loop}y[j] += own[j];" for each in members)
    return f"""/* The mean of the members' outputs. */
static void observe(const {real.name} *x, {real.name} *y)
{{
    {real.name} own[{outputs}];
    int j;

    fill({outputs}, y);
{added}
{loop}y[j] /= {real.number(float(len(members)))};
}}
"""
