"""The CasADi step with the standard deviation of its outputs, given the state before it exactly (one_step_std.py)."""

from typing import TYPE_CHECKING, NamedTuple

from revarb.models.base import Fitted
from revarb.models.export.casadi_function import make_casadi, scale_inputs
from revarb.models.export.casadi_layers import Expression, evaluate, evaluate_basis, import_casadi
from revarb.models.export.expanded_basis import expand_basis
from revarb.models.export.one_step_std import StdLayer, StdMember, describe_std
from revarb.models.export.step_model import StepMember, make_step_model

if TYPE_CHECKING:
    import casadi


class LayerMoments(NamedTuple):
    """Value of a layer, its derivative by all regressors, and the variance of its function there."""

    value: Expression
    jacobian: Expression
    variance: Expression


def make_casadi_with_std(model: Fitted) -> "casadi.Function":
    """The step with a third output `std`, raw units; see `Fitted.to_casadi`."""
    ca, step_model = import_casadi(), make_step_model(model)
    state, u = ca.MX.sym("state", step_model.state_size), ca.MX.sym("u", step_model.inputs)
    following, mean = make_casadi(step_model)(state, u)
    variances = []
    for part, member, own in zip(describe_std(model), step_model.members, step_model.locate_members(), strict=True):
        y, variance = _propagate(part, member, state[own, 0], scale_inputs(step_model, member, state, u))
        scale = ca.DM(member.scaling.y_std)
        away = y * scale + ca.DM(member.scaling.y_mean) - mean
        variances.append(variance * (part.width * scale) ** 2 + away**2)  # law of total variance
    std = ca.sqrt(sum(variances[1:], variances[0]) / len(variances))
    return ca.Function("step", [state, u], [following, mean, std], ["state", "u"], ["next_state", "y", "std"])


def _propagate(
    part: StdMember, member: StepMember, joint: Expression, u_bar: Expression
) -> tuple[Expression, Expression]:
    # Mean and variance of the measured outputs, z-scored.
    ca, below, found, cov = import_casadi(), u_bar, None, None
    for layer, window in zip(part.layers[: len(member.hidden)], member.windows, strict=True):
        own = joint[window.tolist(), 0]
        found = _predict(layer, ca.vertcat(own, below))
        cov = _add_below(found, layer, cov)
        below = ca.vertcat(found.value, own[: -layer.formula.outputs, 0])
    if member.output is not None:
        found = _predict(part.layers[-1], below)
        cov = _add_below(found, part.layers[-1], cov)
    assert found is not None
    return found.value, ca.diag(cov)


def _add_below(found: LayerMoments, layer: StdLayer, cov: Expression | None) -> Expression:
    # Covariance of the new values.
    ca = import_casadi()
    own = ca.diag(found.variance + layer.noise)
    if cov is None:
        return own
    gain = found.jacobian[:, layer.first : layer.first + layer.below]
    return own + ca.mtimes(ca.mtimes(gain, cov), gain.T)


def _predict(layer: StdLayer, x: Expression) -> LayerMoments:
    ca, formula = import_casadi(), layer.formula
    at = ca.MX.sym("x", formula.regressors)
    value, basis = evaluate(formula, at), evaluate_basis(expand_basis(formula), at)
    reduced = ca.vertcat(*(ca.dot(basis, ca.mtimes(ca.DM(each), basis)) for each in layer.reductions))
    variance = ca.fmax(formula.variance - reduced, 0.0)
    return LayerMoments(*ca.Function("layer", [at], [value, ca.jacobian(value, at), variance])(x))
