"""Held-out quarters of records: tails, and rows that use no held-out sample."""

import numpy as np
import pytest

from revarb.data.preprocessor import Preprocessor
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.fitting.quarters import (
    QUARTERS,
    TAIL,
    compute_quarter_errors,
    estimate_residual_std,
    find_measured_quarter,
    locate_quarter,
    rms_error,
    select_rows_outside,
)
from support import small


@pytest.mark.parametrize("lengths", [[10], [7, 33], [9, 8, 12, 30, 5]])
def test_quarters_cover_every_sample_once(lengths):
    quarters = [locate_quarter(lengths, number) for number in range(QUARTERS)]
    for length, *held in zip(lengths, *quarters, strict=True):
        assert sorted(k for each in held for k in range(length)[each]) == list(range(length))


def test_the_tail_is_the_end_of_a_record_and_whole_records_where_there_are_many():
    assert locate_quarter([100, 40], TAIL) == [slice(75, 100), slice(30, 40)]
    assert [held.stop for held in locate_quarter([9, 8, 12, 30, 5], TAIL)] == [0, 0, 0, 30, 0]


@pytest.mark.parametrize("number", range(QUARTERS))
@pytest.mark.parametrize("lengths", [[40], [30, 25], [30, 20, 20, 20, 30]])
def test_rows_outside_use_no_sample_of_the_quarter(lengths, number):
    """Every sample that a row uses, as target or regressor, by a plain loop."""
    order = Order(2, 3, 1)
    prep = Preprocessor.from_records([small.record(samples=length) for length in lengths], order)
    expected = []
    for length, held in zip(lengths, locate_quarter(lengths, number), strict=True):
        inside = set(range(held.start, held.stop))
        for i in range(order.first_row, length):
            used = {i, *(i - age for age in range(1, 3)), *(i - 1 - age for age in range(3))}
            expected.append(not used & inside)
    np.testing.assert_array_equal(select_rows_outside(prep, lengths, number), expected)


def test_too_few_rows_or_errors_are_refused():
    prep = Preprocessor.from_records([small.record(samples=13)], Order(10, 10, 1))
    with pytest.raises(InputError, match="leave no training rows beside a held-out quarter"):
        select_rows_outside(prep, [13], 0)
    record = small.record(samples=8)
    prep = Preprocessor.from_records([record], Order(1, 1, 1))
    with pytest.raises(InputError, match=r"leave 2 held-out one\(s\) to judge the model by, and 3 are needed"):
        compute_quarter_errors(prep, [record], [np.zeros((8, 1))], TAIL)


def test_errors_are_those_inside_the_quarter():
    """Without the first rows of a run, the transient; but at least half of a quarter counts."""
    record = small.record(samples=40)
    for order, quarter, rows in ((2, TAIL, (30, 40)), (2, 0, (4, 10)), (10, 0, (5, 10))):
        prep = Preprocessor.from_records([record], Order(order, order, 1))
        run = prep.scaling.outputs(record.y) + np.arange(40.0)[:, None]
        np.testing.assert_allclose(compute_quarter_errors(prep, [record], [run], quarter)[:, 0], np.arange(*rows))


def test_sizes():
    assert rms_error(np.array([[3.0], [-4.0]])) == pytest.approx(np.sqrt(12.5))
    assert rms_error(np.array([[np.nan]])) == np.inf and rms_error(np.array([[1e200]])) == np.inf
    np.testing.assert_allclose(estimate_residual_std(np.array([[3.0, 1.0], [-4.0, 1.0]])), [np.sqrt(12.5), 1.0])
    assert estimate_residual_std(np.zeros((3, 1))) == 1e-3  # the standard deviation of a band is positive


def test_a_tail_without_measurements_is_replaced_by_the_best_measured_quarter():
    order = Order(2, 2, 1)
    many = [small.record(seed, samples=20 + seed) for seed in range(6)]
    prep = Preprocessor.from_records(many, order)
    assert find_measured_quarter(prep, many) == TAIL
    without = [*many[:3], small.with_gaps(many[3], slice(None)), *many[4:]]
    assert find_measured_quarter(prep, without) == 1  # two records, which are longer than those of quarter 0
    one = small.with_gaps(small.record(), slice(0, 28), slice(40, None))
    assert find_measured_quarter(prep, [one]) == 2
    assert find_measured_quarter(prep, [small.with_gaps(small.record(), slice(prep.skip, None))]) == TAIL
