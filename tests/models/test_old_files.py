"""Model files that versions 0.1 and 0.2 wrote still load, and simulate what they simulated then from the same state.

Their cold runs have another start, and are the same once that is forgotten.

data/v0_1 and data/v0_2 have small files of every kind, and in expected.json what that version simulated with them. The
programs that wrote them run with that version only and are in the history: `git log --stat -- tests/models/data` names
make_v0_1.py and make_v0_2.py. Of 0.1 the tests keep `u`, and of every path `mean`, `band_std` (now: `std`) and `lower`.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import revarb
from revarb.models.fitted_arx import FittedARX
from revarb.simulation.chain import StartState

FOLDERS = {version: Path(__file__).parent / "data" / version for version in ("v0_1", "v0_2")}
EXPECTED = {version: json.loads((folder / "expected.json").read_text()) for version, folder in FOLDERS.items()}
PATHS = [
    pytest.param(version, name, path, id=f"{version}-{name}-{path['method']}-{path['start']}")
    for version, entries in EXPECTED.items()
    for name, entry in entries.items()
    for path in entry["paths"]
]
SAMPLED = [each for each in PATHS if each.values[2]["method"] == "samples"]
DRAWN = 20  # samples that version 0.1 drew, the same number for every path


@cache
def load(version, name):
    return revarb.load(FOLDERS[version] / f"{name}.rgp")


def simulate(model, version, name, path, **options):
    u = EXPECTED[version][name]["u"]
    options |= {} if path["start"] is None else {"start": path["start"]}
    options |= {"steps": len(path["mean"])} if u is None else {}
    return model.simulate(u, path["method"], **options)


def close(got, expected, tolerance=1e-8):
    np.testing.assert_allclose(got, np.reshape(expected, np.shape(got)), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("version", FOLDERS)
def test_every_file_is_tested(version):
    assert {path.stem for path in FOLDERS[version].glob("*.rgp")} == set(EXPECTED[version])


WARM = [each for each in PATHS if each.values[2]["start"] == "continue" and each not in SAMPLED]
COLD = [each for each in PATHS if each not in WARM and each not in SAMPLED]


@pytest.fixture
def widths_in_steps(monkeypatch):
    """The factors as they were: each for all steps of its band."""

    def find_factors(self, steps, unsettled=0.0):
        return np.array(self.factors)[np.searchsorted(self.edges, steps, side="left")]

    monkeypatch.setattr(revarb.Calibration, "width_factors", find_factors)


def check(path, expected, rows=slice(None)):
    close(path.mean, np.array(expected["mean"])[rows])
    if "band_std" not in expected:
        return
    # Variances are differences of larger terms: another processor's rounding changed their roots by up to 4e-8.
    std, lower = (np.reshape(np.array(expected[key])[rows], path.mean.shape) for key in ("band_std", "lower"))
    close(path.std, std, 1e-6)
    close(path.interval(0.95)[0], lower, 1e-6)
    close(path.interval(0.95)[1], 2.0 * path.mean - lower, 1e-6)


def without_bands(version, name, expected):
    """Version 0.1 mixed bands in another way."""
    return {"mean": expected["mean"]} if (version, name) == ("v0_1", "ensemble") else expected


@pytest.mark.parametrize(("version", "name", "expected"), WARM)
@pytest.mark.usefixtures("widths_in_steps", "same_width_beyond")
def test_a_simulation_from_a_known_state_is_the_same(version, name, expected):
    path = simulate(load(version, name), version, name, expected)
    check(path, without_bands(version, name, expected))


def start_as_before(model, u):
    """Zero mean and unit variance where the window of inputs is full, a long time after the last measured output."""
    size = len(model.resolve_start("cold").state.mean)
    cov = np.eye(size) if isinstance(model, revarb.FittedRGP) else np.zeros((size, size))
    return StartState(np.zeros(size), cov, model.scaling.inputs(u[: model.order.reach]), age=10**9)


@pytest.mark.parametrize(("version", "name", "expected"), COLD)
@pytest.mark.usefixtures("widths_in_steps", "same_width_beyond")
def test_a_cold_run_of_then_is_one_from_its_start_state(version, name, expected):
    model = load(version, name)
    if not isinstance(model, revarb.FittedRGP | FittedARX):
        pytest.skip("it starts cold only, or has members that started at different rows")
    u, reach, steps = EXPECTED[version][name]["u"], model.order.reach, None
    if u is None:
        start, steps = start_as_before(model, np.empty((0, 0))), len(expected["mean"])
    else:
        u = np.array(u)
        start, u = start_as_before(model, u.reshape(len(u), -1)), u[reach:]
    path = model.simulate(u, expected["method"], start=start, steps=steps)
    check(path, expected, slice(reach, None))


@pytest.mark.parametrize(("version", "name", "expected"), [each for each in COLD if "no_input" not in each.id])
@pytest.mark.usefixtures("same_width_beyond")
def test_a_cold_run_is_the_same_once_it_has_settled(version, name, expected):
    """Without inputs the small models keep their phase, or oscillate for longer than the record."""
    path, last = simulate(load(version, name), version, name, expected), slice(-5, None)
    mean = np.reshape(expected["mean"], path.mean.shape)
    np.testing.assert_allclose(path.mean[last], mean[last], atol=3e-3 * mean.std())
    if "band_std" in without_bands(version, name, expected):
        np.testing.assert_allclose(path.std[last], np.reshape(expected["band_std"], mean.shape)[last], rtol=1e-4)


@pytest.mark.parametrize("name", EXPECTED["v0_1"])
@pytest.mark.usefixtures("same_width_beyond")
def test_a_saved_copy_of_an_old_model_is_the_same(tmp_path, name):
    model = load("v0_1", name)
    again = revarb.load(model.save(tmp_path / "again.rgp"))
    [cold] = (path for path in EXPECTED["v0_1"][name]["paths"] if (path["method"], path["start"]) == ("mean", "cold"))
    one, other = (simulate(each, "v0_1", name, cold).mean for each in (model, again))
    np.testing.assert_array_equal(one, other)
