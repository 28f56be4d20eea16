"""The step of a model in NumPy, as simple as it can be: what the exports are compared with."""

import numpy as np

from revarb.export.step_model import StepMember, StepModel
from revarb.simulation.chain import locate_regressors
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
        x = np.concatenate([state[locate_regressors(member)[number]], u_bar if number == 0 else []])
        new = evaluate(layer, x)
        state[window] = np.concatenate([new, state[window][: -len(new)]])
    newest = state[member.windows[-1]]
    return state, newest[: member.latent_dims[-1]] if member.output is None else evaluate(member.output, newest)


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
