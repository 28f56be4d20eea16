"""Warnings about clipped, rounded and stuck columns; silence about records as they usually are."""

import warnings

import numpy as np
import pytest

from revarb import datasets
from revarb.data.quality import warn_about_quality
from revarb.data.series import Series
from revarb.errors import QualityWarning
from revarb.motion import cmu35

ROWS = 400


def messages(*records):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_about_quality(records)
    assert all(each.category is QualityWarning for each in caught)
    return [str(each.message) for each in caught]


def settle(u, pole=0.9, noise=0.0, seed=0):
    """A first-order system with gain 1."""
    y = np.zeros(len(u))
    for row in range(1, len(u)):
        y[row] = pole * y[row - 1] + (1.0 - pole) * u[row - 1]
    return y + noise * np.random.default_rng(seed).normal(size=len(u))


@pytest.fixture
def prbs(rng):
    return np.repeat(rng.choice([-1.0, 1.0], ROWS // 8), 8)


@pytest.fixture
def steps():
    return np.repeat([0.0, 1.0, 0.0, 2.0], ROWS // 4)


def test_a_clipped_output(prbs):
    y = np.minimum(settle(prbs, noise=0.02), 0.5)
    [message] = messages(Series(prbs, y, output_names=["level"]))
    counted = int((y == 0.5).sum())
    assert message.startswith(f"output 'level' is at its largest value, 0.5, in {counted} of {ROWS} rows, up to ")
    assert message.endswith("make these values missing (NaN) or measure with a wider range; if it is a limit of the "
                            "system, nothing is wrong")  # fmt: skip


def test_an_output_clipped_on_both_sides_without_runs(rng):
    """White noise stays at a limit for a single row; nothing else has the same value twice."""
    y = np.clip(rng.normal(size=ROWS), -1.5, 1.5)
    low, high = (y == -1.5).sum(), (y == 1.5).sum()
    [message] = messages(Series(rng.normal(size=ROWS), y))
    assert (
        f"is at its smallest value, -1.5, in {low} and at its largest value, 1.5, in {high} of {ROWS} rows" in message
    )


def test_the_rows_of_the_longest_run_are_named(rng):
    y = rng.normal(size=(ROWS, 1))
    y[100:130] = 9.0
    [message] = messages(Series(None, y))
    assert "in 30 of 400 rows, up to 30 in a row (rows 100 to 129);" in message
    [message] = messages(Series(None, rng.normal(size=(80, 1))), Series(None, y))
    assert "in 30 of 480 rows, up to 30 in a row (rows 100 to 129 of record 1);" in message


def test_a_clipped_input(rng):
    u = np.clip(settle(rng.normal(size=ROWS)), -0.25, 9.0)
    [message] = messages(Series(u, settle(u, noise=0.02)))
    assert message.startswith("input 'u' is at its smallest value, -0.25, in ")
    assert message.endswith(
        "pass the signal that acted on the system instead; if that was limited itself, nothing is wrong"
    )


@pytest.mark.parametrize("resolution", [0.2, 0.5, 2.0])
def test_a_rounded_output(prbs, resolution):
    y = np.round(settle(prbs, noise=0.02) / resolution) * resolution
    y[5] = 4.0 * resolution  # so that even the coarsest has two values
    [message] = messages(Series(prbs, y))
    assert f"output 'y' has only {len(np.unique(y))} different values in {ROWS} rows, {resolution:g} apart: " in message
    assert "no model explains; log it with more digits" in message


def test_the_error_of_rounding_is_that_of_a_uniform_distribution(rng):
    y = np.round(3.0 * rng.normal(size=100_000))
    [message] = messages(Series(None, y))
    error = np.std(3.0 * rng.normal(size=100_000) % 1.0) / np.std(y)
    assert f"rounding alone is an error of {error:.2f} standard deviations" in message


def test_a_stuck_output(prbs):
    y = settle(prbs, noise=0.02)
    y[200:240] = y[200]
    [message] = messages(Series(prbs, y))
    assert message.startswith(
        "output 'y' keeps one value for 40 rows (rows 200 to 239), usually for 1; if a sensor or "
    )
    y[300:325] = y[300]
    [message] = messages(Series(prbs, y))
    assert "for 40 rows (rows 200 to 239, the longest of 2 such runs), usually for 1" in message


def test_an_output_that_is_stuck_while_an_input_moves(prbs):
    """Without noise, and from the start of the record: only the input shows that the system cannot be at rest."""
    y = settle(prbs)
    y[:60] = y[60]
    assert "for 61 rows (rows 0 to 60)" in messages(Series(prbs, y))[0]
    assert messages(Series(np.where(np.arange(ROWS) < 60, 1.0, prbs), y)) == []


def test_every_kind_is_said_once_with_the_names_of_other_columns(prbs):
    y = np.stack([settle(prbs, noise=0.02, seed=seed) for seed in range(8)], axis=1)
    message, other = messages(Series(prbs, np.hstack([np.minimum(y, 0.5), np.round(y[:, :1])])))
    assert "'y0' is at its largest value" in message
    assert "; likewise 'y1', 'y2', 'y3', 'y4', 'y5' and 2 more; if a sensor" in message
    assert other.startswith("output 'y8' has only 3 different values")


def test_test_signals_are_normal_inputs(rng):
    rows = np.arange(ROWS)
    inputs = {
        "two levels": np.repeat(rng.choice([-1.0, 1.0], ROWS // 8), 8),
        "three levels": np.repeat(rng.choice([0.0, 0.5, 1.0], ROWS // 8), 8),
        "steps": np.repeat([0.0, 1.0, 0.5, 2.0], ROWS // 4),
        "twelve levels": rng.integers(0, 12, ROWS).astype(float),
        "held": np.repeat(rng.uniform(-1.0, 1.0, ROWS // 10), 10),
        "trapezoids": np.interp(rows % 100, [0, 25, 50, 75, 100], [0.5, 2.0, 2.0, 0.5, 0.5]),
        "pulses": np.where(rng.random(ROWS) < 0.05, rng.uniform(0.5, 1.0, ROWS), 0.0),
        "rest first": np.where(rows < 100, -2.0, rng.normal(size=ROWS).clip(-1.9, None)),
        "white": rng.normal(size=ROWS),
    }
    u = np.stack(list(inputs.values()), axis=1)
    assert messages(Series(u, settle(u.sum(1), noise=0.02), input_names=list(inputs))) == []


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("digits", [16, 4, 3, 2])
def test_a_system_that_settles_is_not_clipped_or_stuck(steps, noise, digits):
    """The largest output is repeated for long, but it is approached by smaller and smaller steps."""
    assert messages(Series(steps, np.round(settle(steps, noise=noise), digits))) == []


@pytest.mark.parametrize("bits", [8, 12])
def test_the_peaks_of_a_rounded_sine_are_not_limits(bits):
    sine = np.sin(2.0 * np.pi * np.arange(1000) / 187.3)
    scale = 2.0 ** (bits - 1) - 1.0
    assert messages(Series(sine, np.round(scale * sine) / scale)) == []
    assert len(messages(Series(sine, np.round(scale * np.clip(1.2 * sine, -1.0, 1.0)) / scale))) == 1


def test_rest_and_dead_time_are_not_stuck():
    u = np.repeat([0.0, 1.0, 0.0, 1.0], 100)
    assert messages(Series(u, np.round(np.concatenate([np.zeros(30), settle(u)[:-30]]), 3))) == []


def test_a_slow_sensor_is_not_stuck_or_rounded(rng):
    for held in (5, 10, 30):
        assert messages(Series(rng.normal(size=600), np.repeat(rng.normal(size=600 // held), held))) == []


def test_short_and_odd_columns_are_not_judged(rng):
    nan = np.nan
    assert messages(Series(None, np.round(rng.normal(size=40)))) == []
    assert messages(Series(None, np.full(100, 3.0))) == []  # refused by every fit
    assert messages(Series(None, np.full(100, nan))) == []
    assert messages(Series(None, np.tile([1.0, nan, 2.0, nan], 100))) == messages(Series(None, np.zeros((0, 1)))) == []
    for scale in (1e308, 1e-320):
        record = Series(rng.uniform(-1, 1, 100) * scale, np.round(3.0 * rng.uniform(-1, 1, 100)) * (scale / 3.0))
        with np.errstate(all="raise"):
            messages(record)


def test_missing_values_end_a_run(rng):
    y = rng.normal(size=ROWS)
    y[100:138] = 0.5
    assert len(messages(Series(None, y))) == 1
    y[119] = np.nan
    assert messages(Series(None, y)) == []  # runs of 19 and 18 rows


@pytest.mark.parametrize("name", [name for name in datasets.names() if name != "cmu35"])
def test_the_data_sets_are_silent(recorded_data, name):
    """Looked at one by one: none is clipped, none rounded by more than 0.04 standard deviations, none stuck."""
    split = datasets.load(name)
    for part in (split.train, split.test):
        assert messages(*([part] if isinstance(part, Series) else part)) == []


def test_motions_are_silent(recorded_data):
    train, test = cmu35.load_split()
    assert messages(*train) == messages(*test) == []
