"""The step of a trained model as a CasADi function, built from CasADi's own operations.

It is differentiable, and CasADi can generate code of it. Operations are on vectors (MX): with a hundred inducing inputs
the expanded form (SX) takes eight times as long, and its derivatives take longer still.
"""

import tempfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from revarb.errors import InputError, check_integer
from revarb.models.export.expanded_basis import ExpandedBasis, expand_basis
from revarb.models.export.step_model import StepMember, StepModel
from revarb.simulation.formulas import Affine, Formula, RadialBasis

if TYPE_CHECKING:
    import casadi

Expression = Any  # a column of casadi.MX


def make_casadi(model: StepModel, horizon: int | None = None) -> "casadi.Function":
    """The step, or with `horizon` the run of as many steps; see `Fitted.to_casadi`."""
    ca, step = _import_casadi(), _make_step(model)
    if horizon is None:
        return step
    steps = check_integer("horizon", horizon, least=1)
    state, u = ca.MX.sym("state", model.state_size), ca.MX.sym("u", model.inputs, steps)
    return ca.Function("run", [state, u], list(step.fold(steps)(state, u)), ["state", "u"], ["final_state", "y"])


def serialise(model: StepModel) -> bytes:
    """The step as the content of a file that `casadi.Function.load` reads, in Python, MATLAB or C++."""
    step = make_casadi(model)
    with tempfile.TemporaryDirectory() as folder:  # CasADi writes this form to files only
        path = Path(folder) / "step.casadi"
        step.save(str(path))
        return path.read_bytes()


def _import_casadi() -> ModuleType:
    try:
        import casadi
    except ImportError as error:
        raise InputError(f'a CasADi function needs {error.name}; pip install "revarb[casadi]"') from None
    return casadi


def _make_step(model: StepModel) -> "casadi.Function":
    ca = _import_casadi()
    state, u = ca.MX.sym("state", model.state_size), ca.MX.sym("u", model.inputs)
    window = ca.vertcat(state[model.states :, 0], u)
    states, outputs = [], []
    for member, own in zip(model.members, model.locate_members(), strict=True):
        scaling, lags = member.scaling, member.order.input_lags
        recent = window[model.locate_inputs(member).tolist(), 0]
        u_bar = (recent - ca.DM(np.tile(scaling.u_mean, lags))) / ca.DM(np.tile(scaling.u_std, lags))
        joint, y = _advance(member, state[own, 0], u_bar)
        states.append(joint)
        outputs.append(y * ca.DM(scaling.y_std) + ca.DM(scaling.y_mean))
    following = ca.vertcat(*states, window[model.inputs :, 0])
    mean = sum(outputs[1:], outputs[0]) / len(outputs)
    return ca.Function("step", [state, u], [following, mean], ["state", "u"], ["next_state", "y"])


def _advance(member: StepMember, joint: Expression, u_bar: Expression) -> tuple[Expression, Expression]:
    # The joint state after the step, and the outputs, all z-scored.
    ca = _import_casadi()
    windows, below = [], u_bar
    for layer, window in zip(member.hidden, member.windows, strict=True):
        own = joint[window.tolist(), 0]
        below = ca.vertcat(_evaluate(layer, ca.vertcat(own, below)), own[: -layer.outputs, 0])
        windows.append(below)
    y = below[: member.latent_dims[-1], 0] if member.output is None else _evaluate(member.output, below)
    return ca.vertcat(*windows), y


def _evaluate(formula: Formula, x: Expression) -> Expression:
    ca = _import_casadi()
    if isinstance(formula, Affine):
        return ca.mtimes(ca.DM(formula.coefficients.T), x) + ca.DM(formula.offset)
    if isinstance(formula, RadialBasis):
        basis = _evaluate_basis(expand_basis(formula), x)
        return basis if formula.affine is None else basis + _evaluate(formula.affine, x)
    return _evaluate(formula.readout, ca.tanh(_evaluate(formula.hidden, x)))


def _evaluate_basis(basis: ExpandedBasis, x: Expression) -> Expression:
    # With expanded squares a Hessian takes half the time.
    ca = _import_casadi()
    away = x - ca.DM(basis.centre)
    exponents = ca.mtimes(ca.DM(basis.products), away) + ca.DM(basis.offsets) - ca.dot(away * ca.DM(basis.half_w), away)
    return ca.mtimes(ca.DM(basis.weights.T), ca.exp(exponents))
