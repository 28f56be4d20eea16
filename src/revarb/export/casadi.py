"""The step of a trained model as a CasADi function, built from CasADi's own operations.

It is differentiable, and CasADi can generate code of it. Operations are on vectors (MX): with a hundred inducing inputs
the expanded form (SX) takes eight times as long, and its derivatives take longer still.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import casadi as ca

from revarb.errors import InputError, check_integer
from revarb.export.step_graph import Tool, write_step
from revarb.export.step_model import MemberParts, make_step_model

TOOL = Tool(
    constant=ca.DM,
    multiply=lambda matrix, vector: ca.DM(matrix) @ vector,
    select=lambda vector, positions: vector[positions.tolist(), 0],
    join=ca.vertcat,
    exp=ca.exp,
    tanh=ca.tanh,
    sqrt=ca.sqrt,
    maximum=ca.fmax,
    scale_columns=lambda matrix, vector: matrix @ ca.diag(vector),
    transpose=ca.transpose,
)


def make_casadi(parts: Sequence[MemberParts], horizon: int | None = None, with_std: bool = False) -> ca.Function:
    """The step, or with `horizon` the run of as many steps; see `Exportable.to_casadi`."""
    if with_std and horizon is not None:
        raise InputError("with_std is of one step from a known state; leave horizon out, or simulate by 'moments'")
    model = make_step_model(parts)
    state, u = ca.MX.sym("state", model.state_size), ca.MX.sym("u", model.inputs)
    results = write_step(TOOL, model, state, u, parts if with_std else None)
    step = ca.Function("step", [state, u], list(results.values()), ["state", "u"], list(results))
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
