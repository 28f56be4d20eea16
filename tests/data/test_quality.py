"""Warnings about clipped, rounded and stuck columns; none about records as they usually are."""

import re
import warnings

import numpy as np
import pytest

from revarb import datasets
from revarb.data.quality import warn_about_quality
from revarb.data.series import Series
from revarb.errors import QualityWarning
from support.data_sets import list_records

ROWS = 400
STEPS = np.repeat([0.0, 1.0, 0.0, 2.0], ROWS // 4)
SINE = np.sin(2.0 * np.pi * np.arange(1000) / 187.3)
PRBS = np.repeat(np.random.default_rng(0).choice([-1.0, 1.0], ROWS // 8), 8)
WHITE = np.random.default_rng(1).normal(size=ROWS)


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


def hold(values, first, last, value=None):
    """The values, with one of them in rows `first` to `last`."""
    held = values.copy()
    held[first : last + 1] = values[first] if value is None else value
    return held


NOISY = settle(PRBS, noise=0.02)
CLIPPED, BOTH = np.minimum(NOISY, 0.5), np.clip(WHITE, -1.5, 1.5)
SLOW = np.clip(settle(WHITE), -0.25, 9.0)
LIMITED = np.round(127 * np.clip(1.2 * SINE, -1.0, 1.0)) / 127
HELD, REST = hold(WHITE, 100, 129, 9.0), settle(PRBS)
STUCK = hold(NOISY, 200, 239)
WARNED = [
    (PRBS, CLIPPED, rf"output 'y' is at its largest value, 0.5, in {(CLIPPED == 0.5).sum()} of {ROWS} rows, up to .*"
     r"make these values missing \(NaN\) or measure with a wider range; if it is a limit of the system, nothing is"),
    (settle(WHITE), BOTH, f"is at its smallest value, -1.5, in {(BOTH == -1.5).sum()} and at its largest value, 1.5, "
     f"in {(BOTH == 1.5).sum()} of {ROWS} rows"),
    (SINE, LIMITED, "output 'y' is at its smallest value, -1, in "),
    (None, HELD, r"in 30 of 400 rows, up to 30 in a row \(rows 100 to 129\);"),
    (SLOW, settle(SLOW, noise=0.02), "input 'u' is at its smallest value, -0.25, in .*pass the signal that acted on "
     "the system instead; if that was limited itself, nothing is wrong"),
    (PRBS, STUCK, r"'y' keeps one value for 40 rows \(rows 200 to 239\), usually for 1; if a sensor or "),
    (PRBS, hold(STUCK, 300, 324), r"40 rows \(rows 200 to 239, the longest of 2 such runs\), usually for 1"),
    # Without noise, and from the start of the record: only the input shows that the system cannot be at rest.
    (PRBS, hold(REST, 0, 59, REST[60]), r"for 61 rows \(rows 0 to 60\)"),
]  # fmt: skip


@pytest.mark.parametrize(("u", "y", "expected"), WARNED)
def test_columns_that_a_sensor_or_logger_has_spoiled(u, y, expected):
    [message] = messages(Series(u, y))
    assert re.search(expected, message), message


def test_a_rounded_output_and_its_error_which_is_that_of_a_uniform_distribution(rng):
    for resolution in (0.2, 0.5, 2.0):
        y = np.round(NOISY / resolution) * resolution
        y[5] = 4.0 * resolution  # so that even the coarsest has two values
        [message] = messages(Series(PRBS, y))
        assert f"'y' has only {len(np.unique(y))} different values in {ROWS} rows, {resolution:g} apart: " in message
        assert "no model explains; log it with more digits" in message
    y = np.round(3.0 * rng.normal(size=100_000))
    [message] = messages(Series(None, y))
    error = np.std(3.0 * rng.normal(size=100_000) % 1.0) / np.std(y)
    assert f"rounding alone is an error of {error:.2f} standard deviations" in message


def test_every_kind_is_said_once_with_the_names_of_other_columns():
    y = np.stack([settle(PRBS, noise=0.02, seed=seed) for seed in range(8)], axis=1)
    message, other = messages(Series(PRBS, np.hstack([np.minimum(y, 0.5), np.round(y[:, :1])])))
    assert "'y0' is at its largest value" in message
    assert "; likewise 'y1', 'y2', 'y3', 'y4', 'y5' and 2 more; if a sensor" in message
    assert other.startswith("output 'y8' has only 3 different values")
    [message] = messages(Series(None, WHITE[:80]), Series(None, HELD))
    assert "in 30 of 480 rows, up to 30 in a row (rows 100 to 129 of record 1);" in message


SILENT = {
    # Repeated for long, but approached by smaller and smaller steps.
    **{f"settles, {noise}, {digits} digits": (STEPS, np.round(settle(STEPS, noise=noise), digits))
       for noise in (0.0, 0.01, 0.05) for digits in (16, 4, 3, 2)},
    **{f"sine, {scale + 1}": (SINE, np.round(scale * SINE) / scale) for scale in (127, 2047)},
    **{f"slow sensor, {rows}": (None, np.repeat(WHITE[: ROWS // rows], rows)) for rows in (5, 10, 20)},
    "at rest": (np.where(np.arange(ROWS) < 60, 1.0, PRBS), hold(REST, 0, 59, REST[60])),
    "dead time": (STEPS.clip(0, 1), np.round(np.concatenate([np.zeros(30), settle(STEPS.clip(0, 1))[:-30]]), 3)),
    "few values": (None, np.round(WHITE[:40])),
    "constant, which every fit refuses": (None, np.full(100, 3.0)),
    "not measured": (None, np.full(100, np.nan)),
    "every other value missing": (None, np.tile([1.0, np.nan, 2.0, np.nan], 100)),
    "no rows": (None, np.zeros((0, 1))),
    "runs of 19 and 18 rows": (None, hold(hold(settle(WHITE), 100, 137, 0.0), 119, 119, np.nan)),
}  # fmt: skip


@pytest.mark.parametrize(("u", "y"), SILENT.values(), ids=SILENT)
def test_records_as_they_usually_are(u, y):
    assert messages(Series(u, y)) == []


def test_test_signals_are_normal_inputs(rng):
    rows = np.arange(ROWS)
    inputs = {
        "two levels": PRBS,
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


@pytest.mark.parametrize("scale", [1e308, 1e-320])
def test_values_that_overflow_are_not_judged(rng, scale):
    record = Series(rng.uniform(-1, 1, 100) * scale, np.round(3.0 * rng.uniform(-1, 1, 100)) * (scale / 3.0))
    with np.errstate(all="raise"):
        messages(record)


SAID_OF_TEST = {"cascaded_tanks": "is at its largest value, 10"}
SAID_OF_TRAINING = SAID_OF_TEST | dict.fromkeys(["heating", "thermic"], "drifts: the last third is unlike the first")


@pytest.mark.parametrize("name", datasets.names())
def test_what_is_said_of_the_data_sets(recorded_data, name):
    """Looked at one by one: none is rounded by more than 0.04 standard deviations, none stuck, and one is clipped.

    The training parts of two drift, and the tanks overflow.
    """
    split = datasets.load(name)
    for part, known in ((split.train, SAID_OF_TRAINING), (split.test, SAID_OF_TEST)):
        found = [said for record in list_records(part) for said in messages(record)]
        assert len(found) == (name in known) and all(known[name] in said for said in found)


def test_a_shuffled_record_is_said_and_one_in_order_is_not(rng):
    """White noise drives the system: the inputs alone do not show the order."""
    u = rng.normal(size=ROWS)
    y = settle(u, pole=0.5, noise=0.1)
    rows = rng.permutation(ROWS)
    assert messages(Series(u, y)) == []
    [said] = messages(Series(u[rows], y[rows]))
    assert said.startswith("the rows may not be in order of time") and "--sort-time" in said
