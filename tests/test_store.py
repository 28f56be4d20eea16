import json

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import revarb
import small
from revarb import InputError
from revarb.files import write_whole


@pytest.fixture(scope="module")
def model():
    return small.spec().fit([small.record(0), small.record(1, samples=30)])


@pytest.fixture
def saved(model, tmp_path):
    return model.save(tmp_path / "m.rgp")


def metadata(path):
    size = int.from_bytes(path.read_bytes()[:8], "little")
    return json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"]


def rewritten(path, change):
    """The same file with another JSON header."""
    header = json.loads(metadata(path)["revarb"])
    change(header)
    save_file(load_file(path), path, metadata={"revarb": json.dumps(header)})
    return path


def test_a_loaded_model_is_the_same_model(model, saved):
    again = revarb.load(saved)
    for ours, theirs in zip(jax.tree.leaves(again.trained), jax.tree.leaves(model.trained), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert again.spec == model.spec
    assert (again.bound, again.status, again.history, again.seed) == (model.bound, model.status, model.history, 0)
    u = small.record(3).u
    for method in ("moments", "mean"):
        np.testing.assert_array_equal(again.simulate(u, method=method).mean, model.simulate(u, method=method).mean)


def test_a_system_without_inputs_can_be_saved(tmp_path):
    model = small.spec().fit(small.record(inputs=0))
    again = revarb.load(model.save(tmp_path / "free.rgp"))
    np.testing.assert_array_equal(again.simulate(steps=9).mean, model.simulate(steps=9).mean)


def test_the_header_says_what_made_the_file(saved):
    header = json.loads(metadata(saved)["revarb"])
    assert header["schema"] == 1
    assert header["versions"]["revarb"] == revarb.__version__
    assert header["configuration"]["lags"] == 2
    assert set(header["standardiser"]) == {"u_mean", "u_std", "y_mean", "y_std"}


@pytest.mark.parametrize("keep", [0, 5, 8, 300, -1, -4000])
def test_a_cut_file_is_refused(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(InputError, match="is not a revarb model, or is cut short"):
        revarb.load(saved)


def test_foreign_files_are_refused(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("no model at all, just some words that are long enough to be read as a header")
    foreign = tmp_path / "other.safetensors"
    save_file({"weights": np.zeros(3)}, foreign)
    for path in (text, foreign):
        with pytest.raises(InputError, match="is not a revarb model"):
            revarb.load(path)
    with pytest.raises(InputError, match="cannot read the model file"):
        revarb.load(tmp_path / "missing.rgp")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(schema=2), "has schema 2, but this revarb reads up to 1; upgrade"),
        (lambda h: h.update(schema="x"), "is not a revarb model"),
        (lambda h: h.update(kind="LSTM"), "a model of kind 'LSTM'"),
        (lambda h: h["configuration"].update(colour="red"), "unknown key 'colour'"),
        (lambda h: h["configuration"].update(lags=4), r"array 'chain.*' has shape .* expected"),
        (lambda h: h.update(inducing=10**9), "expected"),
        (lambda h: h.pop("lengths"), "is damaged"),
        (lambda h: h.update(status="fine"), "is damaged"),
        (lambda h: h["standardiser"].pop("u_std"), "is damaged"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(saved, change, message):
    with pytest.raises(InputError, match=message):
        revarb.load(rewritten(saved, change))


def test_damaged_arrays_are_refused(saved):
    meta, arrays = metadata(saved), load_file(saved)
    name = "parameters.layers.0.zeta"
    save_file({**arrays, name: np.full_like(arrays[name], np.nan)}, saved, metadata=meta)
    with pytest.raises(InputError, match="does not hold finite float64 numbers"):
        revarb.load(saved)
    save_file({key: value for key, value in arrays.items() if key != name}, saved, metadata=meta)
    with pytest.raises(InputError, match=r"'parameters\.layers\.0\.zeta' is missing"):
        revarb.load(saved)


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch, tmp_path):
    before = saved.read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(InputError, match="No space left on device"):
        write_whole(saved, b"half")
    assert saved.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m.rgp"]


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="does not exist; create it first"):
        write_whole(tmp_path / "no" / "m.rgp", b"")
    with pytest.raises(InputError, match="it is a folder"):
        write_whole(tmp_path, b"")
