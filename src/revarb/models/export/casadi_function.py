"""The step of a trained model as a CasADi function, built from CasADi's own operations.

It is differentiable, and CasADi can generate code of it. Operations are on vectors (MX): with a hundred inducing inputs
the expanded form (SX) takes eight times as long, and its derivatives take longer still.
"""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from revarb.errors import check_integer
from revarb.models.export.casadi_layers import Expression, evaluate, import_casadi
from revarb.models.export.step_model import StepMember, StepModel

if TYPE_CHECKING:
    import casadi


def make_casadi(model: StepModel, horizon: int | None = None) -> "casadi.Function":
    """The step, or with `horizon` the run of as many steps; see `Fitted.to_casadi`."""
    ca, step = import_casadi(), _make_step(model)
    if horizon is None:
        return step
    steps = check_integer("horizon", horizon, least=1)
    state, u = ca.MX.sym("state", model.state_size), ca.MX.sym("u", model.inputs, steps)
    return ca.Function("run", [state, u], list(step.fold(steps)(state, u)), ["state", "u"], ["final_state", "y"])


def serialise(step: "casadi.Function") -> bytes:
    """The content of a file that `casadi.Function.load` reads, in Python, MATLAB or C++."""
    with tempfile.TemporaryDirectory() as folder:  # CasADi writes this form to files only
        path = Path(folder) / "step.casadi"
        step.save(str(path))
        return path.read_bytes()


def _make_step(model: StepModel) -> "casadi.Function":
    ca = import_casadi()
    state, u = ca.MX.sym("state", model.state_size), ca.MX.sym("u", model.inputs)
    states, outputs = [], []
    for member, own in zip(model.members, model.locate_members(), strict=True):
        joint, y = _advance(member, state[own, 0], scale_inputs(model, member, state, u))
        states.append(joint)
        outputs.append(y * ca.DM(member.scaling.y_std) + ca.DM(member.scaling.y_mean))
    following = ca.vertcat(*states, ca.vertcat(state[model.states :, 0], u)[model.inputs :, 0])
    mean = sum(outputs[1:], outputs[0]) / len(outputs)
    return ca.Function("step", [state, u], [following, mean], ["state", "u"], ["next_state", "y"])


def scale_inputs(model: StepModel, member: StepMember, state: Expression, u: Expression) -> Expression:
    """A member's window of inputs, z-scored, from the state vector and the inputs of the step."""
    ca, scaling, lags = import_casadi(), member.scaling, member.order.input_lags
    recent = ca.vertcat(state[model.states :, 0], u)[model.locate_inputs(member).tolist(), 0]
    return (recent - ca.DM(np.tile(scaling.u_mean, lags))) / ca.DM(np.tile(scaling.u_std, lags))


def _advance(member: StepMember, joint: Expression, u_bar: Expression) -> tuple[Expression, Expression]:
    # The joint state after the step, and the outputs, all z-scored.
    ca = import_casadi()
    windows, below = [], u_bar
    for layer, window in zip(member.hidden, member.windows, strict=True):
        own = joint[window.tolist(), 0]
        below = ca.vertcat(evaluate(layer, ca.vertcat(own, below)), own[: -layer.outputs, 0])
        windows.append(below)
    y = below[: member.latent_dims[-1], 0] if member.output is None else evaluate(member.output, below)
    return ca.vertcat(*windows), y
