"""Errors to compare a model with: of the training mean, and of linear models; the rule that compares candidates."""

import numpy as np
import pytest

from revarb.data.preprocessor import Preprocessor
from revarb.data.windows import Order
from revarb.errors import ComputationError, InputError
from revarb.fitting.arx import build_narx_rows, mark_complete, select_columns, solve_least_squares
from revarb.fitting.held_out import FOLDS, compute_held_out_error, cut_held_out_blocks, hold_out, mask_fold
from revarb.fitting.reference_errors import (
    compare_with_best,
    count_coefficients,
    count_complete,
    find_simplest,
    limit_to_gaps,
    list_small_orders,
    measure_linear,
    measure_mean,
    validate_linear,
)
from support import small
from support.linear_systems import arx_record


def hold(records, largest, settle=10**6):
    """Blocks of the records with runs from their beginnings only, unless `settle` is smaller."""
    return hold_out(records, cut_held_out_blocks(records, Preprocessor.from_records(records, largest)), settle)


@pytest.fixture(scope="module")
def validated():
    """Two records, a gap, and what was found on them."""
    records = [small.with_gaps(small.record(0, samples=110, outputs=2), slice(40, 43)), small.record(1, 50, outputs=2)]
    largest = Order(3, 2, 1)
    held_out = hold(records, largest)
    return held_out, largest, validate_linear(held_out, largest)


def test_the_folds_are_plain_least_squares(validated):
    held_out, largest, found = validated
    for fold, model in found.folds.items():
        masked = mask_fold(held_out.records, held_out.blocks, fold)
        prep = Preprocessor.from_records(masked, largest)
        rows = build_narx_rows(prep, masked)
        plain = solve_least_squares(rows, select_columns(prep, found.order), mark_complete(rows))
        np.testing.assert_allclose(model.model.coefficients, plain.coefficients, atol=1e-10)
        np.testing.assert_allclose(model.model.offset, plain.offset, atol=1e-10)
        np.testing.assert_array_equal(model.scaling.y_mean, prep.scaling.y_mean)


def test_the_errors_are_those_of_a_plain_loop(validated):
    held_out, largest, found = validated
    for block, error in zip(held_out.blocks, found.errors, strict=True):
        prep, model = found.folds[block.fold].preprocessor, found.folds[block.fold].model
        record = held_out.records[block.record]
        u, y = prep.scaling.inputs(record.u), np.zeros(record.y.shape)
        for k in range(largest.reach, len(record)):
            past = [y[k - age] if k - age >= largest.reach else np.zeros(2) for age in range(1, largest.lags + 1)]
            x_hat = np.concatenate([*past, *(u[k - age] for age in range(1, largest.input_lags + 1))])
            y[k] = x_hat @ model.coefficients + model.offset
        errors = (prep.scaling.raw_outputs(y) - record.y)[block.rows] / held_out.scaling.y_std
        assert error == pytest.approx(np.sqrt(np.nanmean(errors**2)), rel=1e-8)


def test_orders_with_too_many_coefficients_are_not_tried():
    records = [small.record(samples=100, inputs=2)]
    orders = list_small_orders(records, Order(10, 10, 1))
    assert max(count_coefficients(order, records[0]) for order in orders) == 10
    assert Order(6, 2, 1) in orders and Order(7, 2, 1) not in orders
    assert list_small_orders([small.record(samples=12, inputs=2)], Order(3, 3, 1)) == [Order(1, 1, 1)]


def test_gaps_reduce_the_largest_order():
    scarce = [small.with_gaps(small.record(samples=20, outputs=2), (6, 0), (9, 1)), small.record(samples=5)]
    assert [count_complete(scarce, lags) for lags in (1, 2, 3)] == [16 + 5, 14 + 5, 13 + 5]
    largest, record = Order(20, 20, 1), small.record(samples=600)
    assert limit_to_gaps([small.record(samples=100)], largest) == largest  # without gaps it stays
    scattered = small.with_gaps(record, slice(7, None, 15))
    assert limit_to_gaps([scattered], largest) == Order(5, 20, 1)
    assert limit_to_gaps([small.with_gaps(record, slice(300, 310))], largest) == largest
    assert limit_to_gaps([small.with_gaps(small.record(samples=300), 150)], largest) == Order(10, 10, 1)
    assert limit_to_gaps([small.with_gaps(record, slice(0, None, 2))], largest).lags == 1
    most = count_complete([scattered], 5) // 10
    assert max(order.lags + order.input_lags for order in list_small_orders([scattered], Order(5, 50, 1))) <= most


def test_a_known_order_is_found_also_where_gaps_are_scattered():
    largest = Order(20, 20, 1)
    found = validate_linear(hold([arx_record(0, 400)], Order(5, 4, 1), settle=20), Order(5, 4, 1))
    assert found.order == Order(2, 1, 1) and found.errors.max() < 0.1
    found = validate_linear(hold([small.with_gaps(arx_record(0, 600), slice(7, None, 15))], largest), largest)
    assert {model.order for model in found.folds.values()} == {Order(5, 20, 1)}
    assert all(model.model.coefficients.shape == (25, 1) for model in found.folds.values())
    assert found.order.lags == 2 and found.errors.max() < 0.2


def test_records_without_a_complete_row_have_no_linear_error():
    held_out = hold([small.with_gaps(small.record(samples=200), slice(0, None, 2))], Order(4, 4, 1))
    with pytest.raises(InputError, match="no row of the records has all its past outputs measured; fill the gaps"):
        validate_linear(held_out, Order(4, 4, 1))
    assert measure_linear(held_out, Order(4, 4, 1)) is None


def test_the_mean_of_the_other_folds():
    record = small.with_gaps(small.record(samples=150), slice(60, 63))
    held_out, errors = hold([record], Order(2, 2, 1)), []
    for block in held_out.blocks:
        [rest] = mask_fold([record], held_out.blocks, block.fold)
        square = np.nanmean((record.y[block.rows] - np.nanmean(rest.y)) ** 2)
        errors.append(np.sqrt(square) / np.nanstd(record.y))
    assert measure_mean(held_out) == pytest.approx(np.exp(np.mean(np.log(errors))))


def test_a_linear_system_is_simulated_by_arx_and_a_gap_is_left_out():
    """A block without any measurement has no error, and the others decide."""
    record = arx_record(0, 200, noise=0.0)
    full = hold([record], Order(2, 2, 1))
    gap = hold([small.with_gaps(record, full.blocks[3].rows)], Order(2, 2, 1))
    for held_out in (full, gap):
        assert measure_linear(held_out, Order(2, 2, 1)) < 1e-4 < 0.5 < measure_mean(held_out)
    errors = validate_linear(gap, Order(2, 2, 1)).errors
    assert np.isnan(errors[3]) and np.isfinite(np.delete(errors, 3)).all()
    assert measure_linear(gap, Order(2, 2, 1)) == compute_held_out_error(errors) and FOLDS == 4


ERRORS = np.array([[0.2, 0.4, 0.8], [0.22, 0.38, 0.88], [0.4, 0.8, 1.6]])


def test_candidates_are_compared_block_by_block():
    best, differences, deviations = compare_with_best(ERRORS)
    ratios = np.log([0.22 / 0.2, 0.38 / 0.4, 0.88 / 0.8])
    spread = np.sqrt(np.sum((ratios - ratios.mean()) ** 2) / 2.0)
    assert best == 0
    np.testing.assert_allclose(differences, [0.0, ratios.mean(), np.log(2.0)], atol=1e-15)
    np.testing.assert_allclose(deviations, [0.0, spread / np.sqrt(3.0), 0.0], atol=1e-15)


@pytest.mark.parametrize(
    ("errors", "complexity", "taken"),
    [
        # Candidate 1 is within one standard error of the best; 2 is twice as bad on every block, and never is.
        (ERRORS, [2, 1, 0], 1),
        (ERRORS, [1, 2, 0], 0),
        (ERRORS[:2] * [[1.0], [1.2]], [1, 0], 0),
        (ERRORS[:2], [5, 5], 0),  # ties go to the better one
        (ERRORS[[0, 0, 0]], [3, 1, 2], 1),  # equal errors
        (ERRORS[[0, 0, 0], :1], [2, 0, 1], 1),  # one block, without a standard error
        (np.array([[0.0, 0.0], [0.1, 0.1]]), [1, 0], 0),  # an exact model
    ],
)
def test_the_simplest_within_one_standard_error_is_taken(errors, complexity, taken):
    assert find_simplest(errors, complexity) == taken


def test_a_run_that_diverged_is_never_taken():
    diverged = np.array([[0.1, np.inf, 0.1], [0.5, 0.5, 0.5], [np.inf, np.inf, np.inf]])
    best, differences, deviations = compare_with_best(diverged)
    assert best == 1 and differences[0] == differences[2] == np.inf and not deviations.any()
    assert find_simplest(diverged, [0, 5, 1]) == 1
    with pytest.raises(ComputationError, match="the held-out simulations of all candidates diverged"):
        compare_with_best(diverged[[0, 2]])
