"""Compile an exported C program with a main function around it, and run it."""

import re
import subprocess
from pathlib import Path

import numpy as np

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
SANITISED = (*STRICT, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

MAIN = """#include "{header}"
#include <stdio.h>

/* From the standard input: 0 for a cold start or 1 and a vector, then rows of inputs. After every row the outputs. */
int main(void)
{{
    static {name}_state state;
    static double numbers[{macro}_STATES + {macro}_INPUTS + 1];
    static {name}_real u[{macro}_INPUTS + 1], y[{macro}_OUTPUTS], again[{macro}_OUTPUTS], vector[{macro}_STATES];
    int warm, rows, row, i;

    if (scanf("%d %d", &warm, &rows) != 2)
        return 2;
    for (i = 0; i < (warm ? {macro}_STATES : 0); i++) {{
        if (scanf("%lf", &numbers[i]) != 1)
            return 2;
        vector[i] = ({name}_real) numbers[i];
    }}
    if (warm)
        {name}_set_state(&state, vector);
    else
        {name}_init(&state);
    for (row = 0; row < rows; row++) {{
        for (i = 0; i < {macro}_INPUTS; i++) {{
            if (scanf("%lf", &numbers[i]) != 1)
                return 2;
            u[i] = ({name}_real) numbers[i];
        }}
        {name}_step(&state, u, y);
        {name}_output(&state, again);
        for (i = 0; i < {macro}_OUTPUTS; i++) {{
            if (y[i] != again[i])
                return 3;
            printf("%.17g ", (double) y[i]);
        }}
    }}
    {name}_get_state(&state, vector);
    for (i = 0; i < {macro}_STATES; i++)
        printf("%.17g ", (double) vector[i]);
    return 0;
}}
"""


def build(source: Path, flags=STRICT, main_text=MAIN) -> Path:
    """Compile an exported source with a main function around it."""
    name = re.search(r"void (\w+)_init\(", source.with_suffix(".h").read_text()).group(1)
    main, program = source.with_name(f"{source.stem}_main.c"), source.with_name(f"{source.stem}.exe")
    main.write_text(main_text.format(header=source.with_suffix(".h").name, name=name, macro=name.upper()))
    compile_c([source, main], program, flags)
    return program


def compile_c(sources, program, flags=STRICT):
    """Call the compiler; its messages are the error."""
    done = subprocess.run(["cc", *flags, *sources, "-o", program, "-lm"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def run_program(program: Path, u: np.ndarray, outputs: int, start: np.ndarray | None = None):
    """The outputs after every row of u, and the state vector after the last one."""
    begin = [0, len(u)] if start is None else [1, len(u), *start.tolist()]
    words = " ".join(repr(number) for number in [*begin, *u.ravel().tolist()])
    done = subprocess.run([program], input=words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    numbers = np.array(done.stdout.split(), dtype=float)
    return numbers[: len(u) * outputs].reshape(len(u), outputs), numbers[len(u) * outputs :]


MOMENTS = """#include "{header}"
#include <stdio.h>

/* From the standard input: 0 for a cold start or 1 and a vector and a covariance of `size` states, then rows of inputs.
   After every row the outputs, then their standard deviations. */
int main(void)
{{
    static {name}_moments moments;
    static {name}_real u[{macro}_INPUTS + 1], y[{macro}_OUTPUTS], std[{macro}_OUTPUTS], vector[{macro}_STATES];
    static {name}_real cov[{macro}_STATES * {macro}_STATES];
    double number;
    int warm, size, rows, row, i;

    if (scanf("%d %d %d", &warm, &size, &rows) != 3)
        return 2;
    for (i = 0; i < (warm ? {macro}_STATES : 0); i++) {{
        if (scanf("%lf", &number) != 1)
            return 2;
        vector[i] = ({name}_real) number;
    }}
    for (i = 0; i < (warm ? size * size : 0); i++) {{
        if (scanf("%lf", &number) != 1)
            return 2;
        cov[i] = ({name}_real) number;
    }}
    if (warm)
        {name}_set_moments(&moments, vector, size ? cov : 0);
    else
        {name}_init_moments(&moments);
    for (row = 0; row < rows; row++) {{
        for (i = 0; i < {macro}_INPUTS; i++) {{
            if (scanf("%lf", &number) != 1)
                return 2;
            u[i] = ({name}_real) number;
        }}
        {name}_step_moments(&moments, u, y, std);
        {name}_output_moments(&moments, y, std);
        for (i = 0; i < {macro}_OUTPUTS; i++)
            printf("%.17g ", (double) y[i]);
        for (i = 0; i < {macro}_OUTPUTS; i++)
            printf("%.17g ", (double) std[i]);
    }}
    return 0;
}}
"""


def run_moments(program: Path, u: np.ndarray, outputs: int, start=None, cov=None):
    """Means and standard deviations after every row of u; without `cov` the states of a start are known exactly."""
    size = 0 if cov is None else len(cov)
    begin = [0, 0, len(u)] if start is None else [1, size, len(u), *start.tolist(), *(() if cov is None else cov.flat)]
    words = " ".join(repr(float(number)) if isinstance(number, float) else str(number) for number in [*begin, *u.flat])
    done = subprocess.run([program], input=words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    numbers = np.array(done.stdout.split(), dtype=float).reshape(len(u), 2, outputs)
    return numbers[:, 0], numbers[:, 1]
