"""The variables of an FMU, and its modelDescription.xml (FMI 2.0 for co-simulation)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree as Xml

import numpy as np

import revarb
from revarb.export.c_text import make_unique
from revarb.export.step_model import StepMember, StepModel

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
        f"member{number}.{name}" if many else name
        for number, member in enumerate(model.members, start=1)
        for name in _name_joint_state(member)
    ]
    past = [f"past.{name}.lag{lag}" for lag in range(model.past_inputs, 0, -1) for name in model.input_names]
    return [*joint, *past]


def _name_joint_state(member: StepMember) -> Iterable[str]:
    for layer, dim in enumerate(member.latent_dims, start=1):
        for lag, state in np.ndindex(member.order.lags, dim):
            yield f"layer{layer}.state{state + 1}.lag{lag}"


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
    part, name = Xml.SubElement(root, "ModelVariables"), COLD_START
    while name in [each.name for each in variables]:
        name += "_"
    for reference, each in enumerate(variables):
        known = {"name": each.name, "valueReference": str(reference), **_describe(each)}
        place = Xml.SubElement(part, "ScalarVariable", known)
        values = {"unit": each.unit, "start": None if each.start is None else repr(each.start)}
        Xml.SubElement(place, "Real", {key: value for key, value in values.items() if value is not None})
    place = Xml.SubElement(
        part,
        "ScalarVariable",
        name=name,
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


def _add_structure(root: Xml.Element, variables: Sequence[FmuVariable]) -> None:
    outputs = [number for number, each in enumerate(variables, start=1) if each.causality == "output"]
    structure = Xml.SubElement(root, "ModelStructure")
    known = Xml.SubElement(structure, "Outputs")
    for index in outputs:  # no direct feedthrough: they change with a step, not with an input
        Xml.SubElement(known, "Unknown", index=str(index), dependencies="")
    unknown = Xml.SubElement(structure, "InitialUnknowns")
    for index in outputs:
        Xml.SubElement(unknown, "Unknown", index=str(index))
