"""Models with Student-t noise: outliers, bands, filtering, files, pictures."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.analysis.reliability import pit_values
from revarb.analysis.scores import scores
from revarb.data.scaling import half_width
from revarb.data.series import Window
from revarb.models.model_file import load
from revarb.models.recipe import Recipe, Stage
from revarb.models.summary import find_probabilities
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import find_noise_variance
from revarb.simulation.filtering import make_update
from revarb.simulation.moments import JointState, OutputMoments
from support import small

SPIKES = (25, 60)
RECIPE = Recipe(stages=(Stage(("mu", "lam", "zeta", "w", "tau"), 30),))


def spiked(record, rows=SPIKES, size=5.0):
    y = record.y.copy()
    y[list(rows), 0] += size * np.nanstd(y[:, 0]) * np.where(np.arange(len(rows)) % 2, -1.0, 1.0)
    return replace(record, y=y)


@pytest.fixture(scope="module")
def record():
    return small.record(samples=120)


@pytest.fixture(scope="module")
def robust(record):
    return small.spec(noise="student-t", recipe=RECIPE).fit(spiked(record))


def test_planted_spikes_are_found_and_nothing_else(robust, tmp_path):
    found = robust.outliers()
    assert {each.row for each in found} == set(SPIKES)
    assert all(each.record == 0 and each.output == "y" and each.weight < 0.05 for each in found)
    assert [each.probability for each in found] == sorted(each.probability for each in found)
    assert load(robust.save(tmp_path / "robust.rgp")).outliers() == found


@pytest.mark.slow
def test_spikes_do_less_harm(record, robust):
    test = small.record(1, samples=120)
    gaussian = small.spec(recipe=RECIPE).fit(spiked(record))
    clean = small.spec(recipe=RECIPE).fit(record)
    errors = [scores(model.simulate(test.u, "mean"), test.y).rmse for model in (clean, robust, gaussian)]
    assert errors[1] < 1.3 * errors[0] and errors[1] < errors[2]


def test_the_band_is_that_of_a_student(robust):
    path = robust.simulate(small.record(1).u)
    assert path.degrees_of_freedom == pytest.approx(4.0)
    lower, upper = path.interval(0.5)
    np.testing.assert_allclose(upper - lower, 2.0 * half_width(0.5, 4.0) * path.std, rtol=1e-6)
    values = pit_values([path], [path.mean + 0.1])
    assert (values > 0.5).all() and (values < 1.0).all()


@pytest.mark.slow
def test_one_spike_in_a_window_hardly_moves_the_start(robust, record):
    """That of a model with Gaussian noise it moves."""
    windows = [Window(record.u[:60], y[:60]) for y in (record.y, spiked(record, rows=(58,), size=6.0).y)]
    moves = []
    for model in (robust, small.spec(recipe=RECIPE).fit(record)):
        start, moved = (model.resolve_start(window).state.mean for window in windows)
        moves.append(np.abs(moved - start).max() / np.abs(start).max())
    assert moves[0] < 0.1 < moves[1]


def test_the_fit_picture_marks_outliers(robust, record):
    axes = robust.plot_fit(spiked(record)).axes[0]
    marks = [line for line in axes.get_lines() if line.get_label() == "outlier"]
    assert len(marks) == 1 and sorted(marks[0].get_xdata()) == sorted(float(row) for row in SPIKES)


def test_what_is_ordinary_follows_from_the_errors():
    rng = np.random.default_rng(0)
    squares = (5.0 * rng.normal(size=(2000, 1))) ** 2
    assert np.mean(find_probabilities(squares) < 0.05) == pytest.approx(0.05, abs=0.02)


def test_missing_samples_are_no_outliers_and_set_no_scale(record):
    mostly = small.with_gaps(spiked(record), slice(70, 120))
    found = small.spec(noise="student-t", recipe=RECIPE).fit(mostly).outliers(0.9)
    assert set(SPIKES) <= {each.row for each in found} and max(each.row for each in found) < 70


def test_degrees_of_freedom_are_estimated_and_keep_a_variance(record):
    """Many spikes make the tails as heavy as they may become; the band stays one."""
    rows = tuple(range(10, 110, 7))
    spec = small.spec(noise="student-t", recipe=RECIPE, degrees_of_freedom=None)
    model = spec.fit(spiked(record, rows))
    assert float(model.trained.parameters.noise.degrees) != pytest.approx(4.0)
    assert model.simulate(record.u).std.max() < 5.0 * np.std(record.y)


@with_numerics
def test_a_missing_output_has_no_say_in_the_weight_of_another(robust):
    chain = robust.trained.chain
    root = np.random.default_rng(0).normal(size=(5, 5))
    whole = root @ root.T + (0.1 + float(find_noise_variance(chain))) * np.eye(5)
    state, both = JointState(np.zeros(3), whole[:3, :3]), OutputMoments(np.zeros(2), whole[3:, 3:], whole[:3, 3:])
    first = OutputMoments(both.mean[:1], both.cov[:1, :1], both.cross[:, :1])
    condition = make_update(chain)
    got, alone = condition(state, both, np.array([2.0, np.nan])), condition(state, first, np.array([2.0]))
    np.testing.assert_allclose(got.mean, alone.mean, rtol=1e-10)
    np.testing.assert_allclose(got.cov, alone.cov, rtol=1e-10, atol=1e-12)
