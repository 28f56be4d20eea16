"""modelDescription.xml of an FMU (FMI 2.0 for co-simulation)."""

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

import revarb
from revarb.models.export.fmu_variables import FmuVariable

CONVENTION = (
    "A step of the FMU is one sample: fmi2DoStep at t = k dt takes the inputs of row k, and the outputs after it are "
    "those of row k of revarb's simulate. Inputs are held over a step of several samples."
)
COLD_START = "cold_start"  # the Boolean parameter


def write_description(
    name: str, dt: float, guid: str, variables: Sequence[FmuVariable], sources: Sequence[str]
) -> bytes:
    """The description as a file."""
    root = Xml.Element(
        "fmiModelDescription",
        fmiVersion="2.0",
        modelName=name,
        guid=guid,
        description=f"Trained model, sampling interval {dt!r}. {CONVENTION}",
        generationTool=f"revarb {revarb.__version__}",
        variableNamingConvention="flat",
        numberOfEventIndicators="0",
    )
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
        root,
        "CoSimulation",
        modelIdentifier=name,
        canHandleVariableCommunicationStepSize="false",
        canGetAndSetFMUstate="true",
        canSerializeFMUstate="true",
    )
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
        part,
        "ScalarVariable",
        name=_name_cold_start(variables),
        valueReference="0",
        causality="parameter",
        variability="fixed",
        description="true: start without any measurement; false: at the start values of the states",
    )
    Xml.SubElement(place, "Boolean", start="true")


def _describe(variable: FmuVariable) -> dict[str, str]:
    # Inputs are continuous: tools interpolate them to the time of a step, which rounding may put before that of a row.
    variability = {"input": "continuous", "parameter": "fixed"}.get(variable.causality, "discrete")
    known = {"causality": variable.causality, "variability": variability}
    return {**known, "description": variable.description} if variable.description else known


def _name_cold_start(variables: Sequence[FmuVariable]) -> str:
    name, taken = COLD_START, {each.name for each in variables}
    while name in taken:
        name += "_"
    return name


def _add_structure(root: Xml.Element, variables: Sequence[FmuVariable]) -> None:
    outputs = [number for number, each in enumerate(variables, start=1) if each.causality == "output"]
    structure = Xml.SubElement(root, "ModelStructure")
    known = Xml.SubElement(structure, "Outputs")
    for index in outputs:  # no direct feedthrough: they change with a step, not with an input
        Xml.SubElement(known, "Unknown", index=str(index), dependencies="")
    unknown = Xml.SubElement(structure, "InitialUnknowns")
    for index in outputs:
        Xml.SubElement(unknown, "Unknown", index=str(index))
