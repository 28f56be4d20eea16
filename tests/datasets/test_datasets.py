"""Benchmarks by name: generated and recorded ones, descriptions, missing files."""

from hashlib import sha256
from types import SimpleNamespace
from zipfile import ZipFile

import numpy as np
import pooch
import pytest
from scipy.io import loadmat

import revarb
from revarb import datasets
from revarb.data.series import as_records
from revarb.datasets import benchmarks, published_files
from revarb.datasets.benchmarks import simulate_artificial, simulate_two_tanks
from revarb.errors import InputError


def test_artificial_is_generated_from_a_seed():
    split, again, other = (datasets.load("artificial", seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(split.train.y, again.train.y)
    assert not np.array_equal(split.train.y, other.train.y)
    np.testing.assert_array_equal(split.test.y, other.test.y)
    assert (len(split.train), len(split.test), split.lags, split.skip) == (300, 300, 5, 10)
    assert np.abs(split.train.u).max() <= 2.5
    noise = split.train.y[:, 0] - simulate_artificial(split.train.u[:, 0])
    assert noise.std() == pytest.approx(0.3, rel=0.15)


def test_the_generator_reproduces_the_recorded_file(recorded_data):
    file = loadmat(datasets.fetch("artificial_recorded"))
    split = datasets.load("artificial_recorded")
    np.testing.assert_allclose(simulate_artificial(split.test.u[:, 0]), split.test.y[:, 0], atol=1e-12)
    clean = split.train.y[:, 0] - file["n"].ravel()
    np.testing.assert_allclose(simulate_artificial(split.train.u[:, 0]), clean, atol=1e-7)
    np.testing.assert_allclose(split.test.u, datasets.load("artificial").test.u, atol=1e-12)


def test_two_tanks_are_generated_from_a_seed():
    split, again, other = (datasets.load("two_tanks", seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(split.train.y, again.train.y)
    assert not np.array_equal(split.train.u, other.train.u) and not np.array_equal(split.test.u, other.test.u)
    assert (len(split.train), len(split.test), split.train.dt) == (400, 400, benchmarks.DT)
    for record in (split.train, split.test):
        noise = record.y[:, 0] - simulate_two_tanks(record.u[:, 0])
        assert noise.std() == pytest.approx(benchmarks.NOISE_STD, rel=0.15)
    for split in (datasets.load("two_tanks", seed=seed) for seed in range(10)):
        assert split.train.u.min() <= split.test.u.min() and split.test.u.max() <= split.train.u.max()


def test_levels_at_rest_follow_torricelli_a_closed_pump_drains_and_a_strong_one_overflows():
    outflow = benchmarks.OUTLET * np.sqrt(2.0 * benchmarks.GRAVITY * simulate_two_tanks(np.full(20, 3.0)))
    np.testing.assert_allclose(outflow, benchmarks.PUMP * 3.0)
    assert simulate_two_tanks(np.concatenate([[5.0], np.zeros(100)]))[-1] == pytest.approx(0.0, abs=1e-3)
    assert simulate_two_tanks(np.full(50, 8.0)).max() == benchmarks.HEIGHT


@pytest.mark.parametrize(
    ("name", "sizes", "lags", "columns", "spread"),
    [
        ("artificial_recorded", (300, 300), 5, (1, 1), None),
        ("drive", (250, 250), 10, (1, 1), 0.735),
        ("actuator", (512, 512), 10, (1, 1), 1.630),
        ("dryer", (500, 500), 2, (1, 1), 0.824),
        ("gas_furnace", (148, 148), 3, (1, 1), 3.398),
        ("ballbeam", (500, 500), 10, (1, 1), 0.073),
        ("robot_arm", (512, 512), 10, (1, 1), 1.00),
        ("heating", (400, 401), 10, (1, 1), 0.78),
        ("thermic", (800, 880), 10, (2, 1), 0.96),
        ("cstr", (1500, 1200), 10, (1, 2), 1.09),
        ("winding", (1000, 1200), 5, (5, 2), 1.01),
    ],
)
def test_recorded_benchmarks(recorded_data, name, sizes, lags, columns, spread):
    """Sizes, and the error of predicting the training mean, measured elsewhere: on the whole test part, or, for the
    later records of DaISy, z-scored and after 2 L samples.
    """
    split = datasets.load(name)
    train, test = split.train, split.test
    assert ((len(train), len(test)), split.lags, split.skip) == (sizes, lags, 2 * lags)
    assert (len(train.input_names), len(train.output_names)) == columns
    assert (train.input_names, train.output_names, train.dt) == (test.input_names, test.output_names, test.dt)
    if name in ("drive", "actuator", "dryer", "gas_furnace", "ballbeam"):
        assert np.sqrt(np.mean((test.y - train.y.mean()) ** 2)) == pytest.approx(spread, abs=6e-4)
    elif spread is not None:
        z = (test.y - train.y.mean(0)) / train.y.std(0)
        assert np.sqrt(np.mean(z[split.skip :] ** 2)) == pytest.approx(spread, abs=6e-3)


@pytest.mark.parametrize(
    ("name", "train", "test", "window", "dt", "columns", "spread"),
    [
        ("ced", (400, 400), {"low": 100, "high": 100}, 10, 0.02, ("voltage", "speed"), (0.3511, 0.5430)),
        ("cascaded_tanks", (1024,), {"": 1024}, 50, 4.0, ("pump", "level"), (2.1200,)),
        ("wiener_hammerstein", (100000,), {"": 78800}, 50, 1 / 51200, ("u", "y"), (0.2439,)),
        (
            "silverbox", (65062,), {"multisine": 21688, "arrow": 40475, "arrow without extrapolation": 32000}, 50,
            1 / 610.35, ("V1", "V2"), (0.0543, 0.0535, 0.0430),
        ),
    ],
)  # fmt: skip
def test_leaderboard_records(recorded_data, name, train, test, window, dt, columns, spread):
    """The official splits; spreads are of the scored rows, read from the files without this package."""
    split = datasets.load(name)
    trains, tests = as_records(split.train), as_records(split.test)
    assert tuple(map(len, trains)) == train and [len(each) for each in tests] == list(test.values())
    assert isinstance(split.train, tuple) == (name == "ced") and split.test_names == tuple(filter(None, test))
    assert (split.window, split.skip, split.lags) == (window, window, 10)
    for record in (*trains, *tests):
        assert record.dt == dt and record.input_names + record.output_names == columns and record.missing == 0
    assert [record.y[window:].std() for record in tests] == pytest.approx(spread, abs=6e-5)


def test_leaderboard_parts_are_where_the_benchmark_says(recorded_data):
    """First samples, by the rules of the benchmark on the published files."""
    found = {name: loadmat(datasets.fetch(name)) for name in ("ced", "cascaded_tanks", "silverbox")}
    low, high = datasets.load("ced").train
    assert (low.y[0, 0], high.u[0, 0]) == (found["ced"]["z11"][0, 0], found["ced"]["u12"][0, 0])
    assert datasets.load("ced").test[1].y[-1, 0] == found["ced"]["z12"][-1, 0]
    assert datasets.load("cascaded_tanks").test.y[0, 0] == found["cascaded_tanks"]["yVal"][0, 0]
    v1, split = found["silverbox"]["V1"][0], datasets.load("silverbox")
    starts = [split.train, *split.test]
    assert [each.u[0, 0] for each in starts] == [v1[40650], v1[40650 + 65062], v1[100], v1[100]]
    table = datasets.load("wiener_hammerstein")
    lines = datasets.fetch("wiener_hammerstein").read_text().splitlines()[1:]  # without the header
    for record, first in ((table.train, 5200), (table.test, 105200)):
        assert [record.u[0, 0], record.y[0, 0]] == [float(cell) for cell in lines[first].split(",")[:2]]


def test_data_of_the_leaderboards_package_is_fitted_and_compared():
    u = np.sin(np.arange(80.0) ** 1.5)
    data = SimpleNamespace(u=u, y=np.convolve(u, [0.0, 1.0, 0.5])[:80], sampling_time=0.5)
    model = revarb.ARX(1, 2).fit([data, data])
    assert model.dt == 0.5 and np.abs(model.simulate(u).mean[5:, 0] - data.y[5:]).max() < 1e-6
    assert revarb.compare(data, data, {"ARX": revarb.ARX(1, 2)}, seeds=1).rows[0]["rmse"] < 1e-6


def test_time_is_not_an_input(recorded_data):
    """The files of heating and cstr begin with a column of the time."""
    assert datasets.load("heating").train.u[0, 0] == 9.0
    assert datasets.load("cstr").train.y[0].tolist() == [0.1, 438.54]


def test_every_name_is_described():
    assert all(datasets.about(name) for name in datasets.names())
    assert all("DaISy" in datasets.about(name) for name in ("robot_arm", "heating", "thermic", "cstr", "winding"))


def test_unknown_missing_and_changed_files(monkeypatch, tmp_path):
    with pytest.raises(InputError, match="unknown data set 'drives'; known are artificial,"):
        datasets.load("drives")
    monkeypatch.setenv("REVARB_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"REVARB_DATA is set, but there is no .*drive\.mat"):
        datasets.load("drive")
    (tmp_path / "drive.mat").write_bytes(b"something else")
    with pytest.raises(InputError, match="is not the published file: its sha256 differs"):
        datasets.load("drive")


def test_a_failed_download_is_one_clear_line(monkeypatch, tmp_path):
    def offline(*args, **kwargs):
        raise ConnectionError("no route\nto host")

    monkeypatch.delenv("REVARB_DATA", raising=False)
    monkeypatch.setattr(pooch, "retrieve", offline)
    with pytest.raises(InputError, match=r"cannot download drive\.mat \(ConnectionError: no route to host\)"):
        datasets.fetch("drive")
    with pytest.raises(InputError, match=r"cannot download ced_uniform\.mat \(ConnectionError: no route to host\)"):
        datasets.fetch("ced")


def test_a_file_is_taken_out_of_its_archive(monkeypatch, tmp_path):
    """The archive is not kept: one that is damaged or has changed is downloaded again the next time."""
    downloads, content = [], {"DATAUNIF.MAT": b"the data"}

    def download(address, known_hash, name, folder):
        downloads.append(address)
        with ZipFile(tmp_path / name, "w") as archive:
            for member, data in content.items():
                archive.writestr(member, data)
        return str(tmp_path / name)

    monkeypatch.delenv("REVARB_DATA", raising=False)
    monkeypatch.setattr(pooch, "retrieve", download)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path)
    with pytest.raises(InputError, match=r"cannot download ced_uniform\.mat \(.* the sha256 of DATAUNIF\.MAT differs"):
        datasets.fetch("ced")
    monkeypatch.setitem(published_files.SHA256, "ced_uniform.mat", sha256(b"the data").hexdigest())
    assert datasets.fetch("ced").read_bytes() == b"the data"
    datasets.fetch("ced")
    assert len(downloads) == 1 and [each.name for each in tmp_path.iterdir()] == ["ced_uniform.mat"]
    (tmp_path / "ced_uniform.mat").unlink()
    content.clear()
    with pytest.raises(InputError, match=r"cannot download ced_uniform\.mat \(.* the archive has no DATAUNIF\.MAT"):
        datasets.fetch("ced")
