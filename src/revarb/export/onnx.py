"""The mean-only run of a trained model as an ONNX graph in float64: a `Scan` whose body is the step, or the step alone.

The run has the inputs `u` [T, inputs] and `state`, whose default is the state vector of a cold start, and the outputs
`final_state` and `y` [T, outputs]. The step has `state` and `u` [inputs], and `next_state` and `y` [outputs]; it can
also have `std` [outputs], given the state exactly (see step_graph.py). Raw units in and out; the state vector is that
of `Exportable.step_state`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import onnx

from revarb.export.step_graph import Tool, write_step
from revarb.export.step_model import MemberParts, StepModel, make_step_model

OPSET, IR_VERSION = 17, 8  # of 2022: old runtimes read them, and nothing newer is needed


@dataclass(frozen=True)
class GraphParts:
    """Nodes and constants of a graph that is being built; every value gets a name of its own."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, values: Any) -> "Value":
        """Add a constant."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(values), name))
        return Value(self, name)

    def apply(self, operator: str, *values: "Value", name: str | None = None, **attributes: Any) -> "Value":
        """Add a node with one output."""
        name = f"value_{len(self.nodes)}" if name is None else name
        self.nodes.append(onnx.helper.make_node(operator, [each.name for each in values], [name], **attributes))
        return Value(self, name)

    def make_tool(self) -> Tool:
        """The operations that add nodes."""
        return Tool(
            constant=self.constant,
            # The vector first: onnxruntime takes twice as long for a matrix and a column.
            multiply=lambda matrix, vector: self.apply("MatMul", vector, self.constant(matrix.T)),
            select=lambda vector, positions: self.apply("Gather", vector, self.constant(positions.astype(np.int64))),
            join=partial(self.apply, "Concat", axis=0),
            exp=partial(self.apply, "Exp"),
            tanh=partial(self.apply, "Tanh"),
            sqrt=partial(self.apply, "Sqrt"),
            maximum=partial(self.apply, "Max"),
            scale_columns=partial(self.apply, "Mul"),
            transpose=partial(self.apply, "Transpose"),
        )


@dataclass(frozen=True)
class Value:
    """A value of a graph, which goes by its name; vectors have rank 1."""

    graph: GraphParts
    name: str

    def __add__(self, other: "Value") -> "Value":
        return self.graph.apply("Add", self, other)

    def __sub__(self, other: "Value") -> "Value":
        return self.graph.apply("Sub", self, other)

    def __mul__(self, other: "Value") -> "Value":
        return self.graph.apply("Mul", self, other)

    def __truediv__(self, other: "Value") -> "Value":
        return self.graph.apply("Div", self, other)

    def __matmul__(self, other: "Value") -> "Value":
        return self.graph.apply("MatMul", self, other)


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
    results = write_step(graph.make_tool(), model, Value(graph, "state"), Value(graph, "u"), with_std)
    for name, value in results.items():
        graph.apply("Identity", value, name=name)
    sizes = {"next_state": model.state_size, "y": model.outputs, "std": model.outputs}
    return onnx.helper.make_graph(
        graph.nodes,
        "step",
        [_declare("state", model.state_size), _declare("u", model.inputs)],
        [_declare(name, sizes[name]) for name in results],
        graph.constants,
    )


def _declare(name: str, *sizes: int | str) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, sizes)
