"""ONNX files, run by onnxruntime, against the model's own mean-only simulation."""

import json
import sys
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
import pytest

import revarb
from revarb.errors import InputError
from revarb.models.export.onnx_graph import OPSET, make_onnx
from revarb.models.export.step_model import make_step_model, run_cold
from support.export_models import RECIPE, SPECS, fit_mixed, fit_small, make_record, simulate_mean

WITH_STARTS = [name for name in SPECS if name not in ("GP-NARX", "MLP-NARX")]


def open_session(content):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1  # no word about the default of the state
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def make_step(model):
    with TemporaryDirectory() as folder:
        session = open_session(model.export(f"{folder}/m.onnx", step_only=True)[0].read_bytes())
    return lambda state, u: session.run(["next_state", "y"], {"state": state, "u": u})


def run(model, u, **start):
    return open_session(make_onnx(make_step_model(model))).run(["final_state", "y"], {"u": u, **start})


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (2, 2)])
def test_a_cold_run_of_steps_is_that_of_simulate(name, inputs, outputs):
    record, model = make_record(inputs, outputs), fit_small(name, inputs, outputs)
    found = run_cold(make_step_model(model), make_step(model), record.u)
    np.testing.assert_allclose(found, simulate_mean(model, record.u), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SPECS)
def test_the_run_starts_cold_by_default(name):
    """The rows after the first window of inputs, with these as past inputs, are those of a cold simulation."""
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    reach, step = model.order.reach, make_step(model)
    state, y = model.step_state(), None
    for now in record.u[:reach]:
        state, y = step(state, now)
    final_state, rows = run(model, record.u[:reach])
    np.testing.assert_allclose(rows[-1], y, rtol=1e-12)
    np.testing.assert_allclose(final_state, state, rtol=1e-12, atol=1e-14)
    start = model.step_state()
    start[-record.u[:reach].size :] = record.u[:reach].ravel()
    expected = simulate_mean(model, record.u)[reach:]
    np.testing.assert_allclose(run(model, record.u[reach:], state=start)[1], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", WITH_STARTS)
def test_a_run_after_a_measured_window_is_that_of_simulate(name):
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    window = revarb.Window(record.u[:30], record.y[:30])
    final_state, y = run(model, record.u[30:], state=model.step_state(window))
    expected = model.simulate(record.u[30:], model.methods[0], start=window).mean
    np.testing.assert_allclose(y, expected, rtol=1e-9, atol=1e-9)
    past = record.u[-model.order.reach :].ravel()
    np.testing.assert_array_equal(final_state[-len(past) :], past)


@pytest.mark.parametrize("start", ["cold", "continue"])
def test_an_ensemble_whose_members_look_back_differently_far(start):
    record, model = make_record(), fit_mixed()
    if start == "cold":
        found = run_cold(make_step_model(model), make_step(model), record.u)
        expected = simulate_mean(model, record.u)
    else:
        found = run(model, record.u, state=model.step_state(start))[1]
        expected = model.simulate(record.u, "mean", start=start).mean
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("order", [(1, 1, 1), (1, 1, 0)])
def test_windows_of_one_sample(order):
    record = make_record()
    model = revarb.RGP(*order, hidden=2, inducing=5, recipe=RECIPE, calibrate=False).fit(record)
    found = run_cold(make_step_model(model), make_step(model), record.u)
    np.testing.assert_allclose(found, simulate_mean(model, record.u), rtol=1e-9, atol=1e-9)


def test_a_system_without_inputs():
    y = np.sin(0.3 * np.arange(60.0))
    model = revarb.ARX(lags=2).fit(revarb.Series(None, y))
    window = revarb.Window(None, y[:30])
    found = run(model, np.empty((5, 0)), state=model.step_state(window))[1]
    np.testing.assert_allclose(found, model.simulate(steps=5, start=window).mean, rtol=1e-9)


def test_what_the_file_says():
    record = make_record(2, 2)
    record = revarb.Series(record.u, record.y, 0.25, ["Ventil °", 'a "b"'], ["int", "y 2"])
    model = revarb.ARX(lags=2, input_lags=2).fit(record)
    for kind in ("run", "step"):
        content = make_onnx(make_step_model(model), kind)
        file = onnx.load_model_from_string(content)
        onnx.checker.check_model(file, full_check=True)
        assert [(each.domain, each.version) for each in file.opset_import] == [("", OPSET)]
        assert file.producer_name == "revarb" and file.graph.name == kind
        said = {
            key: json.loads(text) for key, text in open_session(content).get_modelmeta().custom_metadata_map.items()
        }
        assert said["input_names"] == ["Ventil °", 'a "b"'] and said["output_names"] == ["int", "y 2"]
        assert said["dt"] == 0.25 and said["past_inputs"] == model.order.reach
        np.testing.assert_array_equal(said["cold_state"], model.step_state())


def test_the_same_model_gives_the_same_file():
    step = make_step_model(fit_small("two layers"))
    assert make_onnx(step) == make_onnx(step)


def test_refusals(monkeypatch):
    step = make_step_model(fit_small("ARX"))
    with pytest.raises(InputError, match="kind must be 'run' or 'step', received 'both'"):
        make_onnx(step, "both")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r'an ONNX file needs onnx; pip install "revarb\[onnx\]"'):
        make_onnx(step)
