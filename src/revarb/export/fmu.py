"""A trained model as a functional mock-up unit: FMI 2.0 for co-simulation, compiled for this system, sources inside."""

import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

import revarb
from revarb.errors import ComputationError, InputError
from revarb.export.c_program import CProgram
from revarb.export.c_source import make_c
from revarb.export.c_text import CReal
from revarb.export.fmu_description import FmuVariable, list_variables, write_description

COMPILERS = ("cc", "gcc", "clang")
WRAPPER = ("fmi2_cosimulation.c", "fmi2_interface.h")  # the same for every model
_NAMESPACE = uuid.UUID("6f1f0c3e-4a57-4d0c-9d54-1c1c4f3f0a19")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date of a ZIP file: two exports of a model are equal


def make_fmu(program: CProgram) -> bytes:
    """The FMU as a file."""
    _find_compiler()  # before the work
    name, model = program.name, program.model
    variables = list_variables(model, program.units)
    header, source = make_c(program, "model.h")
    guid = f"{{{uuid.uuid5(_NAMESPACE, revarb.__version__ + header + source)}}}"
    sources = {
        "model.c": source,
        WRAPPER[0]: _read_wrapper(WRAPPER[0]),
        "model.h": header,
        WRAPPER[1]: _read_wrapper(WRAPPER[1]),
        "fmu_model.h": _write_binding(program, guid, variables),
    }
    compiled = [file for file in sources if file.endswith(".c")]
    system, ending = _find_platform()
    contents = {
        "modelDescription.xml": write_description(name, model.dt, guid, variables, compiled),
        **{f"sources/{file}": text.encode() for file, text in sources.items()},
        f"binaries/{system}/{name}{ending}": _compile(sources, compiled, ending),
    }
    return _pack(contents)


def _read_wrapper(file: str) -> str:
    return (files("revarb.export") / "fmi2" / file).read_text(encoding="utf-8")


def _write_binding(program: CProgram, guid: str, variables: Sequence[FmuVariable]) -> str:
    inputs = [each.start for each in variables if each.causality == "input"]
    starts = [each.start for each in variables if each.causality == "parameter"]
    double = CReal("double", "double")
    return program.fill(
        "fmi2/fmu_model.h",
        guid=guid,
        input_starts=double.table("fmu_input_starts", np.array([*inputs, 0.0])),
        state_starts=double.table("fmu_state_starts", np.array(starts)),
    )


def _compile(sources: Mapping[str, str], compiled: Sequence[str], ending: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="revarb-fmu-") as folder:
        for file, text in sources.items():
            (Path(folder) / file).write_text(text, encoding="utf-8")
        library = Path(folder) / f"library{ending}"
        compile_library([Path(folder) / file for file in compiled], library)
        return library.read_bytes()


def _find_platform() -> tuple[str, str]:
    # This system as FMI 2.0 names it, and the ending of its shared libraries.
    bits = "64" if sys.maxsize > 2**32 else "32"
    if sys.platform.startswith("win"):
        return f"win{bits}", ".dll"
    if sys.platform == "darwin":
        return f"darwin{bits}", ".dylib"
    return f"linux{bits}", ".so"


def _find_compiler() -> list[str]:
    # The command: that of the variable CC, or the first one that is installed.
    given = shlex.split(os.environ.get("CC", ""))
    found = [given] if given else [[name] for name in COMPILERS]
    for command in found:
        if shutil.which(command[0]):
            return command
    named = f"CC={given[0]} is not installed" if given else f"none of {', '.join(COMPILERS)} is installed"
    raise InputError(f"an FMU needs a C compiler, and {named}; install one, or export to c")


def compile_library(sources: Sequence[Path], target: Path) -> None:
    """Compile a shared library that exports only what its source says."""
    # Not -march=native: the library runs on other machines of this kind.
    command = [*_find_compiler(), "-std=c99", "-O3", "-shared", "-fvisibility=hidden"]
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


def _pack(contents: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in contents.items():
            archive.writestr(zipfile.ZipInfo(file, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()
