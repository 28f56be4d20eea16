"""One step of a model, written with the operations of another tool: CasADi or ONNX.

The standard deviation of a step is that of a measurement, given the state before the step exactly. Every layer adds its
own variance, that of its function at these regressors and that of its noise, and passes on the variance of the layer
below by its Jacobian: first order, where `simulate` matches moments. The outputs of an ensemble are a mixture.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import ValueRange
from revarb.export.step_model import GaussianLayer, MemberParts, StepMember, StepModel, list_gaussian_layers
from revarb.simulation.extrapolation import DOUBT
from revarb.simulation.formulas import Affine, Formula, RadialBasis

Value = Any  # a vector or a matrix of the tool, which has the operators + − * / @


class Tool(NamedTuple):
    """What else a tool does with its values."""

    constant: Callable[[np.ndarray], Value]
    multiply: Callable[[np.ndarray, Value], Value]  # a constant matrix times a vector
    select: Callable[[Value, np.ndarray], Value]  # entries of a vector
    join: Callable[..., Value]  # one vector after the other
    exp: Callable[[Value], Value]
    tanh: Callable[[Value], Value]
    sqrt: Callable[[Value], Value]
    maximum: Callable[[Value, Value], Value]
    scale_columns: Callable[[Value, Value], Value]  # the columns of a matrix times the entries of a vector
    transpose: Callable[[Value], Value]


class Advanced(NamedTuple):
    """A member after the step: its windows, its outputs in raw units, and the regressors of all its layers.

    `inputs` are what it had of the inputs, and `before` is its joint state before the step.
    """

    windows: list[Value]
    y: Value
    regressors: list[Value]
    before: Value
    inputs: Value


class ExpandedBasis(NamedTuple):
    """y = Σ_m exp(products_m · d + offsets_m − Σ half_w · d²) · weights_m with d = x − centre.

    For tools that are fastest at products of matrices: one product has all distances. Around the centre of the inducing
    inputs that costs few digits.
    """

    centre: Float64[np.ndarray, " D"]
    products: Float64[np.ndarray, "M D"]
    offsets: Float64[np.ndarray, " M"]
    half_w: Float64[np.ndarray, " D"]
    weights: Float64[np.ndarray, "M Dy"]


def expand_basis(formula: RadialBasis) -> ExpandedBasis:
    """The radial basis of a layer, without its affine part."""
    centre, half_w = formula.zeta.mean(0), 0.5 * formula.w
    zeta = formula.zeta - centre
    return ExpandedBasis(centre, zeta * formula.w, -(zeta**2) @ half_w, half_w, formula.variance * formula.beta)


def write_step(
    tool: Tool, model: StepModel, state: Value, u: Value, std: Sequence[MemberParts] | None
) -> dict[str, Value]:
    """The state after the step and the outputs; with the parts of the model also their standard deviation."""
    inputs, members = tool.join(tool.select(state, np.arange(model.states, model.state_size)), u), []
    for member, own in zip(model.members, model.locate_members(), strict=True):
        recent, scaling = tool.select(inputs, model.locate_inputs(member)), member.scaling
        mean, width = (np.tile(each, member.order.input_lags) for each in (scaling.u_mean, scaling.u_std))
        u_bar = (recent - tool.constant(mean)) / tool.constant(width)
        members.append(_advance(tool, member, tool.select(state, np.arange(own.start, own.stop)), u_bar))
    kept = tool.select(inputs, np.arange(model.inputs, model.inputs * (model.past_inputs + 1)))
    y = _average(tool, [now.y for now in members], model.outputs)
    results = {"next_state": tool.join(*(each for now in members for each in now.windows), kept), "y": y}
    if std is not None:
        results["std"] = tool.sqrt(_find_variance(tool, model, std, members, y))
    return results


def _advance(tool: Tool, member: StepMember, joint: Value, u_bar: Value) -> Advanced:
    windows, regressors, new, below = [], [], u_bar, u_bar
    for layer, window in zip(member.hidden, member.windows, strict=True):
        regressors.append(tool.join(tool.select(joint, window), below))
        new = _evaluate(tool, layer, regressors[-1])
        below = tool.join(new, tool.select(joint, window[: -layer.outputs]))
        windows.append(below)
    if member.output is not None:
        regressors.append(below)
        new = _evaluate(tool, member.output, below)
    y = _scale(tool, new, member.scaling.y_std) + tool.constant(member.scaling.y_mean)
    return Advanced(windows, y, regressors, joint, u_bar)


def _scale(tool: Tool, vector: Value, factors: Float64[np.ndarray, " D"]) -> Value:
    # A product with a matrix: onnxruntime joins a matrix product and a multiplication by one number
    # (MatMulScaleFusion), and keeps that number in single precision.
    return tool.multiply(np.diag(factors), vector)


def _average(tool: Tool, values: Sequence[Value], size: int) -> Value:
    if len(values) == 1:
        return values[0]
    return _scale(tool, sum(values[1:], values[0]), np.full(size, 1.0 / len(values)))


def _evaluate(tool: Tool, formula: Formula, x: Value) -> Value:
    if isinstance(formula, Affine):
        return tool.multiply(formula.coefficients.T, x) + tool.constant(formula.offset)
    if isinstance(formula, RadialBasis):
        expanded = expand_basis(formula)
        basis = tool.multiply(expanded.weights.T, _evaluate_basis(tool, expanded, x))
        return basis if formula.affine is None else basis + _evaluate(tool, formula.affine, x)
    return _evaluate(tool, formula.readout, tool.tanh(_evaluate(tool, formula.hidden, x)))


def _evaluate_basis(tool: Tool, basis: ExpandedBasis, x: Value) -> Value:
    # Without weights. With expanded squares a step of ONNX takes a third of the time.
    away = x - tool.constant(basis.centre)
    squares = tool.multiply(basis.half_w[None], away * away)
    return tool.exp(tool.multiply(basis.products, away) + tool.constant(basis.offsets) - squares)


def _find_variance(
    tool: Tool, model: StepModel, parts: Sequence[MemberParts], members: Sequence[Advanced], mean: Value
) -> Value:
    variances, ones = [], tool.constant(np.ones(model.outputs))
    for part, member, now in zip(parts, model.members, members, strict=True):
        cov = None
        for layer, x in zip(list_gaussian_layers(part), now.regressors, strict=True):
            cov = _find_cov(tool, layer, x, cov)
        own = (cov * tool.constant(np.eye(model.outputs))) @ ones  # the diagonal
        away = now.y - mean
        variances.append(_scale(tool, own, (part.widths[0] * member.scaling.y_std) ** 2) + away * away)
        if part.known_range is not None and model.inputs:
            for inside in _hold_inside(tool, now.inputs, part.finite_range.inputs):
                held = _advance(tool, member, now.before, inside)
                doubt = _scale(tool, now.y - held.y, np.full(model.outputs, DOUBT))
                variances[-1] = variances[-1] + doubt * doubt
    return _average(tool, variances, model.outputs)  # law of total variance


def _hold_inside(tool: Tool, values: Value, known: ValueRange) -> tuple[Value, Value]:
    # Not below the lower ends; not above the upper ones.
    zero = tool.constant(np.zeros(len(known.low)))
    lowered = zero - tool.maximum(zero - values, tool.constant(-known.high))
    return tool.maximum(values, tool.constant(known.low)), lowered


def _find_cov(tool: Tool, layer: GaussianLayer, x: Value, below: Value | None) -> Value:
    # Covariance of the values of a layer, given that of the new values of the layer below.
    expanded, outputs = expand_basis(layer.formula), layer.formula.outputs
    basis = _evaluate_basis(tool, expanded, x)
    ones = np.ones((1, len(expanded.weights)))
    reduced = tool.join(*(tool.multiply(ones, basis * tool.multiply(each, basis)) for each in layer.reductions))
    variance, noise, zero = (
        tool.constant(np.full(outputs, each)) for each in (layer.formula.variance, layer.noise, 0.0)
    )
    own = tool.maximum(variance - reduced, zero) + noise  # where there is one reduction, it is that of all outputs
    cov = tool.scale_columns(tool.constant(np.eye(outputs)), own)
    if below is None:
        return cov
    gain = _find_gain(tool, layer, expanded, basis, x)
    return cov + gain @ below @ tool.transpose(gain)


def _find_gain(tool: Tool, layer: GaussianLayer, expanded: ExpandedBasis, basis: Value, x: Value) -> Value:
    # Derivatives of the outputs by the values of the layer below: Σ_m k_m weights_m (products_m − 2 half_w d).
    columns = np.arange(layer.first, layer.first + layer.below)
    weighted = tool.scale_columns(tool.constant(expanded.weights.T), basis)
    away = tool.select(x, columns) - tool.constant(expanded.centre[columns])
    slopes = away * tool.constant(2.0 * expanded.half_w[columns])
    total = weighted @ tool.constant(np.ones((len(expanded.weights), layer.below)))
    gain = weighted @ tool.constant(expanded.products[:, columns]) - tool.scale_columns(total, slopes)
    affine = layer.formula.affine
    return gain if affine is None else gain + tool.constant(affine.coefficients.T[:, columns])
