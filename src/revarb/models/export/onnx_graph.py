"""The mean-only run of a trained model as an ONNX graph in float64: a `Scan` whose body is the step, or the step alone.

The run has the inputs `u` [T, inputs] and `state`, whose default is the state vector of a cold start, and the outputs
`final_state` and `y` [T, outputs]. The step has `state` and `u` [inputs], and `next_state` and `y` [outputs]. Raw units
in and out; the state vector is that of `Fitted.step_state`.
"""

import json
from dataclasses import dataclass, field
from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from revarb.errors import InputError, describe
from revarb.models.export.expanded_basis import ExpandedBasis, expand_basis
from revarb.models.export.step_model import StepMember, StepModel
from revarb.simulation.formulas import Affine, Formula, RadialBasis

if TYPE_CHECKING:
    import onnx

OPSET, IR_VERSION = 17, 8  # of 2022: old runtimes read them, and nothing newer is needed

Value = str  # values of a graph go by their names


@dataclass(frozen=True)
class GraphParts:
    """Nodes and constants of a graph that is being built; every value gets a name of its own."""

    nodes: "list[onnx.NodeProto]" = field(default_factory=list)
    constants: "list[onnx.TensorProto]" = field(default_factory=list)

    def constant(self, values: Any) -> Value:
        """Add a constant."""
        onnx, name = _import_onnx(), f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def apply(self, operator: str, *values: Value, name: Value | None = None, **attributes: Any) -> Value:
        """Add a node with one output."""
        name = f"value_{len(self.nodes)}" if name is None else name
        self.nodes.append(_import_onnx().helper.make_node(operator, list(values), [name], **attributes))
        return name

    def select(self, vector: Value, positions: Any) -> Value:
        """Entries of a vector."""
        return self.apply("Gather", vector, self.constant(np.asarray(positions, dtype=np.int64)))

    def join(self, *vectors: Value, name: Value | None = None) -> Value:
        """One vector after the other."""
        return self.apply("Concat", *vectors, name=name, axis=0)


def make_onnx(model: StepModel, kind: Literal["run", "step"] = "run") -> bytes:
    """The content of an ONNX file with the run, or with the step alone."""
    if kind not in ("run", "step"):
        raise InputError(f"kind must be 'run' or 'step', received {describe(kind)}")
    onnx = _import_onnx()
    graph = _make_step(model) if kind == "step" else _make_run(model)
    file = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="revarb",
        producer_version=version("revarb"),
        doc_string=__doc__,
    )
    onnx.helper.set_model_props(file, _list_properties(model))
    onnx.checker.check_model(file, full_check=True)
    return file.SerializeToString()


def _import_onnx() -> ModuleType:
    try:
        import onnx
    except ImportError as error:
        raise InputError(f'an ONNX file needs {error.name}; pip install "revarb[onnx]"') from None
    return onnx


def _list_properties(model: StepModel) -> dict[str, str]:
    columns = {"input_names": list(model.input_names), "output_names": list(model.output_names)}
    sizes = {"dt": model.dt, "past_inputs": model.past_inputs, "cold_state": model.make_cold_state().tolist()}
    return {name: json.dumps(value) for name, value in {**columns, **sizes}.items()}


def _make_run(model: StepModel) -> "onnx.GraphProto":
    onnx, body = _import_onnx(), _make_step(model)
    scan = onnx.helper.make_node("Scan", ["state", "u"], ["final_state", "y"], body=body, num_scan_inputs=1)
    return onnx.helper.make_graph(
        [scan],
        "run",
        [_declare("u", "T", model.inputs), _declare("state", model.state_size)],
        [_declare("final_state", model.state_size), _declare("y", "T", model.outputs)],
        [onnx.numpy_helper.from_array(model.make_cold_state(), "state")],
    )


def _make_step(model: StepModel) -> "onnx.GraphProto":
    parts = GraphParts()
    past = parts.select("state", np.arange(model.states, model.state_size))
    window, states, outputs = parts.join(past, "u"), [], []
    for member, own in zip(model.members, model.locate_members(), strict=True):
        recent = parts.select(window, model.locate_inputs(member))
        mean, std = (np.tile(each, member.order.input_lags) for each in (member.scaling.u_mean, member.scaling.u_std))
        u_bar = parts.apply("Div", parts.apply("Sub", recent, parts.constant(mean)), parts.constant(std))
        windows, y = _advance(parts, member, parts.select("state", np.arange(own.start, own.stop)), u_bar)
        states += windows
        outputs.append(_add_scaled(parts, y, member, len(model.members)))
    kept = parts.select(window, np.arange(model.inputs, model.inputs * (model.past_inputs + 1)))
    parts.join(*states, kept, name="next_state")
    parts.apply("Sum", *outputs, name="y")
    return _import_onnx().helper.make_graph(
        parts.nodes,
        "step",
        [_declare("state", model.state_size), _declare("u", model.inputs)],
        [_declare("next_state", model.state_size), _declare("y", model.outputs)],
        parts.constants,
    )


def _declare(name: Value, *sizes: int | str) -> "onnx.ValueInfoProto":
    onnx = _import_onnx()
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, sizes)


def _add_scaled(parts: GraphParts, y: Value, member: StepMember, members: int) -> Value:
    # Outputs in raw units, as a member's share of the mean. A product with a matrix: onnxruntime joins a matrix product
    # and a multiplication by one number (MatMulScaleFusion), and keeps that number in single precision.
    scaled = parts.apply("MatMul", y, parts.constant(np.diag(member.scaling.y_std / members)))
    return parts.apply("Add", scaled, parts.constant(member.scaling.y_mean / members))


def _advance(parts: GraphParts, member: StepMember, joint: Value, u_bar: Value) -> tuple[list[Value], Value]:
    # The windows after the step, and the outputs, all z-scored.
    windows, new, below = [], u_bar, u_bar
    for layer, window in zip(member.hidden, member.windows, strict=True):
        new = _evaluate(parts, layer, parts.join(parts.select(joint, window), below))
        below = parts.join(new, parts.select(joint, window[: -layer.outputs]))
        windows.append(below)
    return windows, new if member.output is None else _evaluate(parts, member.output, below)


def _evaluate(parts: GraphParts, formula: Formula, x: Value) -> Value:
    if isinstance(formula, Affine):
        product = parts.apply("MatMul", x, parts.constant(formula.coefficients))
        return parts.apply("Add", product, parts.constant(formula.offset))
    if isinstance(formula, RadialBasis):
        basis = _evaluate_basis(parts, expand_basis(formula), x)
        return basis if formula.affine is None else parts.apply("Add", basis, _evaluate(parts, formula.affine, x))
    hidden = parts.apply("Tanh", _evaluate(parts, formula.hidden, x))
    return _evaluate(parts, formula.readout, hidden)


def _evaluate_basis(parts: GraphParts, basis: ExpandedBasis, x: Value) -> Value:
    # With expanded squares a step takes a third of the time.
    away = parts.apply("Sub", x, parts.constant(basis.centre))
    squares = parts.apply("MatMul", parts.apply("Mul", away, away), parts.constant(-basis.half_w))
    products = parts.apply("MatMul", away, parts.constant(basis.products.T))
    exponents = parts.apply("Sum", products, parts.constant(basis.offsets), squares)
    return parts.apply("MatMul", parts.apply("Exp", exponents), parts.constant(basis.weights))
