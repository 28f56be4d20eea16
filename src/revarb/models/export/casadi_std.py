"""The CasADi step with the standard deviation of its outputs, given the state before it exactly.

Every layer adds its own variance, that of its function at these regressors and that of its noise, and passes on the
variance of the layer below by its Jacobian: first order, where `simulate` matches moments. Noise and band width are the
calibrated ones. The outputs of an ensemble are a mixture.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from revarb.errors import InputError
from revarb.gp.posterior import Posterior
from revarb.models.base import Fitted
from revarb.models.ensemble import Ensemble
from revarb.models.export.casadi_function import make_casadi, scale_inputs
from revarb.models.export.casadi_layers import Expression, evaluate, evaluate_basis, import_casadi
from revarb.models.export.expanded_basis import expand_basis
from revarb.models.export.step_model import StepMember, make_step_model
from revarb.simulation.chain import Chain, find_noise_variance
from revarb.simulation.formulas import Formula, RadialBasis

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
    parts = model.members if isinstance(model, Ensemble) else (model,)
    state, u = ca.MX.sym("state", step_model.state_size), ca.MX.sym("u", step_model.inputs)
    following, mean = make_casadi(step_model)(state, u)
    variances = []
    for part, member, own in zip(parts, step_model.members, step_model.locate_members(), strict=True):
        y, variance = _propagate(_get_chain(part), member, state[own, 0], scale_inputs(step_model, member, state, u))
        scale, factor = ca.DM(member.scaling.y_std), _find_width(part)
        away = y * scale + ca.DM(member.scaling.y_mean) - mean
        variances.append(variance * (factor * scale) ** 2 + away**2)  # law of total variance
    std = ca.sqrt(sum(variances[1:], variances[0]) / len(variances))
    return ca.Function("step", [state, u], [following, mean, std], ["state", "u"], ["next_state", "y", "std"])


def _get_chain(model: Any) -> Chain[Posterior]:
    chain = model.chain
    if not all(isinstance(layer, Posterior) for layer in (*chain.hidden, chain.last_layer)):
        raise InputError(
            f"a {type(model).__name__} has no variance of its own; leave with_std out, or take an RGP or a GP-NARX"
        )
    return chain


def _find_width(model: Any) -> float:
    calibration = getattr(model, "calibration", None)
    return 1.0 if calibration is None else float(calibration.width_factors(np.array([1]), cold=False)[0])


def _propagate(
    chain: Chain[Posterior], member: StepMember, joint: Expression, u_bar: Expression
) -> tuple[Expression, Expression]:
    # Mean and variance of the measured outputs, z-scored.
    ca, below, known, cov = import_casadi(), u_bar, 0, None
    for layer, formula, window in zip(chain.hidden, member.hidden, member.windows, strict=True):
        own = joint[window.tolist(), 0]
        found = _predict(layer, formula, ca.vertcat(own, below))
        noise = find_noise_variance(chain) if layer is chain.last_layer else layer.sigma2
        cov = _add_below(found, float(noise), len(window), known, cov)
        below, known = ca.vertcat(found.value, own[: -formula.outputs, 0]), formula.outputs
    if chain.output is None or member.output is None:
        return below[:known, 0], ca.diag(cov)
    found = _predict(chain.output, member.output, below)
    return found.value, ca.diag(_add_below(found, float(find_noise_variance(chain)), 0, known, cov))


def _add_below(found: LayerMoments, noise: float, first: int, known: int, cov: Expression | None) -> Expression:
    # Covariance of the new values; those of the layer below are the regressors first … first + known.
    ca = import_casadi()
    own = ca.diag(found.variance + noise)
    if cov is None:
        return own
    gain = found.jacobian[:, first : first + known]
    return own + ca.mtimes(ca.mtimes(gain, cov), gain.T)


def _predict(layer: Posterior, formula: Formula, x: Expression) -> LayerMoments:
    ca = import_casadi()
    assert isinstance(formula, RadialBasis)  # the formula of a posterior
    at = ca.MX.sym("x", formula.regressors)
    value, kernel = evaluate(formula, at), formula.variance * evaluate_basis(expand_basis(formula), at)
    reductions = np.broadcast_to(np.asarray(layer.reduction), (formula.outputs, *np.shape(layer.reduction)[-2:]))
    reduced = ca.vertcat(*(ca.dot(kernel, ca.mtimes(ca.DM(each), kernel)) for each in reductions))
    variance = ca.fmax(formula.variance - reduced, 0.0)
    return LayerMoments(*ca.Function("layer", [at], [value, ca.jacobian(value, at), variance])(x))
