"""Records that drift, and records that do not."""

import numpy as np
import pytest

import revarb
from revarb.data.drift import MIN_ROWS, find_drift
from revarb.data.quality import warn_about_quality
from revarb.data.series import Series
from support.linear_systems import arx_record

ROWS = 400
LAST = np.arange(ROWS) > 2 * ROWS // 3


def record(seed, offset=0.0, gain=1.0):
    """A linear system whose output gets an offset that grows from the middle on, or another gain in the last third."""
    known = arx_record(seed, ROWS, noise=0.05)
    ramp = np.clip(np.arange(ROWS) / ROWS - 0.5, 0.0, None)[:, None] / 0.5
    y = known.y * np.where(LAST, gain, 1.0)[:, None] + offset * known.y.std() * ramp
    return Series(known.u, y)


@pytest.mark.parametrize("seed", range(12))
def test_steady_records_do_not_drift(seed):
    assert not find_drift(record(seed)).any()


@pytest.mark.parametrize("seed", range(3))
def test_a_growing_offset_and_another_gain_are_found(seed):
    assert find_drift(record(seed, offset=1.0)).all() and find_drift(record(seed, gain=0.5)).all()


def test_gaps_do_not_hide_it_and_short_records_are_not_judged():
    drifting = record(0, offset=1.0)
    y = drifting.y.copy()
    y[30:40] = y[300] = np.nan
    assert find_drift(Series(drifting.u, y)).all()
    y[::2] = np.nan  # no row is complete
    assert not find_drift(Series(drifting.u, y)).any()
    assert not find_drift(drifting[: MIN_ROWS - 1]).any()
    exact = np.sin(np.arange(ROWS) ** 1.2)
    assert not find_drift(Series(exact[:-1], exact[1:])).any()


def test_the_warning_names_outputs_and_record():
    with pytest.warns(
        revarb.QualityWarning, match="output 'y' drifts: the last third is unlike the first two, .*leave"
    ):
        warn_about_quality([record(0, offset=1.0)])
    with pytest.warns(revarb.QualityWarning, match="output 'y' drifts: the last third of record 1 is unlike"):
        warn_about_quality([record(1), record(0, offset=1.0)])
