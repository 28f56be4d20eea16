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
from typing import Any, NamedTuple

import casadi as ca
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
from revarb.simulation.chain import Affine, Formula, RadialBasis

Expression = Any  # a column of casadi.MX


class Advanced(NamedTuple):
    """A member after the step: its joint state, its outputs in raw units, and the regressors of all its layers."""

    joint: Expression
    y: Expression
    regressors: list[Expression]


def make_casadi(parts: Sequence[MemberParts], horizon: int | None = None, with_std: bool = False) -> ca.Function:
    """The step, or with `horizon` the run of as many steps; see `Exportable.to_casadi`."""
    if with_std and horizon is not None:
        raise InputError("with_std is of one step from a known state; leave horizon out, or simulate by 'moments'")
    model = make_step_model(parts)
    step = _make_step(model, parts if with_std else None)
    if horizon is None:
        return step
    steps = check_integer("horizon", horizon, least=1)
    state, u = ca.MX.sym("state", model.state_size), ca.MX.sym("u", model.inputs, steps)
    return ca.Function("run", [state, u], list(step.fold(steps)(state, u)), ["state", "u"], ["final_state", "y"])


def serialise(step: ca.Function) -> bytes:
    """The content of a file that `casadi.Function.load` reads, in Python, MATLAB or C++."""
    with tempfile.TemporaryDirectory() as folder:  # CasADi writes this form to files only
        path = Path(folder) / "step.casadi"
        step.save(str(path))
        return path.read_bytes()


def _make_step(model: StepModel, with_std: Sequence[MemberParts] | None) -> ca.Function:
    state, u = ca.MX.sym("state", model.state_size), ca.MX.sym("u", model.inputs)
    members = [
        _advance(member, state[own, 0], _scale_inputs(model, member, state, u))
        for member, own in zip(model.members, model.locate_members(), strict=True)
    ]
    recent = ca.vertcat(state[model.states :, 0], u)[model.inputs :, 0]
    mean = _average([now.y for now in members])
    results = {"next_state": ca.vertcat(*(now.joint for now in members), recent), "y": mean}
    if with_std is not None:
        results["std"] = _find_std(model, with_std, members, mean)
    return ca.Function("step", [state, u], list(results.values()), ["state", "u"], list(results))


def _average(values: Sequence[Expression]) -> Expression:
    return sum(values[1:], values[0]) / len(values)


def _scale_inputs(model: StepModel, member: StepMember, state: Expression, u: Expression) -> Expression:
    # A member's window of inputs, z-scored, from the state vector and the inputs of the step.
    scaling, lags = member.scaling, member.order.input_lags
    recent = ca.vertcat(state[model.states :, 0], u)[model.locate_inputs(member).tolist(), 0]
    return (recent - ca.DM(np.tile(scaling.u_mean, lags))) / ca.DM(np.tile(scaling.u_std, lags))


def _advance(member: StepMember, joint: Expression, u_bar: Expression) -> Advanced:
    windows, regressors, new, below = [], [], u_bar, u_bar
    for layer, window in zip(member.hidden, member.windows, strict=True):
        own = joint[window.tolist(), 0]
        regressors.append(ca.vertcat(own, below))
        new = _evaluate(layer, regressors[-1])
        below = ca.vertcat(new, own[: -layer.outputs, 0])
        windows.append(below)
    if member.output is not None:
        regressors.append(below)
        new = _evaluate(member.output, below)
    y = new * ca.DM(member.scaling.y_std) + ca.DM(member.scaling.y_mean)
    return Advanced(ca.vertcat(*windows), y, regressors)


def _evaluate(formula: Formula, x: Expression) -> Expression:
    if isinstance(formula, Affine):
        return ca.mtimes(ca.DM(formula.coefficients.T), x) + ca.DM(formula.offset)
    if isinstance(formula, RadialBasis):
        expanded = expand_basis(formula)
        basis = ca.mtimes(ca.DM(expanded.weights.T), _evaluate_basis(expanded, x))
        return basis if formula.affine is None else basis + _evaluate(formula.affine, x)
    return _evaluate(formula.readout, ca.tanh(_evaluate(formula.hidden, x)))


def _evaluate_basis(basis: ExpandedBasis, x: Expression) -> Expression:
    # Without weights. With expanded squares a Hessian is faster.
    away = x - ca.DM(basis.centre)
    exponents = ca.mtimes(ca.DM(basis.products), away) + ca.DM(basis.offsets) - ca.dot(away * ca.DM(basis.half_w), away)
    return ca.exp(exponents)


def _find_std(
    model: StepModel, parts: Sequence[MemberParts], members: Sequence[Advanced], mean: Expression
) -> Expression:
    variances = []
    for part, member, now in zip(parts, model.members, members, strict=True):
        (first, *later), (known, *others) = list_gaussian_layers(part), now.regressors
        cov = _find_cov(first, known, None)
        for layer, x in zip(later, others, strict=True):
            cov = _find_cov(layer, x, cov)
        own = ca.diag(cov) * (part.factors[0] * ca.DM(member.scaling.y_std)) ** 2
        variances.append(own + (now.y - mean) ** 2)  # law of total variance
    return ca.sqrt(_average(variances))


def _find_cov(layer: GaussianLayer, x: Expression, below: Expression | None) -> Expression:
    # Covariance of the values of a layer, given that of the new values of the layer below.
    formula = layer.formula
    at = ca.MX.sym("x", formula.regressors)
    basis = _evaluate_basis(expand_basis(formula), at)
    reduced = ca.vertcat(*(ca.dot(basis, ca.mtimes(ca.DM(each), basis)) for each in layer.reductions))
    own = ca.repmat(ca.fmax(formula.variance - reduced, 0.0), formula.outputs // len(layer.reductions), 1)
    jacobian, own = ca.Function("layer", [at], [ca.jacobian(_evaluate(formula, at), at), own])(x)
    cov = ca.diag(own + layer.noise)
    if below is None:
        return cov
    gain = jacobian[:, layer.first : layer.first + layer.below]
    return cov + ca.mtimes(ca.mtimes(gain, below), gain.T)
