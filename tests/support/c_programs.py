"""Compile an exported C program with a main function around it, and run it."""

import re
import subprocess
from pathlib import Path

import numpy as np

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
SANITISED = (*STRICT, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

MAIN = """#include "{header}"
#include <stdio.h>
#include <stdlib.h>

static void read_numbers({name}_real *numbers, int count)
{{
    double number;
    for (; count > 0; count--) {{
        if (scanf("%lf", &number) != 1)
            exit(2);
        *numbers++ = ({name}_real) number;
    }}
}}

static void write_numbers(const {name}_real *numbers, int count)
{{
    for (; count > 0; count--)
        printf("%.17g ", (double) *numbers++);
}}

/* From the standard input: 0 for a cold start, or 1 with a vector and a covariance of `size` states; rows of inputs.
   After every row the values: the outputs, or these and their standard deviations. At the end the state. */
int main(void)
{{
    enum {{ INPUTS = {macro}_INPUTS, OUTPUTS = {macro}_OUTPUTS, STATES = {macro}_STATES, VALUES = {values} * OUTPUTS }};
    static {name}_{kind} run;
    static {name}_real vector[STATES], cov[STATES * STATES], u[INPUTS + 1], y[VALUES], again[VALUES];
    int warm, size, rows, i;

    if (scanf("%d %d %d", &warm, &size, &rows) != 3)
        return 2;
    if (warm) {{
        read_numbers(vector, STATES);
        read_numbers(cov, size * size);
        {name}_{set};
    }} else
        {name}_{init};
    for (; rows > 0; rows--) {{
        read_numbers(u, INPUTS);
        {name}_{step};
        {name}_{output};
        for (i = 0; i < VALUES; i++)
            if (y[i] != again[i])
                return 3;
        write_numbers(y, VALUES);
    }}
    {end};
    return 0;
}}
"""
MEANS = {
    "kind": "state", "values": 1, "init": "init(&run)", "set": "set_state(&run, vector)", "step": "step(&run, u, y)",
    "output": "output(&run, again)", "end": "{name}_get_state(&run, vector), write_numbers(vector, STATES)",
}  # fmt: skip
MOMENTS = {
    "kind": "moments", "values": 2, "init": "init_moments(&run)", "set": "set_moments(&run, vector, size ? cov : 0)",
    "step": "step_moments(&run, u, y, y + OUTPUTS)", "output": "output_moments(&run, again, again + OUTPUTS)",
    "end": "",
}  # fmt: skip


def build(source: Path, flags=STRICT, calls=MEANS) -> Path:
    """Compile an exported source with a main function around it."""
    header, program = source.with_suffix(".h"), source.with_name(f"{source.stem}.exe")
    name = re.search(r"void (\w+)_init\(", header.read_text()).group(1)
    main = source.with_name(f"{source.stem}_main.c")
    calls = {**calls, "end": calls["end"].format(name=name)}
    main.write_text(MAIN.format(header=header.name, name=name, macro=name.upper(), **calls))
    compile_c([source, main], program, flags)
    return program


def compile_c(sources, program, flags=STRICT):
    """Call the compiler; its messages are the error."""
    done = subprocess.run(["cc", *flags, *sources, "-o", program, "-lm"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def run_program(program: Path, u: np.ndarray, values: int, start=None, cov=None):
    """The values after every row of u, and the state vector after the last one, which a program of moments leaves out.

    Without `cov` the states of a start are known exactly.
    """
    size = 0 if cov is None else len(cov)
    begin = f"0 0 {len(u)}" if start is None else f"1 {size} {len(u)}"
    numbers = [part.ravel() for part in (start, cov, u) if part is not None]
    words = " ".join([begin, *map(repr, np.concatenate(numbers).tolist())])
    done = subprocess.run([program], input=words, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    found = np.array(done.stdout.split(), dtype=float)
    return found[: len(u) * values].reshape(len(u), values), found[len(u) * values :]


def run_moments(program: Path, u: np.ndarray, outputs: int, start=None, cov=None):
    """Means and standard deviations after every row of u."""
    found, _ = run_program(program, u, 2 * outputs, start, cov)
    return found[:, :outputs], found[:, outputs:]
