"""A trained model as a functional mock-up unit: FMI 2.0 for co-simulation, compiled for this system, sources inside."""

import io
import tempfile
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

import revarb
from revarb.models.export.c_compiler import compile_library, find_compiler, find_platform
from revarb.models.export.c_program import CProgram
from revarb.models.export.c_source import make_c
from revarb.models.export.c_tables import CReal
from revarb.models.export.fmu_description import write_description
from revarb.models.export.fmu_variables import FmuVariable, list_variables

WRAPPER = ("fmi2_cosimulation.c", "fmi2_interface.h")  # the same for every model
_NAMESPACE = uuid.UUID("6f1f0c3e-4a57-4d0c-9d54-1c1c4f3f0a19")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date of a ZIP file: two exports of a model are equal


def make_fmu(program: CProgram) -> bytes:
    """The FMU as a file."""
    find_compiler()  # before the work
    name, model = program.name, program.model
    variables = list_variables(model, program.units)
    texts = make_c(program, "model.h")
    guid = f"{{{uuid.uuid5(_NAMESPACE, revarb.__version__ + texts.header + texts.source)}}}"
    sources = {
        "model.c": texts.source,
        WRAPPER[0]: _read_wrapper(WRAPPER[0]),
        "model.h": texts.header,
        WRAPPER[1]: _read_wrapper(WRAPPER[1]),
        "fmu_model.h": _write_binding(program, guid, variables),
    }
    compiled = [file for file in sources if file.endswith(".c")]
    platform = find_platform()
    contents = {
        "modelDescription.xml": write_description(name, model.dt, guid, variables, compiled),
        **{f"sources/{file}": text.encode() for file, text in sources.items()},
        f"binaries/{platform.folder}/{name}{platform.ending}": _compile(sources, compiled, platform.ending),
    }
    return _pack(contents)


def _read_wrapper(file: str) -> str:
    return (files("revarb.models.export") / "fmi2" / file).read_text(encoding="utf-8")


def _write_binding(program: CProgram, guid: str, variables: Sequence[FmuVariable]) -> str:
    name, macro, double = program.name, program.names.macro, CReal("double", "double")
    inputs = [each.start for each in variables if each.causality == "input"]
    starts = [each.start for each in variables if each.causality == "parameter"]
    tables = {"fmu_input_starts": [*inputs, 0.0], "fmu_state_starts": starts}
    written = "\n".join(double.table(table, np.array(values)) for table, values in tables.items())
    return f"""/* The model that fmi2_cosimulation.c runs. */
#ifndef REVARB_FMU_MODEL_H
#define REVARB_FMU_MODEL_H

#include "model.h"

#define FMU_GUID "{guid}"
#define FMU_EXPORT {macro}_EXPORT
#define FMU_INPUTS {macro}_INPUTS
#define FMU_OUTPUTS {macro}_OUTPUTS
#define FMU_STATES {macro}_STATES
#define FMU_DT {macro}_DT

#define fmu_init {name}_init
#define fmu_set_state {name}_set_state
#define fmu_get_state {name}_get_state
#define fmu_step {name}_step
#define fmu_output {name}_output

typedef {name}_real fmu_real;
typedef {name}_state fmu_run;

/* Start values of the variables, as in modelDescription.xml; one input more, which nothing reads. */
{written}

#endif
"""


def _compile(sources: Mapping[str, str], compiled: Sequence[str], ending: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="revarb-fmu-") as folder:
        for file, text in sources.items():
            (Path(folder) / file).write_text(text, encoding="utf-8")
        library = Path(folder) / f"library{ending}"
        compile_library([Path(folder) / file for file in compiled], library)
        return library.read_bytes()


def _pack(contents: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in contents.items():
            archive.writestr(zipfile.ZipInfo(file, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()
