import numpy as np
from matplotlib.figure import Figure

from revarb.runtime.figure_style import BINS, MAX_ROWS, label_axes, thin_band, thin_line

ROWS = 20_001
TIME = 0.5 * np.arange(float(ROWS))


def test_short_lines_stay_as_they_are():
    short = np.arange(float(MAX_ROWS))
    assert thin_line(short, short)[1] is short and thin_band(short, short, short)[2] is short


def test_a_thin_line_keeps_every_spike_and_the_order_of_times():
    values = np.sin(0.01 * TIME)
    values[[7, 12_345, ROWS - 1]] = 9.0, -9.0, 8.0
    time, thin = thin_line(TIME, values)
    assert len(thin) <= 2 * BINS and (np.diff(time) >= 0.0).all()
    assert {9.0, -9.0, 8.0} <= set(thin)
    np.testing.assert_array_equal(thin, values[(2.0 * time).astype(int)])


def test_a_long_gap_stays_a_gap():
    values = np.ones(ROWS)
    values[5000:9000] = np.nan
    time, thin = thin_line(TIME, values)
    inside = (time > 2510.0) & (time < 4490.0)
    assert inside.sum() > 100 and np.isnan(thin[inside]).all()
    lower = thin_band(TIME, values, values)[1]
    assert np.isnan(lower).any() and np.isfinite(lower).any()


def test_a_thin_band_contains_the_band():
    rng = np.random.default_rng(0)
    lower = rng.normal(size=ROWS)
    time, low, high = thin_band(TIME, lower, lower + 1.0)
    assert len(time) == len(low) == len(high) <= BINS
    assert low.min() == lower.min() and high.max() == (lower + 1.0).max() and (high >= low + 1.0).all()


def test_names_of_columns_are_replaced_by_names_with_units():
    figure = Figure()
    for axes, name in zip(figure.subplots(2, 1), ("level", "flow"), strict=True):
        axes.set_ylabel(name)
    assert [axes.get_ylabel() for axes in label_axes(figure, {"level": "level (cm)"}).axes] == ["level (cm)", "flow"]
