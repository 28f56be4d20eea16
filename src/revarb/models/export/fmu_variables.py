"""The variables of an FMU: inputs, outputs, states, and the start values of the states."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from revarb.models.export.step_model import StepMember, StepModel


class FmuVariable(NamedTuple):
    """A real variable; its value reference is its position."""

    name: str
    description: str
    causality: str
    unit: str | None = None
    start: float | None = None


def list_variables(model: StepModel, units: Mapping[str, str]) -> list[FmuVariable]:
    """All real variables in the order of fmi2_cosimulation.c, with names of their own."""
    names, taken = name_states(model), set[str]()
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
    return [each._replace(name=_make_unique(each.name, taken)) for each in variables]


def name_states(model: StepModel) -> list[str]:
    """A name for every entry of the state vector."""
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


def _make_unique(name: str, taken: set[str]) -> str:
    # Whatever a column is called: XML has no control characters, and FMI no line breaks in names.
    clean = "".join(char if char.isprintable() else "_" for char in name).strip() or "_"
    number, made = 1, clean
    while made in taken:
        number += 1
        made = f"{clean}_{number}"
    taken.add(made)
    return made
