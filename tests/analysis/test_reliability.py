"""Reliability of bands, against plain loops."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from revarb.analysis.compare import compare
from revarb.analysis.figures import draw_reliability
from revarb.analysis.reliability import (
    LEVELS,
    MIN_VALUES,
    check_bands,
    error_by_horizon,
    pit_values,
    reliability_diagram,
)
from revarb.baselines.mean import Mean
from revarb.data.trajectory import Trajectory
from revarb.fitting.arx import ARX
from revarb.runtime.figure_style import encode_figure
from support import small


def trajectory(mean, std, skip=0):
    names = tuple(f"y{column}" for column in range(mean.shape[1]))
    return Trajectory(mean, np.broadcast_to(std, mean.shape).copy(), "test", skip, names)


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


def test_reliable_bands_lie_on_the_diagonal(rng):
    mean, std = rng.normal(size=(4000, 1)), rng.uniform(0.1, 3.0, size=(4000, 1))
    y = mean + std * rng.normal(size=mean.shape)
    result = check_bands([trajectory(mean, std)], [y])
    share = result.reliability
    low, high = binom.ppf([[0.001], [0.999]], share.count, share.levels) / share.count
    assert (low <= share.observed).all() and (share.observed <= high).all()
    assert tuple(share.levels) == LEVELS
    counts, _ = np.histogram(result.pit, 10, (0.0, 1.0))
    assert (binom.ppf(0.0005, 4000, 0.1) <= counts).all() and (counts <= binom.ppf(0.9995, 4000, 0.1)).all()
    np.testing.assert_allclose(result.horizon.error[-3:], result.horizon.predicted[-3:], rtol=0.15)


def test_an_output_may_be_constant():
    result = error_by_horizon([trajectory(np.zeros((20, 1)), 2.0)], [np.ones((20, 1))])
    np.testing.assert_allclose(result.error, 1.0)
    np.testing.assert_allclose(result.predicted, 2.0)


def test_a_comparison_has_the_reliability_of_every_simulation_with_a_band():
    models = {"ARX": ARX(2, 2), "Mean": Mean(), "REVARB": small.spec()}
    test = [small.record(1), small.record(2, samples=40)]
    result = compare(small.record(), test, models, seeds=1)
    judged = result.reliability()
    assert list(judged) == [("ARX", "residuals"), ("Mean", "residuals"), ("REVARB", "moments")]
    for row in result.rows:
        if row["method"] != "mean":
            each = judged[row["model"], row["method"]]
            assert each.skip == row["skip"]
            assert each.reliability.observed[LEVELS.index(0.95)] == pytest.approx(row["coverage95"])


def test_the_picture_is_reproducible_and_not_spoilt_by_a_model_that_diverged(records):
    paths, outputs = records
    away = [trajectory(path.mean + 1e200, path.std) for path in paths]
    with np.errstate(over="ignore"):
        judged = {("a$b$", "moments"): check_bands(away, outputs), ("<b>", "residuals"): check_bands(*records)}
    assert np.isinf(judged["a$b$", "moments"].horizon.error).all()
    first, second = (encode_figure(draw_reliability(judged), "svg") for _ in range(2))
    assert first == second and first.startswith(b"<?xml") and b"a$b$ (moments)" in first
