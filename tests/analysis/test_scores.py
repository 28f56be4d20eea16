"""Scores of trajectories against known distributions and plain sums."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from revarb.analysis.scores import scores
from revarb.analysis.tables import write_results
from revarb.data.trajectory import Trajectory


def trajectory(mean, std=None, skip=0):
    mean = np.asarray(mean, dtype=float)
    names = tuple(f"y{column}" for column in range(mean.shape[1]))
    return Trajectory(mean, None if std is None else np.full(mean.shape, float(std)), "test", skip, names)


def test_scores_of_a_known_gaussian(rng):
    y = rng.normal(2.0, 3.0, size=(20_000, 1))
    result = scores(trajectory(np.full_like(y, 2.0), std=3.0), y)
    assert result.rmse == pytest.approx(3.0, rel=0.02)
    assert result.nrmse == pytest.approx(1.0, rel=0.02)
    assert result.nlpd == pytest.approx(norm(2, 3).entropy(), rel=0.01)
    for level in (50, 90, 95):
        assert getattr(result, f"coverage{level}") == pytest.approx(level / 100, abs=0.015)


def test_nlpd_is_the_mean_of_scipys_densities(rng):
    mean, y = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    assert scores(trajectory(mean, std=0.7), y).nlpd == pytest.approx(-norm(mean, 0.7).logpdf(y).mean())


def test_the_warm_up_is_left_out():
    mean, y = np.zeros((5, 1)), np.array([[100.0], [100.0], [1.0], [-1.0], [1.0]])
    assert scores(trajectory(mean), y, skip=2).rmse == pytest.approx(1.0)
    assert scores(trajectory(mean, skip=2), y).rmse == pytest.approx(1.0)
    assert scores(trajectory(mean, skip=2), y, skip=0).rmse > 50.0


def test_only_what_was_measured_is_scored(rng):
    """Gaps in one output: the same as the measured values alone."""
    mean, y = rng.normal(size=(2, 30, 1))
    gappy = y.copy()
    gappy[[4, 11, 12]] = np.nan
    kept = np.isfinite(gappy[:, 0])
    assert scores(trajectory(mean, 0.8), gappy) == scores(trajectory(mean[kept], 0.8), y[kept])


def test_gaps_in_one_output_do_not_change_the_weight_of_another():
    y = np.array([[1.0, np.nan, np.nan], [-1.0, 10.0, np.nan], [1.0, -10.0, np.nan], [-1.0, np.nan, np.nan]])
    result = scores(trajectory(np.zeros((4, 3)), std=100.0), y)
    assert result.rmse == pytest.approx(np.sqrt((4 * 1.0 + 2 * 100.0) / 6))
    assert result.nrmse == pytest.approx(1.0) and result.coverage95 == 1.0


def test_every_output_counts_by_its_own_scale():
    y = np.stack([np.tile([1.0, -1.0], 10), np.tile([1000.0, -1000.0], 10)], axis=1)
    assert scores(trajectory(0.9 * y), y).nrmse == pytest.approx(0.1)


def test_without_a_band_there_is_no_band_score():
    result = scores(trajectory(np.zeros((3, 1))), [1, 2, 3])
    assert np.isnan([result.nlpd, result.coverage50, result.coverage95]).all()


def test_every_output_is_scored_by_itself(tmp_path):
    """Kelvin and kilograms: an error of 10 in one, of 0.1 in the other, and a gap."""
    y = np.column_stack([np.tile([290.0, 310.0], 5), np.tile([1.0, 3.0], 5)])
    path = Trajectory(y + np.array([10.0, 0.1]), np.tile([5.0, 1.0], (10, 1)), "moments", 2, ("temperature", "flow"))
    y[4, 1] = np.nan
    found = scores(path, y)
    assert list(found.by_output) == ["temperature", "flow"]
    temperature, flow = found.by_output.values()
    assert temperature.rmse == pytest.approx(10.0) and flow.rmse == pytest.approx(0.1)
    assert temperature.nrmse == pytest.approx(1.0) and flow.coverage95 == 1.0 and temperature.coverage95 == 0.0
    assert flow == scores(Trajectory(path.mean[:, [1]], path.std[:, [1]], "moments", 2, ("flow",)), y[:, 1])
    row = found.to_row()
    assert row["rmse"] == found.rmse and row["outputs"]["flow"] == flow.to_row() and "outputs" not in flow.to_row()
    without = scores(replace(path, std=None), y).to_row()
    text = write_results(tmp_path / "r.json", {}, [without]).read_text()
    [read] = json.loads(text, parse_constant=pytest.fail)["rows"]  # which it would call for NaN
    assert read["outputs"]["flow"]["nlpd"] is None and read["outputs"]["flow"]["rmse"] == pytest.approx(0.1)
    y[2:, 1] = np.nan
    assert list(scores(path, y).by_output) == ["temperature"]
    assert not scores(Trajectory(path.mean[:, [0]], None, "mean", 0, ("temperature",)), y[:, 0]).by_output
