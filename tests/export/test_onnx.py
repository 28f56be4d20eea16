"""What ONNX files have beyond the other formats: the default start of the run, and metadata."""

import json

import numpy as np
import onnx
import pytest

import revarb
from revarb.export.onnx import OPSET
from support.export_formats import open_session, run_onnx
from support.export_models import fit_small, make_record, simulate_mean


@pytest.mark.parametrize("name", ["linear part, dead time", "feedthrough", "MLP-NARX"])
def test_the_run_starts_cold_by_default(name, tmp_path):
    """The rows after the first window of inputs, with these as past inputs, are those of a cold simulation."""
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    reach, start = model.order.reach, model.step_state()
    session = open_session(model.export(tmp_path / "run.onnx")[0])
    final_state, rows = session.run(["final_state", "y"], {"u": record.u[:reach]})
    expected, state = run_onnx(model, tmp_path, record.u[:reach])  # it restarts after these rows
    np.testing.assert_allclose(rows, expected, rtol=1e-12)
    np.testing.assert_allclose(final_state, state, rtol=1e-12, atol=1e-14)
    start[-record.u[:reach].size :] = record.u[:reach].ravel()
    y = session.run(["y"], {"u": record.u[reach:], "state": start})[0]
    np.testing.assert_allclose(y, simulate_mean(model, record.u)[reach:], rtol=1e-9, atol=1e-9)


def test_what_the_file_says(tmp_path):
    record = make_record(2, 2)
    record = revarb.Series(record.u, record.y, 0.25, ["Ventil °", 'a "b"'], ["int", "y 2"])
    model = revarb.ARX(lags=2, input_lags=2).fit(record)
    for kind in ("run", "step"):
        [path] = model.export(tmp_path / "m.onnx", step_only=kind == "step")
        file = onnx.load_model(path)
        onnx.checker.check_model(file, full_check=True)
        assert [(each.domain, each.version) for each in file.opset_import] == [("", OPSET)]
        assert file.producer_name == "revarb" and file.graph.name == kind
        said = {key: json.loads(text) for key, text in open_session(path).get_modelmeta().custom_metadata_map.items()}
        assert said["input_names"] == ["Ventil °", 'a "b"'] and said["output_names"] == ["int", "y 2"]
        assert said["dt"] == 0.25 and said["past_inputs"] == model.order.reach
        np.testing.assert_array_equal(said["cold_state"], model.step_state())
