"""The header of a generated C program: how to use it, and its declarations."""

from collections.abc import Sequence

import revarb
from revarb.models.export.c_identifiers import quote_comment
from revarb.models.export.c_program import CProgram


def write_header(program: CProgram, declarations: str, header_file: str, mark: str) -> str:
    """The header; its source has the same mark."""
    macro = program.names.macro
    return f"""{_write_manual(program, header_file)}
#ifndef REVARB_{macro}_H
#define REVARB_{macro}_H

#ifdef __cplusplus
extern "C" {{
#endif

#define {macro}_EXPORT {mark} /* the same in header and source */
{declarations}
#ifdef __cplusplus
}}
#endif

#endif
"""


def _write_manual(program: CProgram, header_file: str) -> str:
    name, macro, model = program.name, program.names.macro, program.model
    many = len(model.members)
    what = "One step of a trained model" if many == 1 else f"One step of {many} trained models, whose mean it gives"
    inputs = f"{name}_real u[{macro}_INPUTS], " if model.inputs else f"{name}_real "
    return f"""/* {what}, written by revarb {revarb.__version__}.

   Sampling interval: {model.dt!r}. Inputs and outputs are in the units of the training data.
   Call {name}_init once, then {name}_step once per sample with the inputs of that sample:

       #include {quote_comment(header_file)}

       static {name}_state state;
       {inputs}y[{macro}_OUTPUTS];

       {name}_init(&state);
       for (;;) {{ ... {name}_step(&state, {"u" if model.inputs else "0"}, y); ... }}

   All that changes is in the struct {name}_state: several of them run independently of each other, and a copy can be
   set aside and returned to. Nothing is checked: one input that is not a finite number spoils all states after it. */
"""


def write_declarations(program: CProgram) -> str:
    """Sizes, places of the columns, types and functions."""
    name, macro, model, real = program.name, program.names.macro, program.model, program.real
    return f"""#define {macro}_INPUTS {model.inputs}
#define {macro}_OUTPUTS {model.outputs}
#define {macro}_STATES {model.state_size} /* size of the vector of {name}_set_state */
#define {macro}_DT {model.dt!r} /* sampling interval */

{_write_places(program, "inputs", model.input_names, program.names.inputs)}\
{_write_places(program, "outputs", model.output_names, program.names.outputs)}\
typedef {real.base} {real.name};

{_write_struct(program)}
/* Start without any measurement: states at zero, past inputs at their mean in training. The states restart at zero when
   the window of past inputs has filled, as in revarb's simulate(start="cold"). */
void {name}_init({name}_state *state);

/* Start at a vector of {macro}_STATES numbers, as model.step_state(start) gives it in Python: the states of all
   layers, z-scored, newest first; then the last {model.past_inputs} sample(s) of all inputs, oldest first. */
void {name}_set_state({name}_state *state, const {real.name} *vector);

/* The vector of a run, for {name}_set_state. */
void {name}_get_state(const {name}_state *state, {real.name} *vector);

/* Advance by one sample with its inputs u; y becomes the outputs of that sample. */
void {name}_step({name}_state *state, const {real.name} *u, {real.name} *y);

/* The outputs of the last step; before the first one those of the start. */
void {name}_output(const {name}_state *state, {real.name} *y);
"""


def _write_places(program: CProgram, what: str, columns: Sequence[str], places: Sequence[str]) -> str:
    if not columns:
        return ""
    ends = ["," for _ in places[1:]] + [""]
    lines = [
        f"    {place} = {number}{end} /* {describe_column(program, column)} */"
        for number, (column, place, end) in enumerate(zip(columns, places, ends, strict=True))
    ]
    return "\n".join([f"/* Places in the array of {what}. */", "enum {", *lines, "};", "", ""])


def describe_column(program: CProgram, column: str) -> str:
    """A column and its unit as part of a comment."""
    unit = program.units.get(column)
    return quote_comment(column) + ("" if unit is None else f", unit {quote_comment(unit)}")


def _write_struct(program: CProgram) -> str:
    model, real = program.model, program.real.name
    last = f"    {real} u[{(model.past_inputs + 1) * model.inputs}]; /* last inputs, oldest first */"
    lines = [
        f"/* A run. {program.name}_init or {program.name}_set_state starts it. */",
        "typedef struct {",
        f"    {real} x[{model.states}]; /* states, z-scored */",
        *([last] if model.inputs else []),
        f"    {real} y[{model.outputs}]; /* outputs of the last step */",
        "    int rows; /* steps since a cold start, counted until the last restart */",
        f"}} {program.name}_state;",
        "",
    ]
    return "\n".join(lines)
