"""A main function around an exported C program: the outputs of a cold run, and the time of a step."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.errors import ComputationError, InputError

FLAGS = ("-std=c99", "-O2")

MAIN = """#define _POSIX_C_SOURCE 199309L
#include "{header}"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}}

/* Arguments: rows, rows of a pass, passes. Inputs as doubles on the standard input; the outputs of a cold run, and then
   the microseconds per step of the fastest pass, as doubles on the standard output. */
int main(int argc, char **argv)
{{
    int rows = atoi(argv[argc - 3]), timed = atoi(argv[argc - 2]), passes = atoi(argv[argc - 1]), row, pass, i;
    double *numbers = malloc(sizeof(double) * rows * {macro}_INPUTS), best = 1e300, began, result;
    {name}_real *u = malloc(sizeof({name}_real) * rows * {macro}_INPUTS), y[{macro}_OUTPUTS];
    static {name}_state state;

    if (fread(numbers, sizeof(double), rows * {macro}_INPUTS, stdin) != (size_t) (rows * {macro}_INPUTS))
        return 2;
    for (i = 0; i < rows * {macro}_INPUTS; i++)
        u[i] = ({name}_real) numbers[i];
    {name}_init(&state);
    for (row = 0; row < rows; row++) {{
        {name}_step(&state, u + row * {macro}_INPUTS, y);
        for (i = 0; i < {macro}_OUTPUTS; i++) {{
            result = (double) y[i];
            fwrite(&result, sizeof(double), 1, stdout);
        }}
    }}
    for (pass = 0; pass < passes; pass++) {{
        {name}_init(&state);
        began = now();
        for (row = 0; row < timed; row++)
            {name}_step(&state, u + row * {macro}_INPUTS, y);
        began = (now() - began) / timed;
        best = began < best ? began : best;
    }}
    fwrite(&best, sizeof(double), 1, stdout);
    return 0;
}}
"""


class TimedRun(NamedTuple):
    """Outputs of a cold run, and microseconds per step of the fastest pass."""

    y: Float64[np.ndarray, "T Dy"]
    microseconds: float


def run_program(source: Path, name: str, u: Float64[np.ndarray, "T Du"], timed: int, passes: int) -> TimedRun:
    """Compile an exported C source whose functions begin with `name`, and run it."""
    main, program = source.with_name(f"{source.stem}_main.c"), source.with_suffix("")
    main.write_text(MAIN.format(header=source.with_suffix(".h").name, name=name, macro=name.upper()))
    _call([_find_compiler(), *FLAGS, str(source), str(main), "-o", str(program), "-lm"])
    found = np.frombuffer(_call([str(program), str(len(u)), str(timed), str(passes)], u.tobytes()))
    return TimedRun(found[:-1].reshape(len(u), -1), float(found[-1]))


def _find_compiler() -> str:
    found = shutil.which("cc")
    if found is None:
        raise InputError("the table of exports needs a C compiler named cc, and there is none; install gcc or clang")
    return found


def _call(command: list[str], content: bytes = b"") -> bytes:
    done = subprocess.run(command, input=content, capture_output=True)
    if done.returncode:
        raise ComputationError(f"{command[0]} failed with status {done.returncode}: {done.stderr.decode()}")
    return done.stdout
