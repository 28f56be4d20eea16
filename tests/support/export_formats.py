"""Run an exported model in every format: raw inputs in; outputs, and the state vector after the last row, out."""

import shutil
from contextlib import contextmanager

import numpy as np
import pytest

from revarb.export.step_model import make_step_model
from support.c_programs import SANITISED, build, run_program
from support.numpy_step import step_vector


def run_numpy(model, folder, u, start=None):
    plan, rows = make_step_model(model.step_parts()), []
    state = model.step_state() if start is None else start
    for now in u:
        state, y = step_vector(plan, state, now)
        rows.append(y)
    return np.stack(rows), state


def run_casadi(model, folder, u, start=None):
    start = model.step_state() if start is None else start
    final_state, y = model.to_casadi(horizon=len(u))(start, u.T)
    return np.asarray(y).T, np.asarray(final_state)[:, 0]


def open_session(file):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1  # no message about the default of the state
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def run_onnx(model, folder, u, start=None):
    session = open_session(model.export(folder / "m.onnx")[0])
    given = {} if start is None else {"state": start}  # the default of the state is a cold start
    final_state, y = session.run(["final_state", "y"], {**given, "u": u})
    return y, final_state


def run_c(model, folder, u, start=None):
    program = build(model.export(folder / "model.c")[1], SANITISED)
    return run_program(program, u, len(model.output_names), start)


CAUSALITIES = ("input", "output", "local", "parameter")


@contextmanager
def fmu_instance(path, folder, start=None):
    """An FMU that is initialised, and the references of its inputs, outputs, states and start values."""
    import fmpy
    from fmpy.fmi2 import FMU2Slave

    description = fmpy.read_model_description(str(path))
    reals = [each for each in description.modelVariables if each.type == "Real"]
    places = [[each.valueReference for each in reals if each.causality == kind] for kind in CAUSALITIES]
    slave = FMU2Slave(
        guid=description.guid, unzipDirectory=fmpy.extract(str(path), str(folder / "unpacked")),
        modelIdentifier=description.coSimulation.modelIdentifier, instanceName="one",
    )  # fmt: skip
    slave.instantiate()
    slave.setupExperiment(startTime=0.0)
    if start is not None:
        slave.setReal(places[3], start.tolist())
        slave.setBoolean([0], [False])  # cold_start
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    try:
        yield slave, *places
    finally:
        slave.freeInstance()


def export_fmu(model, folder, **options):
    from fmpy.validation import validate_fmu

    [path] = model.export(folder / "tank.fmu", **options)
    assert validate_fmu(str(path)) == []
    return path


def run_fmu(model, folder, u, start=None, **options):
    path = export_fmu(model, folder, **options)
    with fmu_instance(path, folder, start) as (slave, inputs, outputs, states, _):
        rows = []
        for k, now in enumerate(u):
            slave.setReal(inputs, now.tolist())
            slave.doStep(k * model.dt, model.dt)
            rows.append(slave.getReal(outputs))
        state = slave.getReal(states)
        slave.terminate()
    return np.array(rows), np.array(state)


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
FORMATS = [
    pytest.param(run_numpy, id="numpy"),
    pytest.param(run_casadi, id="casadi"),
    pytest.param(run_onnx, id="onnx"),
    pytest.param(run_c, id="c", marks=needs_compiler),
    pytest.param(run_fmu, id="fmu", marks=needs_compiler),
]
