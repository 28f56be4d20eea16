"""Linear candidates: the order by held-out stretches, for each input delay."""

import numpy as np
import pytest

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.training import choose, linear_trial
from revarb.training.linear_choice import (
    count_coefficients,
    count_complete,
    limit_to_gaps,
    list_small_orders,
    score_linear,
)
from revarb.training.linear_fit import select_columns, solve_least_squares
from revarb.training.linear_trial import find_delay, try_linear
from revarb.training.narx_rows import build_narx_rows, mark_complete
from revarb.training.segments import cut_segments
from revarb.training.stretches import FOLDS, cut_stretches, mask_fold
from revarb.training.trials import Scored
from support import small


def arx_record(seed, samples, noise=0.02, delay=1):
    """y[k] = 1.2 y[k−1] − 0.5 y[k−2] + u[k−delay], and noise in the equation."""
    rng = np.random.default_rng(seed)
    u, y = rng.normal(size=samples), np.zeros(samples)
    for k in range(2, samples):
        y[k] = 1.2 * y[k - 1] - 0.5 * y[k - 2] + noise * rng.normal()
        y[k] += u[k - delay] if k >= delay else 0.0
    return Series(u, y)


@pytest.fixture(scope="module")
def scored():
    """Two records, a gap, and what was found on them."""
    records = [small.with_gaps(small.record(0, samples=110, outputs=2), slice(40, 43)), small.record(1, 50, outputs=2)]
    largest = Order(3, 2, 1)
    stretches = cut_stretches(records, Preprocessor.from_records(records, largest))
    return records, stretches, largest, score_linear(records, stretches, cut_segments(records, stretches), largest)


def test_the_folds_are_plain_least_squares(scored):
    records, stretches, largest, found = scored
    for fold in range(FOLDS):
        masked = mask_fold(records, stretches, fold)
        prep = Preprocessor.from_records(masked, largest)
        rows = build_narx_rows(prep, masked)
        plain = solve_least_squares(rows, select_columns(prep, found.order), mark_complete(rows))
        np.testing.assert_allclose(found.folds[fold].coefficients, plain.coefficients, atol=1e-10)
        np.testing.assert_allclose(found.folds[fold].offset, plain.offset, atol=1e-10)
        np.testing.assert_array_equal(found.preprocessors[fold].scaling.y_mean, prep.scaling.y_mean)


def test_the_errors_are_those_of_a_plain_loop(scored):
    records, stretches, largest, found = scored
    y_std = Standardiser.from_records(records).y_std
    for stretch, error in zip(stretches, found.errors, strict=True):
        prep, model = found.preprocessors[stretch.fold], found.folds[stretch.fold]
        record = records[stretch.record]
        u, y = prep.scaling.inputs(record.u), np.zeros(record.y.shape)
        for k in range(largest.reach, len(record)):
            past = [y[k - age] if k - age >= largest.reach else np.zeros(2) for age in range(1, largest.lags + 1)]
            x_hat = np.concatenate([*past, *(u[k - age] for age in range(1, largest.input_lags + 1))])
            y[k] = x_hat @ model.coefficients + model.offset
        errors = (prep.scaling.raw_outputs(y) - record.y)[stretch.rows] / y_std
        assert error == pytest.approx(np.sqrt(np.nanmean(errors**2)), rel=1e-8)


def test_a_known_order_is_found():
    records = [arx_record(0, 400)]
    largest = Order(5, 4, 1)
    stretches = cut_stretches(records, Preprocessor.from_records(records, largest))
    found = score_linear(records, stretches, cut_segments(records, stretches), largest)
    assert found.order == Order(2, 1, 1)
    for prep, model in zip(found.preprocessors, found.folds, strict=True):
        np.testing.assert_allclose(model.coefficients[:5, 0], [1.2, -0.5, 0.0, 0.0, 0.0], atol=0.02)
        assert model.coefficients[5, 0] == pytest.approx(prep.scaling.u_std[0] / prep.scaling.y_std[0], rel=0.02)


def test_orders_with_too_many_coefficients_are_not_tried():
    records = [small.record(samples=100, inputs=2)]
    orders = list_small_orders(records, Order(10, 10, 1))
    scaling = Standardiser.from_records(records)
    assert max(count_coefficients(order, scaling) for order in orders) == 10
    assert Order(6, 2, 1) in orders and Order(7, 2, 1) not in orders
    assert list_small_orders([small.record(samples=12, inputs=2)], Order(3, 3, 1)) == [Order(1, 1, 1)]


def test_complete_rows():
    record = small.with_gaps(small.record(samples=20, outputs=2), (6, 0), (9, 1))
    assert [count_complete([record, small.record(samples=5)], lags) for lags in (1, 2, 3)] == [16 + 5, 14 + 5, 13 + 5]
    assert count_complete([small.record(samples=30)], 20) == 30


def test_gaps_reduce_the_largest_order():
    largest, record = Order(20, 20, 1), small.record(samples=600)
    assert limit_to_gaps([small.record(samples=100)], largest) == largest  # without gaps it stays
    scattered = small.with_gaps(record, slice(7, None, 15))
    assert limit_to_gaps([scattered], largest) == Order(5, 20, 1)
    assert limit_to_gaps([small.with_gaps(record, slice(300, 310))], largest) == largest
    assert limit_to_gaps([small.with_gaps(small.record(samples=300), 150)], largest) == Order(10, 10, 1)
    assert limit_to_gaps([small.with_gaps(record, slice(0, None, 2))], largest).lags == 1
    most = count_complete([scattered], 5) // 10
    assert max(order.lags + order.input_lags for order in list_small_orders([scattered], Order(5, 50, 1))) <= most


def test_scattered_gaps_leave_a_model():
    records, largest = [small.with_gaps(arx_record(0, 600), slice(7, None, 15))], Order(20, 20, 1)
    stretches = cut_stretches(records, Preprocessor.from_records(records, largest))
    found = score_linear(records, stretches, cut_segments(records, stretches), largest)
    assert {prep.order for prep in found.preprocessors} == {Order(5, 20, 1)}
    assert all(model.coefficients.shape == (25, 1) for model in found.folds)
    assert found.order.lags == 2 and found.errors.max() < 0.2


def test_records_without_a_complete_row_are_refused():
    records, largest = [small.with_gaps(small.record(samples=200), slice(0, None, 2))], Order(4, 4, 1)
    stretches = cut_stretches(records, Preprocessor.from_records(records, largest))
    with pytest.raises(InputError, match="no row of the records has all its past outputs measured; fill the gaps"):
        score_linear(records, stretches, cut_segments(records, stretches), largest)


@pytest.fixture
def few_orders(monkeypatch):
    for module in (choose, linear_trial):
        monkeypatch.setattr(module, "MORE_LAGS", 4)
    monkeypatch.setattr(linear_trial, "DELAYS", (1, 0, 8, 16))


def test_a_candidate_for_every_delay(few_orders):
    held_out = choose._hold_out([arx_record(0, 130, delay=8)])
    tried = try_linear(held_out)
    assert [each.order.input_delay for each in tried] == [1, 0, 8]  # the first stretch begins at row 8
    best = min(tried, key=lambda each: np.mean(np.log(each.errors)))
    assert best.order == Order(2, 1, 8) and best.name == "linear, 2 + 1 lags, delay 8"
    assert best.complete and best.structure is None and best.complexity == (False, 0.0, 3)
    for fold, model in best.folds.items():
        prep = Preprocessor.from_records(mask_fold(held_out.records, held_out.stretches, fold), Order(4, 1, 8))
        np.testing.assert_array_equal(model.scaling.y_mean, prep.scaling.y_mean)


def test_without_inputs_there_is_one_candidate(few_orders):
    y = np.sin(0.3 * np.arange(150.0)) + 0.02 * np.random.default_rng(0).normal(size=150)
    [only] = try_linear(choose._hold_out([Series(None, y)]))
    assert only.order.input_lags == 0 and only.order.input_delay == 1


def test_a_failure_of_one_delay_leaves_the_others(few_orders, monkeypatch):
    real = score_linear

    def refuse(records, stretches, segments, largest):
        if largest.input_delay == 0:
            raise InputError("too short")
        return real(records, stretches, segments, largest)

    monkeypatch.setattr(linear_trial, "score_linear", refuse)
    tried = try_linear(choose._hold_out([arx_record(0, 130)]))
    assert [each.order.input_delay for each in tried] == [1, 8]


def hand_made(**errors):
    """Linear candidates by their delay."""
    return [
        Scored("linear", (False, 0.0, 2), np.array(values), 0.0, {}, order=Order(1, 1, int(name[1:])))
        for name, values in errors.items()
    ]


def test_the_delay_of_nonlinear_candidates():
    usual = [0.5, 0.4, 0.6, 0.5]
    worse, better = [0.51, 0.41, 0.61, 0.51], [0.3, 0.2, 0.3, 0.3]
    assert find_delay([]) == find_delay(hand_made(d0=usual)) == 1
    assert find_delay(hand_made(d1=usual, d0=worse)) == 1
    assert find_delay(hand_made(d1=usual, d0=better)) == 0
    assert find_delay(hand_made(d1=usual, d0=[0.2, 0.8, 0.7, 0.45])) == 1  # better, but within one standard error
    assert find_delay(hand_made(d1=usual, d16=better, d0=worse)) == 16


def test_a_long_dead_time_must_be_clear():
    usual = [0.9, 0.8, 0.9, 0.8]
    assert find_delay(hand_made(d1=usual, d8=[0.6, 0.5, 0.6, 0.5])) == 1  # it does not follow the record
    assert find_delay(hand_made(d1=usual, d8=[0.3, 0.2, 0.3, 0.2])) == 8
    assert find_delay(hand_made(d1=usual, d8=[0.1, 0.8, 0.1, 0.9])) == 1  # better by less than two standard errors


def test_diverged_runs_do_not_say_anything_about_the_delay():
    usual, diverged = [0.5, 0.4, 0.6, 0.5], [0.2, np.inf, 0.2, 0.2]
    assert find_delay(hand_made(d1=usual, d8=diverged)) == 1
    assert find_delay(hand_made(d1=diverged, d8=diverged)) == 1
