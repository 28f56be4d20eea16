"""The mean-only run of a trained model as an ONNX graph in float64: a `Scan` whose body is the step, or the step alone.

The run has the inputs `u` [T, inputs] and `state`, whose default is the state vector of a cold start, and the outputs
`final_state` and `y` [T, outputs]. The step has `state` and `u` [inputs], and `next_state` and `y` [outputs]; it can
also have `std` [outputs], given the state exactly (one_step_std.py). Raw units in and out; the state vector is that of
`Fitted.step_state`.
"""

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from revarb.errors import InputError, describe
from revarb.models.export.one_step_std import StdMember
from revarb.models.export.onnx_parts import GraphParts, Value, evaluate, import_onnx
from revarb.models.export.onnx_std import add_variance
from revarb.models.export.step_model import StepMember, StepModel

if TYPE_CHECKING:
    import onnx

OPSET, IR_VERSION = 17, 8  # of 2022: old runtimes read them, and nothing newer is needed


class Advanced(NamedTuple):
    """A member after the step, z-scored: its windows, its outputs, and the regressors of all its layers."""

    windows: list[Value]
    y: Value
    regressors: list[Value]


def make_onnx(
    model: StepModel, kind: Literal["run", "step"] = "run", std_members: Sequence[StdMember] | None = None
) -> bytes:
    """The content of an ONNX file with the run, or with the step alone; `std_members` add its standard deviation."""
    if kind not in ("run", "step"):
        raise InputError(f"kind must be 'run' or 'step', received {describe(kind)}")
    onnx = import_onnx()
    graph = _make_step(model, std_members) if kind == "step" else _make_run(model)
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


def _list_properties(model: StepModel) -> dict[str, str]:
    columns = {"input_names": list(model.input_names), "output_names": list(model.output_names)}
    sizes = {"dt": model.dt, "past_inputs": model.past_inputs, "cold_state": model.make_cold_state().tolist()}
    return {name: json.dumps(value) for name, value in {**columns, **sizes}.items()}


def _make_run(model: StepModel) -> "onnx.GraphProto":
    onnx, body = import_onnx(), _make_step(model, None)
    scan = onnx.helper.make_node("Scan", ["state", "u"], ["final_state", "y"], body=body, num_scan_inputs=1)
    return onnx.helper.make_graph(
        [scan],
        "run",
        [_declare("u", "T", model.inputs), _declare("state", model.state_size)],
        [_declare("final_state", model.state_size), _declare("y", "T", model.outputs)],
        [onnx.numpy_helper.from_array(model.make_cold_state(), "state")],
    )


def _make_step(model: StepModel, std_members: Sequence[StdMember] | None) -> "onnx.GraphProto":
    parts = GraphParts()
    past = parts.select("state", np.arange(model.states, model.state_size))
    window, members = parts.join(past, "u"), []
    for member, own in zip(model.members, model.locate_members(), strict=True):
        recent = parts.select(window, model.locate_inputs(member))
        mean, std = (np.tile(each, member.order.input_lags) for each in (member.scaling.u_mean, member.scaling.u_std))
        u_bar = parts.apply("Div", parts.apply("Sub", recent, parts.constant(mean)), parts.constant(std))
        members.append(_advance(parts, member, parts.select("state", np.arange(own.start, own.stop)), u_bar))
    kept = parts.select(window, np.arange(model.inputs, model.inputs * (model.past_inputs + 1)))
    parts.join(*(each for now in members for each in now.windows), kept, name="next_state")
    shares = [_scale(parts, now.y, member, len(members)) for now, member in zip(members, model.members, strict=True)]
    parts.apply("Sum", *shares, name="y")
    names = ["y"] if std_members is None else ["y", _add_std(parts, model, std_members, members)]
    return import_onnx().helper.make_graph(
        parts.nodes,
        "step",
        [_declare("state", model.state_size), _declare("u", model.inputs)],
        [_declare("next_state", model.state_size), *(_declare(name, model.outputs) for name in names)],
        parts.constants,
    )


def _declare(name: Value, *sizes: int | str) -> "onnx.ValueInfoProto":
    onnx = import_onnx()
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, sizes)


def _scale(parts: GraphParts, y: Value, member: StepMember, members: int) -> Value:
    # Outputs in raw units, as a member's share of the mean. A product with a matrix: onnxruntime joins a matrix product
    # and a multiplication by one number (MatMulScaleFusion), and keeps that number in single precision.
    scaled = parts.apply("MatMul", y, parts.constant(np.diag(member.scaling.y_std / members)))
    return parts.apply("Add", scaled, parts.constant(member.scaling.y_mean / members))


def _advance(parts: GraphParts, member: StepMember, joint: Value, u_bar: Value) -> Advanced:
    windows, regressors, new, below = [], [], u_bar, u_bar
    for layer, window in zip(member.hidden, member.windows, strict=True):
        regressors.append(parts.join(parts.select(joint, window), below))
        new = evaluate(parts, layer, regressors[-1])
        below = parts.join(new, parts.select(joint, window[: -layer.outputs]))
        windows.append(below)
    if member.output is None:
        return Advanced(windows, new, regressors)
    return Advanced(windows, evaluate(parts, member.output, below), [*regressors, below])


def _add_std(
    parts: GraphParts, model: StepModel, std_members: Sequence[StdMember], members: Sequence[Advanced]
) -> Value:
    # Law of total variance over the members, whose shares have the factor 1 / N.
    shares, count = [], len(members)
    for part, now, member in zip(std_members, members, model.members, strict=True):
        factors = np.diag((part.width * member.scaling.y_std) ** 2 / count)
        shares.append(parts.apply("MatMul", add_variance(parts, part, now.regressors), parts.constant(factors)))
        away = parts.apply("Sub", _scale(parts, now.y, member, 1), "y")
        squares = parts.apply("Mul", away, away)
        shares.append(parts.apply("MatMul", squares, parts.constant(np.eye(model.outputs) / count)))
    return parts.apply("Sqrt", parts.apply("Sum", *shares), name="std")
