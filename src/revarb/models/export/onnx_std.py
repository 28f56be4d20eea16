"""The variance of one step of a member in the operations of ONNX, given the state before it exactly (one_step_std.py).

Factors are matrices, as onnx_graph.py says why.
"""

from collections.abc import Sequence

import numpy as np

from revarb.models.export.expanded_basis import ExpandedBasis, expand_basis
from revarb.models.export.one_step_std import StdLayer, StdMember
from revarb.models.export.onnx_parts import GraphParts, Value, evaluate_basis


def add_variance(parts: GraphParts, member: StdMember, regressors: Sequence[Value]) -> Value:
    """Variances of the measured outputs, z-scored, from the regressors of all layers."""
    cov = None
    for layer, x in zip(member.layers, regressors, strict=True):
        expanded = expand_basis(layer.formula)
        basis = evaluate_basis(parts, expanded, x)
        own = _make_diagonal(parts, _find_variance(parts, layer, basis), layer.formula.outputs)
        cov = own if cov is None else _add_below(parts, own, cov, _find_gain(parts, layer, expanded, basis, x))
    assert cov is not None  # there is a layer
    outputs = member.layers[-1].formula.outputs
    return parts.apply(
        "MatMul", parts.apply("Mul", cov, parts.constant(np.eye(outputs))), parts.constant(np.ones(outputs))
    )


def _find_variance(parts: GraphParts, layer: StdLayer, basis: Value) -> Value:
    half = parts.apply("MatMul", basis, parts.constant(layer.reductions))  # a row per output
    reduced = parts.apply("MatMul", half, basis)
    own = parts.apply("Sub", parts.constant(np.full(layer.formula.outputs, layer.formula.variance)), reduced)
    floored = parts.apply("Max", own, parts.constant(np.zeros(layer.formula.outputs)))
    return parts.apply("Add", floored, parts.constant(np.full(layer.formula.outputs, layer.noise)))


def _make_diagonal(parts: GraphParts, values: Value, size: int) -> Value:
    return parts.apply("Mul", parts.constant(np.eye(size)), values)


def _add_below(parts: GraphParts, own: Value, cov: Value, gain: Value) -> Value:
    passed = parts.apply("MatMul", parts.apply("MatMul", gain, cov), parts.apply("Transpose", gain))
    return parts.apply("Add", own, passed)


def _find_gain(parts: GraphParts, layer: StdLayer, basis: ExpandedBasis, values: Value, x: Value) -> Value:
    # Derivatives of the outputs by the values of the layer below: Σ_m k_m weights_m (products_m − 2 half_w d).
    columns, size = slice(layer.first, layer.first + layer.below), layer.formula.regressors
    weighted = parts.apply("Mul", parts.constant(basis.weights.T), values)
    total = parts.apply("MatMul", weighted, parts.constant(np.ones((len(basis.weights), 1))))
    away = parts.apply("Sub", x, parts.constant(basis.centre))
    slopes = parts.apply("MatMul", away, parts.constant(2.0 * (basis.half_w * np.eye(size))[:, columns]))
    products = parts.apply("MatMul", weighted, parts.constant(basis.products[:, columns]))
    gain = parts.apply("Sub", products, parts.apply("Mul", total, slopes))
    affine = layer.formula.affine
    return gain if affine is None else parts.apply("Add", gain, parts.constant(affine.coefficients.T[:, columns]))
