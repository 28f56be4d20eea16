"""Parts of an ONNX graph: nodes, constants, and the layers of a step; regressors in, values out, all z-scored."""

from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from revarb.errors import InputError
from revarb.models.export.expanded_basis import ExpandedBasis, expand_basis
from revarb.simulation.formulas import Affine, Formula, RadialBasis

if TYPE_CHECKING:
    import onnx

Value = str  # values of a graph go by their names


@dataclass(frozen=True)
class GraphParts:
    """Nodes and constants of a graph that is being built; every value gets a name of its own."""

    nodes: "list[onnx.NodeProto]" = field(default_factory=list)
    constants: "list[onnx.TensorProto]" = field(default_factory=list)

    def constant(self, values: Any) -> Value:
        """Add a constant."""
        onnx, name = import_onnx(), f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def apply(self, operator: str, *values: Value, name: Value | None = None, **attributes: Any) -> Value:
        """Add a node with one output."""
        name = f"value_{len(self.nodes)}" if name is None else name
        self.nodes.append(import_onnx().helper.make_node(operator, list(values), [name], **attributes))
        return name

    def select(self, vector: Value, positions: Any) -> Value:
        """Entries of a vector."""
        return self.apply("Gather", vector, self.constant(np.asarray(positions, dtype=np.int64)))

    def join(self, *vectors: Value, name: Value | None = None) -> Value:
        """One vector after the other."""
        return self.apply("Concat", *vectors, name=name, axis=0)


def import_onnx() -> ModuleType:
    """ONNX, which is optional."""
    try:
        import onnx
    except ImportError as error:
        raise InputError(f'an ONNX file needs {error.name}; pip install "revarb[onnx]"') from None
    return onnx


def evaluate(parts: GraphParts, formula: Formula, x: Value) -> Value:
    """Value of a layer."""
    if isinstance(formula, Affine):
        product = parts.apply("MatMul", x, parts.constant(formula.coefficients))
        return parts.apply("Add", product, parts.constant(formula.offset))
    if isinstance(formula, RadialBasis):
        expanded = expand_basis(formula)
        basis = parts.apply("MatMul", evaluate_basis(parts, expanded, x), parts.constant(expanded.weights))
        return basis if formula.affine is None else parts.apply("Add", basis, evaluate(parts, formula.affine, x))
    hidden = parts.apply("Tanh", evaluate(parts, formula.hidden, x))
    return evaluate(parts, formula.readout, hidden)


def evaluate_basis(parts: GraphParts, basis: ExpandedBasis, x: Value) -> Value:
    """Radial basis functions, without their weights; with expanded squares a step takes a third of the time."""
    away = parts.apply("Sub", x, parts.constant(basis.centre))
    squares = parts.apply("MatMul", parts.apply("Mul", away, away), parts.constant(-basis.half_w))
    products = parts.apply("MatMul", away, parts.constant(basis.products.T))
    return parts.apply("Exp", parts.apply("Sum", products, parts.constant(basis.offsets), squares))
