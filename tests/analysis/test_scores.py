"""Scores and reliability of bands, against known distributions and plain loops."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from revarb.analysis.figures import draw_reliability
from revarb.analysis.reliability import (
    LEVELS,
    MIN_VALUES,
    check_bands,
    error_by_horizon,
    pit_values,
    reliability_diagram,
)
from revarb.analysis.report import write_results
from revarb.analysis.scores import scores
from revarb.data.trajectory import Trajectory
from revarb.runtime.figure_style import encode_figure


def trajectory(mean, std=None, skip=0):
    names = tuple(f"y{column}" for column in range(mean.shape[1]))
    band = None if std is None else np.broadcast_to(np.asarray(std, dtype=float), mean.shape).copy()
    return Trajectory(mean, band, "test", skip, names)


@pytest.fixture
def records(rng):
    """Two records of different lengths, two outputs of different units, and three values that were not measured."""
    paths, outputs = [], []
    for rows in (40, 25):
        scale = np.array([1.0, 30.0])
        mean, std = scale * rng.normal(size=(rows, 2)), scale * rng.uniform(0.3, 2.0, size=(rows, 2))
        paths.append(trajectory(mean, std, skip=4))
        outputs.append(mean + std * rng.normal(size=mean.shape))
    outputs[0][[2, 10, 11], [0, 1, 0]] = np.nan
    return paths, outputs


def measured_one_by_one(paths, outputs, skip):
    """(record, row, column) of every measured value after the first `skip` rows."""
    for record, y in enumerate(outputs):
        for row in range(skip, len(y)):
            for column in range(y.shape[1]):
                if not np.isnan(y[row, column]):
                    yield record, row, column


def test_shares_are_those_of_a_plain_loop(records):
    paths, outputs = records
    result = reliability_diagram(paths, outputs, levels=(0.3, 0.9))
    places = list(measured_one_by_one(paths, outputs, skip=4))
    for level, observed in zip((0.3, 0.9), result.observed, strict=True):
        intervals = [path.interval(level) for path in paths]
        inside = [intervals[k][0][i, d] <= outputs[k][i, d] <= intervals[k][1][i, d] for k, i, d in places]
        assert observed == pytest.approx(sum(inside) / len(places))
    assert result.count == len(places) == 2 * (36 + 21) - 2


def test_pit_values_are_those_of_scipy_one_by_one(records):
    paths, outputs = records
    expected = [
        norm(paths[k].mean[i, d], paths[k].std[i, d]).cdf(outputs[k][i, d])
        for k, i, d in measured_one_by_one(paths, outputs, skip=7)
    ]
    np.testing.assert_allclose(pit_values(paths, outputs, skip=7), expected)


def test_errors_by_horizon_are_those_of_a_plain_loop(records):
    paths, outputs = records
    result = error_by_horizon(paths, outputs, bins=6)
    scale = np.nanstd(np.concatenate(outputs), axis=0)
    begun, places = (
        0,
        sorted(measured_one_by_one(paths, outputs, skip=0), key=lambda place: place[1]),
    )  # with the warm-up
    for step, error, predicted, count in zip(result.steps, result.error, result.predicted, result.counts, strict=True):
        own = places[begun : begun + count]
        begun += count
        assert step == pytest.approx(np.mean([i + 1 for _, i, _ in own]))
        squares = [((outputs[k][i, d] - paths[k].mean[i, d]) / scale[d]) ** 2 for k, i, d in own]
        variances = [(paths[k].std[i, d] / scale[d]) ** 2 for k, i, d in own]
        assert error == pytest.approx(np.sqrt(np.mean(squares)))
        assert predicted == pytest.approx(np.sqrt(np.mean(variances)))
    assert begun == len(places) and len(result.counts) > 3


@pytest.mark.parametrize("rows", [5, 19, 60, 3000])
def test_no_bin_has_fewer_than_ten_values_unless_there_are_no_more(rng, rows):
    y = rng.normal(size=(rows, 1))
    result = error_by_horizon([trajectory(np.zeros_like(y), 1.0)], [y])
    assert result.counts.sum() == rows and result.counts.min() >= min(rows, MIN_VALUES)
    assert len(result.counts) <= 20 and (np.diff(result.steps) > 0.0).all()


def test_reliable_bands_have_the_scores_of_their_distribution_and_lie_on_the_diagonal(rng):
    mean, std = rng.normal(2.0, 3.0, size=(4000, 1)), rng.uniform(0.1, 3.0, size=(4000, 1))
    y = mean + std * rng.normal(size=mean.shape)
    path = trajectory(mean, std)
    scored, judged = scores(path, y), check_bands([path], [y])
    share, horizon = judged.reliability, judged.horizon
    low, high = binom.ppf([[0.001], [0.999]], share.count, share.levels) / share.count
    assert (low <= share.observed).all() and (share.observed <= high).all()
    assert tuple(share.levels) == LEVELS
    counts, _ = np.histogram(judged.pit, 10, (0.0, 1.0))
    assert (binom.ppf(0.0005, 4000, 0.1) <= counts).all() and (counts <= binom.ppf(0.9995, 4000, 0.1)).all()
    np.testing.assert_allclose(horizon.error[-3:], horizon.predicted[-3:], rtol=0.15)
    assert scored.rmse == pytest.approx(np.sqrt(np.mean(std**2)), rel=0.05)
    assert scored.nrmse == pytest.approx(scored.rmse / np.std(y))
    assert scored.nlpd == pytest.approx(norm(mean, std).entropy().mean(), rel=0.05)
    for level in (50, 90, 95):
        assert getattr(scored, f"coverage{level}") == pytest.approx(level / 100, abs=0.015)


def test_an_output_may_be_constant():
    result = error_by_horizon([trajectory(np.zeros((20, 1)), 2.0)], [np.ones((20, 1))])
    np.testing.assert_allclose(result.error, 1.0)
    np.testing.assert_allclose(result.predicted, 2.0)


def test_the_picture_is_reproducible_and_not_spoilt_by_a_model_that_diverged(records):
    paths, outputs = records
    away = [trajectory(path.mean + 1e200, path.std) for path in paths]
    with np.errstate(over="ignore"):
        judged = {("a$b$", "moments"): check_bands(away, outputs), ("<b>", "residuals"): check_bands(*records)}
    assert np.isinf(judged["a$b$", "moments"].horizon.error).all()
    first, second = (encode_figure(draw_reliability(judged), "svg") for _ in range(2))
    assert first == second and first.startswith(b"<?xml") and b"a$b$ (moments)" in first


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
    assert np.isnan([without[name] for name in ("nlpd", "coverage50", "coverage95")]).all()
    text = write_results(tmp_path / "r.json", {}, [without]).read_text()
    [read] = json.loads(text, parse_constant=pytest.fail)["rows"]  # which it would call for NaN
    assert read["outputs"]["flow"]["nlpd"] is None and read["outputs"]["flow"]["rmse"] == pytest.approx(0.1)
    y[2:, 1] = np.nan
    assert list(scores(path, y).by_output) == ["temperature"]
    assert not scores(Trajectory(path.mean[:, [0]], None, "mean", 0, ("temperature",)), y[:, 0]).by_output
