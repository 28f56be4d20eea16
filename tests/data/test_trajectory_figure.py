"""Figures of a trajectory: panels, colours, marks, thinned lines."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

import revarb
from revarb.data.trajectory import Trajectory
from revarb.runtime.figure_style import ALERT, SETTLING
from support import small


@pytest.fixture(scope="module")
def model():
    return revarb.ARX(lags=2, input_lags=2).fit(small.record(inputs=2, outputs=2))


def labels(figure):
    return [axes.get_ylabel() for axes in figure.axes]


def test_inputs_stand_above_and_errors_below(model):
    record = small.record(1, inputs=2, outputs=2)
    assert labels(model.simulate(record.u).plot()) == ["u0", "u1", "y0", "y1"]  # without measurements
    figure = model.simulate(record.u).plot(record.y)
    assert labels(figure) == ["u0", "u1", "y0", "error", "y1", "error"]
    assert figure.axes[-1].get_xlabel() == "sample"
    drawn = figure.axes[3].lines[-1].get_ydata()
    np.testing.assert_allclose(drawn, record.y[:, 0] - model.simulate(record.u).mean[:, 0])
    order = {line.get_label(): line.get_zorder() for line in figure.axes[2].lines}
    assert order["measured"] > order["model"]


def test_other_models_are_thin_lines_that_do_not_flatten_the_rest(model):
    record = small.record(1, inputs=2, outputs=2)
    path = model.simulate(record.u)
    far = Trajectory(path.mean + 1e6, None, "mean", 0, path.output_names)
    figure, alone = path.plot(record.y, others={"LSTM": far}), path.plot(record.y)
    assert "LSTM" in figure.axes[2].get_legend_handles_labels()[1]
    (low, high), (lowest, highest) = alone.axes[2].get_ylim(), figure.axes[2].get_ylim()
    assert lowest <= low and high < highest < high + (high - low)


def test_rows_that_are_not_scored_are_shaded_and_inputs_outside_of_their_range_are_marked(model):
    u = small.record(1, inputs=2).u.copy()
    u[30:33, 1] = 99.0
    with pytest.warns(UserWarning, match="leaves its training range"):
        figure = model.simulate(u).plot()
    shaded = [patch for axes in figure.axes for patch in axes.patches]
    assert len(shaded) == 4 and {patch.get_facecolor()[:3] for patch in shaded} == {to_rgb(SETTLING)}
    assert [text.get_text().strip() for text in figure.axes[2].texts] == ["settling, not scored"]
    dots = [line for line in figure.axes[1].lines if line.get_color() == ALERT]
    np.testing.assert_array_equal(dots[0].get_xdata(), [30.0, 31.0, 32.0])
    assert not [line for line in figure.axes[0].lines if line.get_color() == ALERT]
    assert "outside of the training range" in [text.get_text() for text in figure.axes[0].get_legend().texts]


def test_samples_and_inputs_without_a_known_range_are_drawn_and_time_has_its_unit():
    mean = np.zeros((50, 1))
    path = Trajectory(mean, mean + 1.0, "samples", 0, ("y",), dt=0.5, samples=np.ones((40, 50, 1)))
    [axes] = path.plot().axes
    assert len(axes.lines) == 31 and axes.get_xlabel() == "time (s)"  # thirty samples and the mean
    assert labels(replace(path, inputs=mean, input_names=("u",)).plot()) == ["u", "y"]


def test_long_records_are_drawn_with_few_points(model):
    u = np.tile(small.record(1, inputs=2).u, (500, 1))
    figure = model.simulate(u).plot(np.zeros((len(u), 2)))
    assert len(u) > 20_000 and max(len(line.get_xdata()) for axes in figure.axes for line in axes.lines) <= 3000


def test_the_axis_of_time_is_that_of_the_table(model):
    record = small.record(1, inputs=2)
    frame = pd.DataFrame(record.u, columns=["u0", "u1"])
    for index, label in (
        (pd.date_range("2026-01-01", periods=60, freq="s", name="when"), "when"),
        (pd.date_range("2026-01-01", periods=60, freq="s"), "time"),
    ):
        figure = model.simulate(frame.set_index(index)).plot()
        assert figure.axes[-1].get_xlabel() == label
        assert list(figure.axes[-1].lines[0].get_xdata()) == list(index.to_numpy())
    times = 3.0 + 0.5 * np.arange(60)
    figure = model.simulate(frame).plot(times=times)
    np.testing.assert_array_equal(figure.axes[-1].lines[0].get_xdata(), times)
    [shaded] = figure.axes[-1].patches
    assert (shaded.get_x(), shaded.get_width()) == (3.0, 0.5 * model.skip)
    assert model.simulate(frame).plot().axes[-1].get_xlabel() == "sample"  # row numbers are no times
