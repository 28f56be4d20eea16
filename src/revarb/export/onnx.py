"""The mean-only run of a trained model as an ONNX graph in float64: a `Scan` whose body is the step, or the step alone.

The run has the inputs `u` [T, inputs] and `state`, whose default is the state vector of a cold start, and the outputs
`final_state` and `y` [T, outputs]. The step has `state` and `u` [inputs], and `next_state` and `y` [outputs]; it can
also have `std` [outputs], given the state exactly (see casadi.py). Raw units in and out; the state vector is that of
`Exportable.step_state`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import onnx

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

OPSET, IR_VERSION = 17, 8  # of 2022: old runtimes read them, and nothing newer is needed
Value = str  # values of a graph go by their names


@dataclass(frozen=True)
class GraphParts:
    """Nodes and constants of a graph that is being built; every value gets a name of its own."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, values: Any) -> Value:
        """Add a constant."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def apply(self, operator: str, *values: Any, name: Value | None = None, **attributes: Any) -> Value:
        """Add a node with one output; arrays among its values become constants."""
        names = [each if isinstance(each, str) else self.constant(each) for each in values]
        name = f"value_{len(self.nodes)}" if name is None else name
        self.nodes.append(onnx.helper.make_node(operator, names, [name], **attributes))
        return name

    def select(self, vector: Value, positions: Any) -> Value:
        """Entries of a vector."""
        return self.apply("Gather", vector, np.asarray(positions, dtype=np.int64))

    def join(self, *vectors: Value, name: Value | None = None) -> Value:
        """One vector after the other."""
        return self.apply("Concat", *vectors, name=name, axis=0)


class Advanced(NamedTuple):
    """A member after the step, z-scored: its windows, its outputs, and the regressors of all its layers."""

    windows: list[Value]
    y: Value
    regressors: list[Value]


def make_onnx(parts: Sequence[MemberParts], step_only: bool, with_std: bool) -> bytes:
    """The content of an ONNX file with the run, or with the step alone; `with_std` adds its standard deviation."""
    model = make_step_model(parts)
    file = onnx.helper.make_model(
        _make_step(model, parts if with_std else None) if step_only or with_std else _make_run(model),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="revarb",
        producer_version=version("revarb"),
        doc_string=__doc__,
    )
    onnx.helper.set_model_props(file, _list_properties(model))
    onnx.checker.check_model(file, full_check=True)
    return file.SerializeToString()


def _list_properties(model: StepModel) -> dict[str, str]:
    columns = {"input_names": list(model.input_names), "output_names": list(model.output_names)}
    sizes = {"dt": model.dt, "past_inputs": model.past_inputs, "cold_state": model.make_cold_state().tolist()}
    return {name: json.dumps(value) for name, value in {**columns, **sizes}.items()}


def _make_run(model: StepModel) -> onnx.GraphProto:
    body = _make_step(model, None)
    scan = onnx.helper.make_node("Scan", ["state", "u"], ["final_state", "y"], body=body, num_scan_inputs=1)
    return onnx.helper.make_graph(
        [scan],
        "run",
        [_declare("u", "T", model.inputs), _declare("state", model.state_size)],
        [_declare("final_state", model.state_size), _declare("y", "T", model.outputs)],
        [onnx.numpy_helper.from_array(model.make_cold_state(), "state")],
    )


def _make_step(model: StepModel, with_std: Sequence[MemberParts] | None) -> onnx.GraphProto:
    graph = GraphParts()
    past = graph.select("state", np.arange(model.states, model.state_size))
    window, members = graph.join(past, "u"), []
    for member, own in zip(model.members, model.locate_members(), strict=True):
        recent = graph.select(window, model.locate_inputs(member))
        mean, std = (np.tile(each, member.order.input_lags) for each in (member.scaling.u_mean, member.scaling.u_std))
        u_bar = graph.apply("Div", graph.apply("Sub", recent, mean), std)
        members.append(_advance(graph, member, graph.select("state", np.arange(own.start, own.stop)), u_bar))
    kept = graph.select(window, np.arange(model.inputs, model.inputs * (model.past_inputs + 1)))
    graph.join(*(each for now in members for each in now.windows), kept, name="next_state")
    shares = [_scale(graph, now.y, member, len(members)) for now, member in zip(members, model.members, strict=True)]
    graph.apply("Sum", *shares, name="y")
    names = ["y"] if with_std is None else ["y", _add_std(graph, model, with_std, members)]
    return onnx.helper.make_graph(
        graph.nodes,
        "step",
        [_declare("state", model.state_size), _declare("u", model.inputs)],
        [_declare("next_state", model.state_size), *(_declare(name, model.outputs) for name in names)],
        graph.constants,
    )


def _declare(name: Value, *sizes: int | str) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, sizes)


def _scale(graph: GraphParts, y: Value, member: StepMember, members: int) -> Value:
    # Outputs in raw units, as a member's share of the mean. A product with a matrix: onnxruntime joins a matrix product
    # and a multiplication by one number (MatMulScaleFusion), and keeps that number in single precision.
    scaled = graph.apply("MatMul", y, np.diag(member.scaling.y_std / members))
    return graph.apply("Add", scaled, member.scaling.y_mean / members)


def _advance(graph: GraphParts, member: StepMember, joint: Value, u_bar: Value) -> Advanced:
    windows, regressors, new, below = [], [], u_bar, u_bar
    for layer, window in zip(member.hidden, member.windows, strict=True):
        regressors.append(graph.join(graph.select(joint, window), below))
        new = _evaluate(graph, layer, regressors[-1])
        below = graph.join(new, graph.select(joint, window[: -layer.outputs]))
        windows.append(below)
    if member.output is None:
        return Advanced(windows, new, regressors)
    return Advanced(windows, _evaluate(graph, member.output, below), [*regressors, below])


def _evaluate(graph: GraphParts, formula: Formula, x: Value) -> Value:
    if isinstance(formula, Affine):
        return graph.apply("Add", graph.apply("MatMul", x, formula.coefficients), formula.offset)
    if isinstance(formula, RadialBasis):
        expanded = expand_basis(formula)
        basis = graph.apply("MatMul", _evaluate_basis(graph, expanded, x), expanded.weights)
        return basis if formula.affine is None else graph.apply("Add", basis, _evaluate(graph, formula.affine, x))
    return _evaluate(graph, formula.readout, graph.apply("Tanh", _evaluate(graph, formula.hidden, x)))


def _evaluate_basis(graph: GraphParts, basis: ExpandedBasis, x: Value) -> Value:
    # Without weights. With expanded squares a step takes a third of the time.
    away = graph.apply("Sub", x, basis.centre)
    squares = graph.apply("MatMul", graph.apply("Mul", away, away), -basis.half_w)
    products = graph.apply("MatMul", away, basis.products.T)
    return graph.apply("Exp", graph.apply("Sum", products, basis.offsets, squares))


def _add_std(graph: GraphParts, model: StepModel, parts: Sequence[MemberParts], members: Sequence[Advanced]) -> Value:
    # Law of total variance over the members, whose shares have the factor 1 / N. Factors are matrices, as in _scale.
    shares, count = [], len(members)
    for part, now, member in zip(parts, members, model.members, strict=True):
        factors = np.diag((part.factors[0] * member.scaling.y_std) ** 2 / count)
        variance = _add_variance(graph, list_gaussian_layers(part), now.regressors)
        shares.append(graph.apply("MatMul", variance, factors))
        away = graph.apply("Sub", _scale(graph, now.y, member, 1), "y")
        shares.append(graph.apply("MatMul", graph.apply("Mul", away, away), np.eye(model.outputs) / count))
    return graph.apply("Sqrt", graph.apply("Sum", *shares), name="std")


def _add_variance(graph: GraphParts, layers: Sequence[GaussianLayer], regressors: Sequence[Value]) -> Value:
    # Variances of the measured outputs, z-scored, from the regressors of all layers.
    cov = None
    for layer, x in zip(layers, regressors, strict=True):
        expanded = expand_basis(layer.formula)
        basis = _evaluate_basis(graph, expanded, x)
        own = graph.apply("Mul", np.eye(layer.formula.outputs), _find_variance(graph, layer, basis))
        if cov is not None:
            gain = _find_gain(graph, layer, expanded, basis, x)
            passed = graph.apply("MatMul", graph.apply("MatMul", gain, cov), graph.apply("Transpose", gain))
            own = graph.apply("Add", own, passed)
        cov = own
    outputs = layers[-1].formula.outputs
    return graph.apply("MatMul", graph.apply("Mul", cov, np.eye(outputs)), np.ones(outputs))


def _find_variance(graph: GraphParts, layer: GaussianLayer, basis: Value) -> Value:
    outputs = layer.formula.outputs
    reduced = graph.apply("MatMul", graph.apply("MatMul", basis, layer.reductions), basis)  # one, or one per output
    own = graph.apply("Sub", np.full(outputs, layer.formula.variance), reduced)
    return graph.apply("Add", graph.apply("Max", own, np.zeros(outputs)), np.full(outputs, layer.noise))


def _find_gain(graph: GraphParts, layer: GaussianLayer, basis: ExpandedBasis, values: Value, x: Value) -> Value:
    # Derivatives of the outputs by the values of the layer below: Σ_m k_m weights_m (products_m − 2 half_w d).
    columns, size = slice(layer.first, layer.first + layer.below), layer.formula.regressors
    weighted = graph.apply("Mul", basis.weights.T, values)
    total = graph.apply("MatMul", weighted, np.ones((len(basis.weights), 1)))
    away = graph.apply("Sub", x, basis.centre)
    slopes = graph.apply("MatMul", away, 2.0 * (basis.half_w * np.eye(size))[:, columns])
    products = graph.apply("MatMul", weighted, basis.products[:, columns])
    gain = graph.apply("Sub", products, graph.apply("Mul", total, slopes))
    affine = layer.formula.affine
    return gain if affine is None else graph.apply("Add", gain, affine.coefficients.T[:, columns])
