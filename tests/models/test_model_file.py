"""Model files: saved models load, anything else is refused."""

import tracemalloc
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

import revarb
from fuzz import samples
from revarb.errors import InputError
from revarb.models.container import read_container, write_container
from support import small


@pytest.fixture
def saved(tmp_path):
    """Two records, two hidden layers."""
    return samples.model().save(tmp_path / "m.rgp")


def rewrite(path, change):
    """The same file with another header and other arrays, whose checksum is right, whatever is in it."""
    header, arrays = read_container(path)
    change(header, arrays)
    return write_container(path, header, arrays)


def test_all_arrays_come_back(saved):
    model, again = samples.model(), revarb.load(saved)
    for ours, theirs in zip(jax.tree.leaves(again.trained), jax.tree.leaves(model.trained), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert again.spec == model.spec
    assert (again.bound, again.status, again.history, again.seed) == (model.bound, model.status, model.history, 0)


def test_the_header_says_what_made_the_file(saved):
    header, _ = read_container(saved)
    assert header["schema"] == 2
    assert header["versions"]["revarb"] == revarb.__version__
    assert header["configuration"]["lags"] == 2
    assert set(header["standardiser"]) == {"u_mean", "u_std", "y_mean", "y_std"}


@pytest.mark.parametrize("keep", [0, 5, 8, 300, -1, -4000])
def test_a_cut_file_is_refused(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(InputError, match="is not a revarb model, or is cut short"):
        revarb.load(saved)


def test_other_files_are_refused(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("no model at all, just some words that are long enough to be read as a header")
    foreign = tmp_path / "other.safetensors"
    save_file({"weights": np.zeros(3)}, foreign)
    for path in (text, foreign):
        with pytest.raises(InputError, match="is not a revarb model"):
            revarb.load(path)
    with pytest.raises(InputError, match="cannot read the model file"):
        revarb.load(tmp_path / "missing.rgp")


def spoil(name, value):
    """A change of the first number of an array."""

    def change(header, arrays):
        arrays[name] = np.array(arrays[name])
        arrays[name].flat[0] = value

    return change


ZETA = "parameters.layers.0.zeta"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(schema=3), "has schema 3, but this revarb reads up to 2; upgrade"),
        (lambda h, a: h.update(schema="x"), "is not a revarb model"),
        (lambda h, a: h["standardiser"].update(u_std=[0.0]), "means and standard deviations must be finite"),
        (lambda h, a: h.update(output_names=[]), r"y has 1 column\(s\), so it needs .* as many names, received \[\]"),
        (lambda h, a: h.update(output_names=["\ud800"]), "a column of y must be named by a text"),
        (lambda h, a: h.update(lengths=[14, 2]), "a length must be a whole number of at least 3, received 2"),
        (lambda h, a: h["history"].append([1, 2, float("nan")]), "a bound of the history must be a finite number"),
        (lambda h, a: h["history"].append([1, 2]), "is damaged"),
        (lambda h, a: h["standardiser"].update(u_std=1.0), "u_std must be a list of numbers, received 1.0"),
        (lambda h, a: h["configuration"].update(hidden=10**12), "hidden must be a whole number from 1 to 1000"),
        (lambda h, a: h.update(dt=0), "dt must be a finite number above 0"),
        (lambda h, a: h.update(bound=float("nan")), "bound must be a finite number"),
        (lambda h, a: h.update(kind="Oracle"), "a model of kind 'Oracle'"),
        (lambda h, a: h["configuration"].update(colour="red"), "unknown key 'colour'"),
        (lambda h, a: h["configuration"].update(lags=4), r"array 'chain.*' has shape .* expected"),
        (lambda h, a: h.pop("lengths"), "is damaged"),
        (lambda h, a: h.update(status="fine"), "is damaged"),
        (spoil(ZETA, np.nan), "does not hold finite float64 numbers"),
        (lambda h, a: a.pop(ZETA), r"'parameters\.layers\.0\.zeta' is missing"),
        (spoil("chain.hidden.0.sigma2", -1.0), "a kernel or a noise that is not positive"),
        (spoil("chain.output.variance", 0.0), "a kernel or a noise that is not positive"),
        (spoil("chain.hidden.1.w", -1e-9), "a kernel or a noise that is not positive"),
        (spoil("final_states.1.cov", -1.0), "an invalid covariance"),
    ],
)
def test_a_signed_file_that_no_fit_can_have_written_is_refused(saved, change, message):
    with pytest.raises(InputError, match=message):
        revarb.load(rewrite(saved, change))


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (samples.ensemble, lambda h, a: h["members"].pop(), "names 1 members and has arrays of 2"),
        (samples.ensemble, lambda h, a: h["members"][1].update(kind="Oracle"), "kind 'Oracle'"),
        (
            samples.ensemble,
            lambda h, a: h["members"][1].update(seed=0),
            r"must differ in their seeds, received \[0, 0\]",
        ),
        (samples.ensemble, lambda h, a: h["members"][1].update(seed=float("inf")), "seed must be a whole number"),
        (samples.ensemble, lambda h, a: h.update(members=[]), "names 0 members"),
        (samples.ensemble, lambda h, a: h.update(members=7), "is damaged"),
        (samples.linear, lambda h, a: h.update(horizons=4), r"'horizon_std' has shape \(3, 2\), expected \(4, 2\)"),
        (samples.linear, lambda h, a: h.update(final_states=1), r"array 'final_(means|inputs)' has shape"),
        (samples.linear, lambda h, a: h.update(final_states=0), "is not expected"),
        (samples.linear, lambda h, a: h.update(horizons=10**12), "horizons must be a whole number from 0 to"),
        (samples.linear, lambda h, a: h.update(final_states="two"), "final_states must be a whole number"),
    ],
)
def test_so_is_an_ensemble_or_an_arx_model(tmp_path, make, change, message):
    with pytest.raises(InputError, match=message):
        revarb.load(rewrite(make().save(tmp_path / "m.rgp"), change))


@pytest.mark.parametrize(
    "change",
    [
        lambda h, a: h.update(inducing=10**8),
        lambda h, a: h.update(lengths=[10**12, 10**12]),
        lambda h, a: h["configuration"].update(recognition={"hidden": [10**5] * 3}),
    ],
)
def test_sizes_that_a_header_claims_take_no_memory(saved, change):
    rewrite(saved, change)
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            revarb.load(saved)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_names_in_a_file_are_no_paths(saved, tmp_path):
    outside = str(tmp_path.parent / "x")
    rewrite(saved, lambda h, a: h.update(input_names=["../x"], output_names=[outside]))
    assert revarb.load(saved).simulate(small.record(3).u).output_names == (outside,)
    rewrite(saved, lambda h, a: a.update({name: np.zeros(3) for name in ("../x", outside, "a/b", "")}))
    with pytest.raises(InputError, match="is not expected"):
        revarb.load(saved)
    assert not Path(outside).exists() and [path.name for path in tmp_path.iterdir()] == ["m.rgp"]


@pytest.mark.parametrize("where", [0.02, 0.2, 0.5, 0.9, 0.999])
def test_a_flipped_bit_anywhere_is_noticed(saved, where):
    content = bytearray(saved.read_bytes())
    content[int(where * len(content))] ^= 4
    saved.write_bytes(content)
    with pytest.raises(InputError, match=r"checksum differs|is not a revarb model"):
        revarb.load(saved)
