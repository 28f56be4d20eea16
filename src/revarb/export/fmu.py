"""Functional mock-up units (FMI 2.0 for co-simulation): variables, modelDescription.xml, compiled archive."""

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
from typing import NamedTuple
from xml.etree import ElementTree as Xml

import numpy as np

import revarb
from revarb.errors import ComputationError, InputError
from revarb.export.c_program import make_c
from revarb.export.c_text import CProgram, CReal, make_unique
from revarb.export.step_model import StepModel

CONVENTION = (
    "A step of the FMU is one sample: fmi2DoStep at t = k dt takes the inputs of row k, and the outputs after it are "
    "those of row k of revarb's simulate. Inputs are held over a step of several samples."
)
COLD_START = "cold_start"  # the Boolean parameter


class FmuVariable(NamedTuple):
    """A real variable; its value reference is its position."""

    name: str
    description: str
    causality: str
    unit: str | None = None
    start: float | None = None


def list_variables(model: StepModel, units: Mapping[str, str]) -> list[FmuVariable]:
    """All real variables in the order of fmi2_cosimulation.c, with names of their own."""
    names, taken = _name_states(model), set[str]()
    mean = model.members[0].scaling.u_mean
    states = [("state, z-scored", None)] * model.states
    states += [("past input", units.get(name)) for name in model.input_names] * model.past_inputs
    places = list(zip(names, states, model.make_cold_state().tolist(), strict=True))
    variables = [
        *(FmuVariable(name, "", "input", units.get(name), float(start))
          for name, start in zip(model.input_names, mean, strict=True)),
        *(FmuVariable(name, "", "output", units.get(name)) for name in model.output_names),
        *(FmuVariable(name, what, "local", unit) for name, (what, unit), _ in places),
        *(FmuVariable(f"start.{name}", f"start value, used if cold_start is false: {what}", "parameter", unit, start)
          for name, (what, unit), start in places),
    ]  # fmt: skip
    for number, each in enumerate(variables):
        # Whatever a column is called: XML has no control characters, and FMI no line breaks in names.
        clean = "".join(char if char.isprintable() else "_" for char in each.name).strip() or "_"
        variables[number] = each._replace(name=make_unique(clean, taken))
        taken.add(variables[number].name)
    return variables


def _name_states(model: StepModel) -> list[str]:
    # A name for every entry of the state vector.
    many = len(model.members) > 1
    joint = [
        f"{f'member{number}.' if many else ''}layer{layer}.state{state + 1}.lag{lag}"
        for number, member in enumerate(model.members, start=1)
        for layer, dim in enumerate(member.latent_dims, start=1)
        for lag, state in np.ndindex(member.lags, dim)
    ]
    past = [f"past.{name}.lag{lag}" for lag in range(model.past_inputs, 0, -1) for name in model.input_names]
    return [*joint, *past]


def write_description(
    name: str, dt: float, guid: str, variables: Sequence[FmuVariable], sources: Sequence[str]
) -> bytes:
    """The description as a file."""
    root = Xml.Element(
        "fmiModelDescription", fmiVersion="2.0", modelName=name, guid=guid, variableNamingConvention="flat",
        description=f"Trained model, sampling interval {dt!r}. {CONVENTION}",
        generationTool=f"revarb {revarb.__version__}", numberOfEventIndicators="0",
    )  # fmt: skip
    _add_cosimulation(root, name, sources)
    _add_units(root, variables)
    Xml.SubElement(Xml.SubElement(root, "LogCategories"), "Category", name="logStatusError")
    Xml.SubElement(root, "DefaultExperiment", startTime="0.0", stepSize=repr(dt))
    _add_variables(root, variables)
    _add_structure(root, variables)
    Xml.indent(root)
    return Xml.tostring(root, encoding="UTF-8", xml_declaration=True)


def _add_cosimulation(root: Xml.Element, name: str, sources: Sequence[str]) -> None:
    part = Xml.SubElement(
        root, "CoSimulation", modelIdentifier=name, canHandleVariableCommunicationStepSize="false",
        canGetAndSetFMUstate="true", canSerializeFMUstate="true",
    )  # fmt: skip
    files = Xml.SubElement(part, "SourceFiles")
    for source in sources:
        Xml.SubElement(files, "File", name=source)


def _add_units(root: Xml.Element, variables: Sequence[FmuVariable]) -> None:
    units = dict.fromkeys(each.unit for each in variables if each.unit is not None)
    if units:
        part = Xml.SubElement(root, "UnitDefinitions")
        for unit in units:
            Xml.SubElement(part, "Unit", name=unit)


def _add_variables(root: Xml.Element, variables: Sequence[FmuVariable]) -> None:
    part = Xml.SubElement(root, "ModelVariables")
    for reference, each in enumerate(variables):
        known = {"name": each.name, "valueReference": str(reference), **_describe(each)}
        place = Xml.SubElement(part, "ScalarVariable", known)
        values = {"unit": each.unit, "start": None if each.start is None else repr(each.start)}
        Xml.SubElement(place, "Real", {key: value for key, value in values.items() if value is not None})
    place = Xml.SubElement(
        part, "ScalarVariable", name=make_unique(COLD_START, [each.name for each in variables]), valueReference="0",
        causality="parameter", variability="fixed",
        description="true: start without any measurement; false: at the start values of the states",
    )  # fmt: skip
    Xml.SubElement(place, "Boolean", start="true")


def _describe(variable: FmuVariable) -> dict[str, str]:
    # Inputs are continuous: tools interpolate them to the time of a step, which rounding may put before that of a row.
    variability = {"input": "continuous", "parameter": "fixed"}.get(variable.causality, "discrete")
    known = {"causality": variable.causality, "variability": variability}
    return {**known, "description": variable.description} if variable.description else known


def _add_structure(root: Xml.Element, variables: Sequence[FmuVariable]) -> None:
    outputs = [number for number, each in enumerate(variables, start=1) if each.causality == "output"]
    structure = Xml.SubElement(root, "ModelStructure")
    # No direct feedthrough: outputs change with a step, not with an input.
    for group, more in (("Outputs", {"dependencies": ""}), ("InitialUnknowns", {})):
        part = Xml.SubElement(structure, group)
        for index in outputs:
            Xml.SubElement(part, "Unknown", {"index": str(index), **more})


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
        "model.h": header,
        "fmu_model.h": _write_binding(program, guid, variables),
        **{file: (files("revarb.export") / "fmi2" / file).read_text(encoding="utf-8") for file in WRAPPER},
    }
    compiled = [file for file in sources if file.endswith(".c")]
    system, ending = _find_platform()
    contents = {
        "modelDescription.xml": write_description(name, model.dt, guid, variables, compiled),
        **{f"sources/{file}": text.encode() for file, text in sources.items()},
        f"binaries/{system}/{name}{ending}": _compile(sources, ending),
    }
    return _pack(contents)


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


def _compile(sources: Mapping[str, str], ending: str) -> bytes:
    # A shared library that exports only what its source says. Without -march=native: it runs on other machines, too.
    command = [*_find_compiler(), "-std=c99", "-O3", "-shared", "-fvisibility=hidden"]
    command += [] if sys.platform.startswith("win") else ["-fPIC"]
    with tempfile.TemporaryDirectory(prefix="revarb-fmu-") as folder:
        paths, library = {file: Path(folder) / file for file in sources}, Path(folder) / f"library{ending}"
        for file, path in paths.items():
            path.write_text(sources[file], encoding="utf-8")
        listed = [str(path) for file, path in paths.items() if file.endswith(".c")]
        try:
            done = subprocess.run([*command, "-o", str(library), *listed, "-lm"], capture_output=True, text=True)
        except OSError as error:
            raise InputError(f"the C compiler {command[0]} does not start: {error.strerror or error}") from None
        if done.returncode != 0:
            said = next((line for line in done.stderr.splitlines() if "error" in line.lower()), done.stderr)
            raise ComputationError(f"the C compiler {command[0]} failed with status {done.returncode}: {said}")
        return library.read_bytes()


def _pack(contents: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in contents.items():
            archive.writestr(zipfile.ZipInfo(file, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()
