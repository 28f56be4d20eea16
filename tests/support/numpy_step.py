"""The step of a model in NumPy, as simple as it can be: what the exports are compared with."""

import numpy as np

from revarb.models.export.step_model import StepMember, StepModel
from revarb.simulation.formulas import Affine, Formula, RadialBasis


def evaluate(formula: Formula, x: np.ndarray) -> np.ndarray:
    """Value of a layer at one vector of regressors."""
    if isinstance(formula, Affine):
        return x @ formula.coefficients + formula.offset
    if isinstance(formula, RadialBasis):
        kernel = formula.variance * np.exp(-0.5 * ((x - formula.zeta) ** 2 @ formula.w))
        return kernel @ formula.beta + (0.0 if formula.affine is None else evaluate(formula.affine, x))
    return evaluate(formula.readout, np.tanh(evaluate(formula.hidden, x)))


def advance(member: StepMember, state: np.ndarray, u_bar: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The joint state after one step, and the outputs, all z-scored."""
    state = state.copy()
    for number, (layer, window) in enumerate(zip(member.hidden, member.windows, strict=True)):
        x = np.concatenate([state[member.regressors[number]], u_bar if number == 0 else []])
        new = evaluate(layer, x)
        state[window] = np.concatenate([new, state[window][: -len(new)]])
    newest = state[member.windows[-1]]
    return state, newest[: member.latent_dims[-1]] if member.output is None else evaluate(member.output, newest)


def run_member(member: StepMember, u: np.ndarray) -> np.ndarray:
    """A cold run over raw inputs, raw outputs."""
    order, z = member.order, member.scaling.inputs(u)
    z = np.concatenate([np.zeros((order.reach, z.shape[1])), z])
    state, outputs = np.zeros(member.states), []
    for row in range(len(u)):
        if row == order.reach:
            state = np.zeros(member.states)
        newest = row + order.reach - order.input_delay
        u_bar = np.concatenate([np.empty(0), *(z[newest - age] for age in range(order.input_lags))])
        state, y = advance(member, state, u_bar)
        outputs.append(member.scaling.raw_outputs(y))
    return np.stack(outputs)


def run_cold(model: StepModel, u: np.ndarray) -> np.ndarray:
    """Mean of the members' cold runs."""
    return np.mean([run_member(member, u) for member in model.members], axis=0)


def step_vector(model: StepModel, state: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step on the state vector, raw units; the outputs are the members' mean."""
    window = np.concatenate([state[model.states :], u])
    states, outputs = [], []
    for member, own in zip(model.members, model.locate_members(), strict=True):
        scaling, lags = member.scaling, member.order.input_lags
        recent = window[model.locate_inputs(member)].reshape(lags, model.inputs)
        joint, y = advance(member, state[own], scaling.inputs(recent).ravel())
        states.append(joint)
        outputs.append(scaling.raw_outputs(y))
    return np.concatenate([*states, window[model.inputs :]]), np.mean(outputs, axis=0)
