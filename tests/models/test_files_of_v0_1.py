"""Model files that version 0.1 wrote still load, and simulate what they simulated then.

data/v0_1 has one small file of each kind, and in expected.json what version 0.1 simulated with it
(data/make_v0_1.py wrote them). Its `band_std`, the standard deviation times the calibration's widening, is now `std`.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import revarb

FOLDER = Path(__file__).parent / "data" / "v0_1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
PATHS = [(name, path["method"], path["start"]) for name, entry in EXPECTED.items() for path in entry["paths"]]
SINGLE = [each for each in PATHS if each[0] != "ensemble"]
COMPILED_LONG = [  # programs that draw samples compile for seconds
    pytest.param(*each, marks=pytest.mark.slow if each[0] not in ("rgp", "rgp_uncalibrated") else ())
    for each in PATHS
    if each[1] == "samples"
]
DRAWN = 20  # samples that version 0.1 drew, the same number for every path


def close(got, expected, tolerance=1e-8):
    got, expected = np.asarray(got), np.asarray(expected)
    np.testing.assert_allclose(got, expected.reshape(got.shape), rtol=tolerance, atol=tolerance)


def simulate(model, name, method, start, **options):
    u = EXPECTED[name]["u"]
    steps = {"steps": 40} if u is None else {}
    return model.simulate(u, method, start=start, **({"samples": DRAWN, "seed": 3} | options), **steps)


def expected_path(name, method, start):
    return next(path for path in EXPECTED[name]["paths"] if (path["method"], path["start"]) == (method, start))


@pytest.fixture(scope="module")
def load():
    """Load a file of version 0.1; every file is read once."""
    models = {}

    def find(name):
        if name not in models:
            models[name] = revarb.load(FOLDER / f"{name}.rgp")
        return models[name]

    return find


def test_there_is_a_file_of_each_kind():
    assert {path.stem for path in FOLDER.glob("*.rgp")} == set(EXPECTED)


@pytest.mark.parametrize(("name", "method", "start"), [each for each in PATHS if each[1] != "samples"])
def test_the_mean_is_the_same(load, name, method, start):
    close(simulate(load(name), name, method, start).mean, expected_path(name, method, start)["mean"])


@pytest.mark.parametrize(("name", "method", "start"), [each for each in SINGLE if each[1] == "moments"])
def test_the_calibrated_distribution_is_the_same(load, name, method, start):
    path, expected = simulate(load(name), name, method, start), expected_path(name, method, start)
    mean, lower = (np.reshape(expected[key], path.mean.shape) for key in ("mean", "lower"))
    # Variances are differences of larger terms: another processor's rounding changed their roots by up to 4e-8.
    close(path.std, expected["band_std"], 1e-6)
    close(path.interval(0.95)[0], lower, 1e-6)
    close(path.interval(0.95)[1], 2.0 * mean - lower, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method", "start"), COMPILED_LONG)
def test_samples_have_the_same_distribution(load, name, method, start):
    """The same seed draws other functions with another LAPACK, which chooses the signs of eigenvectors.

    So the paths that version 0.1 drew are a small sample of what many new ones show. At the time of writing their means
    differed by up to 2.6 standard errors, and their standard deviations by factors of 0.69 to 1.29.
    """
    path, expected = simulate(load(name), name, method, start, samples=400), expected_path(name, method, start)
    mean = np.reshape(expected["mean"], path.mean.shape)
    np.testing.assert_array_less(np.abs(path.mean - mean), 4.0 * path.std / np.sqrt(DRAWN))
    if name != "ensemble":
        std, lower = (np.reshape(expected[key], path.mean.shape) for key in ("band_std", "lower"))
        ratio = std / path.std
        assert ratio.min() > 0.55 and ratio.max() < 1.6 and 0.85 < np.median(ratio) < 1.15
        half = path.std * (mean - lower) / std  # the factor of the calibration does not depend on the draws
        close(path.interval(0.95)[0], path.mean - half)
        close(path.interval(0.95)[1], path.mean + half)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["moments", "samples"])
@pytest.mark.parametrize("start", ["cold", "continue"])
def test_an_ensemble_is_the_mixture_of_its_calibrated_members(load, method, start):
    """Law of total variance: E[std²] + Var[mean] over the members."""
    ensemble = load("ensemble")
    paths = [
        simulate(member, "ensemble", method, start, samples=10, seed=3 + number)
        for number, member in enumerate(ensemble.members)
    ]
    variance = np.mean([path.std**2 for path in paths], axis=0) + np.var([path.mean for path in paths], axis=0)
    close(simulate(ensemble, "ensemble", method, start).std, np.sqrt(variance))


def test_a_saved_copy_is_the_same_model(load, tmp_path):
    for name in EXPECTED:
        again = revarb.load(load(name).save(tmp_path / f"{name}.rgp"))
        close(simulate(again, name, "mean", "cold").mean, expected_path(name, "mean", "cold")["mean"])
