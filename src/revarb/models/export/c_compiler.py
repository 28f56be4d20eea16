"""The C compiler of this machine, for shared libraries."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from revarb.errors import ComputationError, InputError

COMPILERS = ("cc", "gcc", "clang")


class Platform(NamedTuple):
    """This system as FMI 2.0 names it, and the ending of its shared libraries."""

    folder: str
    ending: str


def find_platform() -> Platform:
    """The system that libraries are compiled for."""
    bits = "64" if sys.maxsize > 2**32 else "32"
    if sys.platform.startswith("win"):
        return Platform(f"win{bits}", ".dll")
    if sys.platform == "darwin":
        return Platform(f"darwin{bits}", ".dylib")
    return Platform(f"linux{bits}", ".so")


def find_compiler() -> list[str]:
    """The command of the compiler: that of the variable CC, or the first one that is installed."""
    given = shlex.split(os.environ.get("CC", ""))
    found = [given] if given else [[name] for name in COMPILERS]
    for command in found:
        if shutil.which(command[0]):
            return command
    named = f"CC={given[0]} is not installed" if given else f"none of {', '.join(COMPILERS)} is installed"
    raise InputError(f"an FMU needs a C compiler, and {named}; install one, or export to c")


def compile_library(sources: Sequence[Path], target: Path) -> None:
    """Compile a shared library that exports only what its source says it does."""
    # Not -march=native: the library runs on other machines of this kind.
    command = [*find_compiler(), "-std=c99", "-O3", "-shared", "-fvisibility=hidden"]
    command += [] if sys.platform.startswith("win") else ["-fPIC"]
    try:
        done = subprocess.run(
            [*command, "-o", str(target), *(str(path) for path in sources), "-lm"], capture_output=True, text=True
        )
    except OSError as error:
        raise InputError(f"the C compiler {command[0]} does not start: {error.strerror or error}") from None
    if done.returncode != 0:
        said = next((line for line in done.stderr.splitlines() if "error" in line.lower()), done.stderr)
        raise ComputationError(f"the C compiler {command[0]} failed with status {done.returncode}: {said}")
