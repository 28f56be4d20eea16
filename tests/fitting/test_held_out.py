"""Held-out blocks, cold runs over them, and the one held-out error."""

from itertools import pairwise

import numpy as np
import pytest

from fuzz import samples
from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.windows import Order
from revarb.errors import ComputationError
from revarb.fitting.held_out import (
    FOLDS,
    HELD_OUT_BLOCKS,
    SMALLEST,
    HeldOutBlock,
    compute_held_out_error,
    cut_held_out_blocks,
    cut_out_fold,
    hold_out,
    mask_fold,
    measure_block_errors,
    simulate_blocks,
)
from revarb.gp.layer import Linear
from revarb.models.fitted_arx import FittedARX
from revarb.models.status import Status
from revarb.simulation.mean import run_mean_cold
from support import small
from support.linear_systems import first_order_model, first_order_record

RECORDS = (small.record(0, samples=90), small.with_gaps(small.record(1, samples=61), slice(30, 36)))
BLOCKS = (
    HeldOutBlock(0, 10, 35, 0),
    HeldOutBlock(0, 50, 90, 1),
    HeldOutBlock(1, 28, 40, 2),
    HeldOutBlock(1, 40, 61, 3),
)


def preprocessor_of(*records):
    return Preprocessor(Standardiser.from_records(records), Order(2, 2, 1), ("u",), ("y",), 1.0)


@pytest.fixture(scope="module")
def record():
    return small.record(samples=150)


# Blocks and folds ----------------------------------------------------------------------------------------------------


def test_blocks_cover_a_record_and_neighbours_are_in_other_folds(record):
    found = cut_held_out_blocks([record], preprocessor_of(record))
    assert len(found) == HELD_OUT_BLOCKS and {block.fold for block in found} == set(range(FOLDS))
    assert found[0].begin == preprocessor_of(record).skip and found[-1].end == len(record)
    for one, other in pairwise(found):
        assert one.end == other.begin and one.fold != other.fold


def test_each_fold_is_masked_once(record):
    blocks = cut_held_out_blocks([record], preprocessor_of(record))
    masked = [mask_fold([record], blocks, fold)[0] for fold in range(FOLDS)]
    gaps = np.array([np.isnan(each.y[:, 0]) for each in masked])
    assert (gaps.sum(0)[4:] == 1).all() and not gaps[:, :4].any()
    for each, gap in zip(masked, gaps, strict=True):
        np.testing.assert_array_equal(each.y[~gap], record.y[~gap])


def test_a_fold_is_cut_out_without_gaps(record):
    """The same samples as with a mask, but for the transient before the first block."""
    blocks = cut_held_out_blocks([record], preprocessor_of(record))
    parts = cut_out_fold([record], blocks, 0)
    [masked] = mask_fold([record], blocks, 0)
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), masked.y[~np.isnan(masked.y)][4:, None])
    assert len(parts) == 3 and len(cut_out_fold([record, record], blocks, 0)[-1]) == len(record)


def test_several_records_are_shared_out_by_their_length():
    records = [small.record(0, samples=100), small.record(1, samples=50), small.record(2, samples=12)]
    found = cut_held_out_blocks(records, preprocessor_of(*records))
    by_record = [sum(block.record == k for block in found) for k in range(3)]
    assert by_record[0] > by_record[1] >= by_record[2] >= 1
    assert all(block.begin >= min(4, len(records[block.record]) // 2) for block in found)


def test_too_short_a_record_has_none():
    record = small.record(samples=60)
    assert cut_held_out_blocks([record], preprocessor_of(record)) == []
    assert small.spec(hidden=1, calibrate=True).fit(record).calibration is None


# Runs and errors -----------------------------------------------------------------------------------------------------


class SimulatesOnly:
    """A model of another kind: nothing but `simulate`."""

    def __init__(self, model):
        self.model = model

    def simulate(self, u):
        path = self.model.simulate(u)
        if not np.isfinite(path.mean).all():
            raise ComputationError("diverged")
        return path


@pytest.fixture(params=["RGP", "linear", "other"])
def model(request):
    if request.param == "RGP":
        return samples.model()
    return make_linear() if request.param == "linear" else SimulatesOnly(make_linear())


def make_linear(first=0.5):
    prep = Preprocessor.from_records(RECORDS, Order(2, 3, 2))
    coefficients = np.array([[first], [-0.2], [0.4], [0.3], [0.1]])
    return FittedARX(prep, Status.CONVERGED, 0, np.ones(1), Linear(coefficients, np.array([0.1])))


def test_errors_are_those_of_a_cold_run_of_each_record(model):
    held_out = hold_out(RECORDS, BLOCKS, settle=10**6)  # no late starts
    found = measure_block_errors(dict.fromkeys(range(FOLDS), model), held_out)
    simulated = simulate_blocks(model, held_out.runs)
    inner = getattr(model, "model", model) if isinstance(model, SimulatesOnly) else model
    prep = inner.preprocessor
    for number, (block, rms) in enumerate(zip(BLOCKS, found, strict=True)):
        record = RECORDS[block.record]
        expected = prep.scaling.raw_outputs(
            np.asarray(run_mean_cold(inner.chain, prep.order, prep.scaling.inputs(record.u)))
        )
        np.testing.assert_allclose(simulated[number], expected[block.rows], atol=1e-9)
        errors = (expected - record.y)[block.rows] / held_out.scaling.y_std
        assert rms == pytest.approx(np.sqrt(np.nanmean(errors**2)), rel=1e-9)


def test_late_runs_start_at_a_third_of_the_record():
    assert not hold_out(RECORDS, BLOCKS, 21).late_runs
    held_out = hold_out(RECORDS, BLOCKS, 20)
    assert held_out.late_numbers == (1, 3)  # the others begin in the first half
    runs = held_out.late_runs
    assert [(len(run.record), run.first, run.fold) for run in runs] == [(60, 20, 1), (41, 20, 3)]
    np.testing.assert_array_equal(runs[0].record.y, RECORDS[0].y[30:90])
    np.testing.assert_array_equal(runs[1].record.u, RECORDS[1].u[20:])


def test_what_was_not_measured_and_what_diverges():
    blocks = [HeldOutBlock(0, 30, 36, 0), HeldOutBlock(0, 30, 37, 0)]
    held_out = hold_out([RECORDS[1]], blocks, 10**6)
    nothing, one = measure_block_errors({0: make_linear()}, held_out)
    assert np.isnan(nothing) and np.isfinite(one)
    held_out = hold_out(RECORDS, BLOCKS, 10**6)
    for unstable in (make_linear(1e9), SimulatesOnly(make_linear(1e9))):
        assert measure_block_errors({1: unstable}, held_out)[1] == np.inf


def test_the_held_out_error_is_the_geometric_mean_over_measured_blocks():
    assert compute_held_out_error(np.array([0.1, np.nan, 0.4])) == pytest.approx(0.2)
    assert compute_held_out_error(np.array([0.1, np.inf])) == np.inf
    assert compute_held_out_error(np.zeros(3)) == pytest.approx(SMALLEST)


def test_an_integrator_that_starts_elsewhere_has_large_errors():
    """A record that goes up and down again: at a third of it the output is far from where a cold run starts."""
    record = first_order_record(1.0, np.repeat([1.0, -1.0, 0.0], 40))
    integrator = first_order_model(1.0, record)
    blocks = cut_held_out_blocks([record], integrator.preprocessor)
    folds, held_out = dict.fromkeys(range(FOLDS), integrator), hold_out([record], blocks, 0)
    errors, numbers = measure_block_errors(folds, held_out), list(held_out.late_numbers)
    early = measure_block_errors(folds, hold_out([record], blocks, 10**6))
    late = measure_block_errors(folds, held_out._replace(runs=held_out.late_runs, late_runs=(), late_numbers=()))
    assert early.max() < 1.0 < late.min()  # of the output's standard deviation
    assert numbers == [number for number, block in enumerate(blocks) if block.begin >= 60]
    expected = early.copy()
    expected[numbers] = np.sqrt(early[numbers] * late)  # one error per block
    np.testing.assert_allclose(errors, expected)
    partial = measure_block_errors({0: integrator}, held_out)
    assert [np.isnan(error) for error in partial] == [block.fold != 0 for block in blocks]
    np.testing.assert_allclose(partial[~np.isnan(partial)], expected[~np.isnan(partial)])


def test_a_late_run_that_overflows_makes_the_error_infinite():
    record = first_order_record(0.8, np.random.default_rng(0).normal(size=120))
    growing = first_order_model(1e30, record)
    held_out = hold_out([record], cut_held_out_blocks([record], growing.preprocessor), 0)
    errors = measure_block_errors(dict.fromkeys(range(FOLDS), growing), held_out)
    assert len(errors) == len(held_out.blocks) and np.isinf(errors[list(held_out.late_numbers)]).all()
