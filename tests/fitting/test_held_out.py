"""Held-out blocks, cold runs over them, and the one held-out error."""

from itertools import pairwise

import numpy as np
import pytest

from fuzz import samples
from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.windows import Order
from revarb.errors import ComputationError
from revarb.fitting.free_run import run_from_rest
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
from revarb.models.recipe import Status
from support import small
from support.linear_systems import first_order_model, first_order_record

RECORDS = (small.record(0, samples=90), small.with_gaps(small.record(1, samples=61), slice(30, 36)))
BLOCKS = tuple(HeldOutBlock(*block) for block in ((0, 10, 35, 0), (0, 50, 90, 1), (1, 28, 40, 2), (1, 40, 61, 3)))


def preprocessor_of(*records):
    return Preprocessor(Standardiser.from_records(records), Order(2, 2, 1), ("u",), ("y",), 1.0)


RECORD = small.record(samples=150)
CUT = cut_held_out_blocks([RECORD], preprocessor_of(RECORD))


def test_blocks_cover_a_record_and_neighbours_are_in_other_folds():
    assert len(CUT) == HELD_OUT_BLOCKS and {block.fold for block in CUT} == set(range(FOLDS))
    assert CUT[0].begin == preprocessor_of(RECORD).skip and CUT[-1].end == len(RECORD)
    for one, other in pairwise(CUT):
        assert one.end == other.begin and one.fold != other.fold


def test_each_fold_is_masked_or_cut_out_once():
    """Without gaps the same samples, but for the transient before the first block."""
    masked = [mask_fold([RECORD], CUT, fold)[0] for fold in range(FOLDS)]
    gaps = np.array([np.isnan(each.y[:, 0]) for each in masked])
    assert (gaps.sum(0)[4:] == 1).all() and not gaps[:, :4].any()
    for fold, (each, gap) in enumerate(zip(masked, gaps, strict=True)):
        np.testing.assert_array_equal(each.y[~gap], RECORD.y[~gap])
        parts = cut_out_fold([RECORD], CUT, fold)
        np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), RECORD.y[~gap][0 if fold else 4 :])
    assert len(parts) == 3 and len(cut_out_fold([RECORD, RECORD], CUT, 0)[-1]) == len(RECORD)


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


class SimulatesOnly:
    """A model of another kind: nothing but `simulate`."""

    def __init__(self, model):
        self.model = model

    def simulate(self, u):
        path = self.model.simulate(u)
        if not np.isfinite(path.mean).all():
            raise ComputationError("diverged")
        return path


def make_linear(first=0.5):
    prep = Preprocessor.from_records(RECORDS, Order(2, 3, 2))
    coefficients = np.array([[first], [-0.2], [0.4], [0.3], [0.1]])
    return FittedARX(prep, Status.CONVERGED, 0, np.ones(1), Linear(coefficients, np.array([0.1])))


@pytest.mark.parametrize(("make", "own"), [(samples.model, False), (make_linear, False), (make_linear, True)])
def test_errors_are_those_of_a_cold_run_of_each_record(make, own):
    model = make()
    given = SimulatesOnly(model) if own else model
    held_out = hold_out(RECORDS, BLOCKS, settle=10**6)  # no late starts
    found = measure_block_errors(dict.fromkeys(range(FOLDS), given), held_out)
    simulated, prep = simulate_blocks(given, held_out.runs), model.preprocessor
    for number, (block, rms) in enumerate(zip(BLOCKS, found, strict=True)):
        record = RECORDS[block.record]
        run = np.asarray(run_from_rest(model.chain, prep, prep.scaling.inputs(record.u)))
        whole = model.simulate(record.u).mean if own else prep.scaling.raw_outputs(run)  # another model starts itself
        expected = whole[block.rows]
        np.testing.assert_allclose(simulated[number], expected, atol=1e-9)
        errors = (expected - record.y[block.rows]) / held_out.scaling.y_std
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
    nothing, one = measure_block_errors({0: make_linear()}, hold_out([RECORDS[1]], blocks, 10**6))
    assert np.isnan(nothing) and np.isfinite(one)
    for settle, diverged in ((10**6, [1]), (20, [1, 3])):  # the second one has late runs
        held_out = hold_out(RECORDS, BLOCKS, settle)
        for unstable in (make_linear(1e9), SimulatesOnly(make_linear(1e9))):
            errors = measure_block_errors(dict.fromkeys(range(FOLDS), unstable), held_out)
            assert len(errors) == len(BLOCKS) and np.isinf(errors[diverged]).all()


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
    expected, numbers = measure_block_errors(folds, hold_out([record], blocks, 10**6)), list(held_out.late_numbers)
    late = measure_block_errors(folds, held_out._replace(runs=held_out.late_runs, late_runs=(), late_numbers=()))
    assert expected.max() < 1.0 < late.min()  # of the output's standard deviation
    assert numbers == [number for number, block in enumerate(blocks) if block.begin >= 60]
    expected[numbers] = np.sqrt(expected[numbers] * late)  # one error per block
    np.testing.assert_allclose(measure_block_errors(folds, held_out), expected)
    expected[[block.fold != 0 for block in blocks]] = np.nan
    np.testing.assert_allclose(measure_block_errors({0: integrator}, held_out), expected)
