"""What ONNX files have beyond the other formats: the step alone, and metadata."""

import json

import numpy as np
import onnx

import revarb
from revarb.export.onnx import OPSET
from support.export_formats import open_session
from support.export_models import fit_small, make_record, simulate_mean


def test_steps_are_the_run(tmp_path):
    record, model = make_record(2, 2), fit_small("linear part, dead time", 2, 2)
    session, state = open_session(model.export(tmp_path / "step.onnx", step_only=True)[0]), model.step_state()
    for expected, now in zip(simulate_mean(model, record.u[:10]), record.u, strict=False):
        state, y = session.run(["next_state", "y"], {"state": state, "u": now})
        np.testing.assert_allclose(y, expected, rtol=1e-9)


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
