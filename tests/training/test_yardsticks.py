import numpy as np
import pytest

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.training.stretches import cut_stretches, mask_fold
from revarb.training.yardsticks import measure_linear, measure_mean
from support import small

ORDER = Order(2, 2, 1)


@pytest.fixture
def record():
    """A linear system, with a gap."""
    u = np.random.default_rng(0).normal(size=200)
    y = np.convolve(u, 0.8 ** np.arange(60.0))[:200]
    return small.with_gaps(Series(u[1:], y[:-1]), slice(100, 103))


def cut(record):
    return cut_stretches([record], Preprocessor.from_records([record], ORDER))


def test_the_mean_of_the_other_folds(record):
    stretches = cut(record)
    errors = measure_mean([record], stretches)
    stretch = stretches[5]
    [rest] = mask_fold([record], stretches, stretch.fold)
    expected = np.sqrt(np.nanmean((record.y[stretch.rows] - np.nanmean(rest.y)) ** 2)) / np.nanstd(record.y)
    assert len(errors) == len(stretches) and errors[5] == pytest.approx(expected)


def test_a_stretch_without_measurements_has_no_error(record):
    stretches = cut(record)
    gap = small.with_gaps(record, stretches[3].rows)
    errors = measure_mean([gap], stretches)
    assert np.isnan(errors[3]) and np.isfinite(np.delete(errors, 3)).all()


def test_a_linear_system_is_simulated_by_arx(record):
    linear, mean = measure_linear([record], cut(record), ORDER), measure_mean([record], cut(record))
    assert linear is not None and np.nanmedian(linear) < 1e-4 < np.nanmedian(mean)


def test_records_without_a_complete_row_have_no_linear_error(record):
    y = record.y.copy()
    y[::2] = np.nan
    assert measure_linear([Series(record.u, y)], cut(record), Order(3, 3, 1)) is None
