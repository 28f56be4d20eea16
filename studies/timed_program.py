"""A main function around an exported C program: the outputs of a cold run, and the time of a step."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb import ComputationError, InputError

FLAGS = ("-std=c99", "-O2", "-D_POSIX_C_SOURCE=199309L")
MAIN = Path(__file__).with_name("timed_main.c")


class TimedRun(NamedTuple):
    """Outputs of a cold run, and microseconds per step of the fastest pass."""

    y: Float64[np.ndarray, "T Dy"]
    microseconds: float


def run_program(source: Path, u: Float64[np.ndarray, "T Du"], timed: int, passes: int) -> TimedRun:
    """Compile an exported C source with the name "model", and run it."""
    program, header = source.with_suffix(""), source.with_suffix(".h")
    _call([_find_compiler(), *FLAGS, "-include", str(header), str(source), str(MAIN), "-o", str(program), "-lm"])
    found = np.frombuffer(_call([str(program), str(len(u)), str(timed), str(passes)], u.tobytes()))
    return TimedRun(found[:-1].reshape(len(u), -1), float(found[-1]))


def _find_compiler() -> str:
    found = shutil.which("cc")
    if found is None:
        raise InputError("the study of exports needs a C compiler named cc, and there is none; install gcc or clang")
    return found


def _call(command: list[str], content: bytes = b"") -> bytes:
    done = subprocess.run(command, input=content, capture_output=True)
    if done.returncode:
        raise ComputationError(f"{command[0]} failed with status {done.returncode}: {done.stderr.decode()}")
    return done.stdout
