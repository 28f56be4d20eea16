"""The step of a trained model as a CasADi function, built from CasADi's own operations.

It is differentiable, and CasADi can generate code of it. Operations are on vectors (MX): with a hundred inducing inputs
the expanded form (SX) takes eight times as long, and its derivatives take longer still.

The standard deviation of a step is that of a measurement, given the state before the step exactly. Every layer adds its
own variance, that of its function at these regressors and that of its noise, and passes on the variance of the layer
below by its Jacobian: first order, where `simulate` matches moments. The outputs of an ensemble are a mixture.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from revarb.errors import InputError, check_integer
from revarb.export.step_model import (
    ExpandedBasis,
    GaussianLayer,
    MemberParts,
    StepMember,
    StepModel,
    expand_basis,
    list_gaussian_layers,
    make_step_model,
)
from revarb.simulation.formulas import Affine, Formula, RadialBasis

if TYPE_CHECKING:
    import casadi

Expression = Any  # a column of casadi.MX


def _import_casadi() -> ModuleType:
    try:
        import casadi
    except ImportError as error:
        raise InputError(f'a CasADi function needs {error.name}; pip install "revarb[casadi]"') from None
    return casadi


def make_casadi(model: StepModel, horizon: int | None = None) -> "casadi.Function":
    """The step, or with `horizon` the run of as many steps; see `Exportable.to_casadi`."""
    ca, step = _import_casadi(), _make_step(model)
    if horizon is None:
        return step
    steps = check_integer("horizon", horizon, least=1)
    state, u = ca.MX.sym("state", model.state_size), ca.MX.sym("u", model.inputs, steps)
    return ca.Function("run", [state, u], list(step.fold(steps)(state, u)), ["state", "u"], ["final_state", "y"])


def make_casadi_with_std(parts: Sequence[MemberParts]) -> "casadi.Function":
    """The step with a third output `std`, raw units; see `Exportable.to_casadi`."""
    ca, model = _import_casadi(), make_step_model(parts)
    state, u = ca.MX.sym("state", model.state_size), ca.MX.sym("u", model.inputs)
    following, mean = _make_step(model)(state, u)
    variances = []
    for part, member, own in zip(parts, model.members, model.locate_members(), strict=True):
        layers, scale = list_gaussian_layers(part), ca.DM(member.scaling.y_std)
        y, variance = _propagate(layers, member, state[own, 0], _scale_inputs(model, member, state, u))
        away = y * scale + ca.DM(member.scaling.y_mean) - mean
        variances.append(variance * (part.factors[0] * scale) ** 2 + away**2)  # law of total variance
    std = ca.sqrt(sum(variances[1:], variances[0]) / len(variances))
    return ca.Function("step", [state, u], [following, mean, std], ["state", "u"], ["next_state", "y", "std"])


def serialise(step: "casadi.Function") -> bytes:
    """The content of a file that `casadi.Function.load` reads, in Python, MATLAB or C++."""
    with tempfile.TemporaryDirectory() as folder:  # CasADi writes this form to files only
        path = Path(folder) / "step.casadi"
        step.save(str(path))
        return path.read_bytes()


def _make_step(model: StepModel) -> "casadi.Function":
    ca = _import_casadi()
    state, u = ca.MX.sym("state", model.state_size), ca.MX.sym("u", model.inputs)
    states, outputs = [], []
    for member, own in zip(model.members, model.locate_members(), strict=True):
        joint, y = _advance(member, state[own, 0], _scale_inputs(model, member, state, u))
        states.append(joint)
        outputs.append(y * ca.DM(member.scaling.y_std) + ca.DM(member.scaling.y_mean))
    following = ca.vertcat(*states, ca.vertcat(state[model.states :, 0], u)[model.inputs :, 0])
    mean = sum(outputs[1:], outputs[0]) / len(outputs)
    return ca.Function("step", [state, u], [following, mean], ["state", "u"], ["next_state", "y"])


def _scale_inputs(model: StepModel, member: StepMember, state: Expression, u: Expression) -> Expression:
    # A member's window of inputs, z-scored, from the state vector and the inputs of the step.
    ca, scaling, lags = _import_casadi(), member.scaling, member.order.input_lags
    recent = ca.vertcat(state[model.states :, 0], u)[model.locate_inputs(member).tolist(), 0]
    return (recent - ca.DM(np.tile(scaling.u_mean, lags))) / ca.DM(np.tile(scaling.u_std, lags))


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
        expanded = expand_basis(formula)
        basis = ca.mtimes(ca.DM(expanded.weights.T), _evaluate_basis(expanded, x))
        return basis if formula.affine is None else basis + _evaluate(formula.affine, x)
    return _evaluate(formula.readout, ca.tanh(_evaluate(formula.hidden, x)))


def _evaluate_basis(basis: ExpandedBasis, x: Expression) -> Expression:
    # Without weights. With expanded squares a Hessian is faster.
    ca = _import_casadi()
    away = x - ca.DM(basis.centre)
    exponents = ca.mtimes(ca.DM(basis.products), away) + ca.DM(basis.offsets) - ca.dot(away * ca.DM(basis.half_w), away)
    return ca.exp(exponents)


def _propagate(
    layers: Sequence[GaussianLayer], member: StepMember, joint: Expression, u_bar: Expression
) -> tuple[Expression, Expression]:
    # Mean and variance of the measured outputs, z-scored.
    ca, below, value, cov = _import_casadi(), u_bar, None, None
    for layer, window in zip(layers[: len(member.hidden)], member.windows, strict=True):
        own = joint[window.tolist(), 0]
        value, cov = _predict(layer, ca.vertcat(own, below), cov)
        below = ca.vertcat(value, own[: -layer.formula.outputs, 0])
    if member.output is not None:
        value, cov = _predict(layers[-1], below, cov)
    return value, ca.diag(cov)


def _predict(layer: GaussianLayer, x: Expression, below: Expression | None) -> tuple[Expression, Expression]:
    # Value of a layer and its covariance, given that of the new values of the layer below.
    ca, formula = _import_casadi(), layer.formula
    at = ca.MX.sym("x", formula.regressors)
    value, basis = _evaluate(formula, at), _evaluate_basis(expand_basis(formula), at)
    reduced = ca.vertcat(*(ca.dot(basis, ca.mtimes(ca.DM(each), basis)) for each in layer.reductions))
    own = ca.repmat(ca.fmax(formula.variance - reduced, 0.0), formula.outputs // len(layer.reductions), 1)
    value, jacobian, own = ca.Function("layer", [at], [value, ca.jacobian(value, at), own])(x)
    cov = ca.diag(own + layer.noise)
    if below is None:
        return value, cov
    gain = jacobian[:, layer.first : layer.first + layer.below]
    return value, cov + ca.mtimes(ca.mtimes(gain, below), gain.T)
