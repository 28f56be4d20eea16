"""Calibration as a part of a fit."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.errors import ComputationError
from revarb.fitting import calibrate, held_out
from revarb.fitting.calibration_rule import SCALES
from revarb.fitting.problem import prepare
from revarb.fitting.reference_errors import measure_linear, measure_mean
from revarb.models.recipe import R0_FREE, Recipe, Stage, Status
from revarb.runtime.journal import Journal
from revarb.runtime.numerics import with_numerics
from support import small
from support.journals import count_evaluations

QUICK = Recipe(stages=(Stage(R0_FREE, 5),))
SPEC = small.spec(hidden=1, recipe=QUICK, calibrate=True)


@pytest.fixture(scope="module")
def record():
    return small.record(samples=150)


@pytest.fixture(scope="module")
def model(record):
    return SPEC.fit(record)


def test_a_fit_is_calibrated_and_keeps_it(model, record, tmp_path):
    found = model.calibration
    assert found.stretches == held_out.HELD_OUT_BLOCKS and found.latent_scale in SCALES and found.output_noise >= 0.0099
    assert len(found.edges) == 2 and len(found.factors) == 3 and min(found.factors) >= 1.0
    assert 0.0 < found.linear_error < found.mean_error  # of ARX and of the mean, on the same stretches
    loaded = revarb.load(model.save(tmp_path / "m.rgp"))
    assert loaded.calibration == found == SPEC.fit(record).calibration
    assert loaded.verdict == model.verdict and "held-out error" in model.verdict
    u = small.record(5).u
    np.testing.assert_array_equal(loaded.simulate(u).interval()[0], model.simulate(u).interval()[0])


def test_its_error_is_the_held_out_error(model, record):
    """The same number as from the four fits without a fold, made and scored here (fault 4 of the review of 0.2)."""
    blocks = held_out.cut_held_out_blocks([record], model.preprocessor)
    held = held_out.hold_out([record], blocks, model.order.skip)
    assert held.late_runs
    without = replace(SPEC, calibrate=False)
    folds = {fold: without.fit(held_out.mask_fold([record], blocks, fold)) for fold in range(held_out.FOLDS)}
    errors, found = held_out.measure_block_errors(folds, held), model.calibration
    assert folds[0].calibration is None
    assert found.error == pytest.approx(held_out.compute_held_out_error(errors), rel=1e-9)
    assert (found.linear_error, found.mean_error) == (measure_linear(held, model.order), measure_mean(held))


def test_a_run_over_the_last_third_is_one_block_more(model, record):
    """As wide as the calibrated band, and without the start's share: its errors are those of what was not seen."""
    held = held_out.hold_out([record], held_out.cut_held_out_blocks([record], model.preprocessor), model.order.skip)
    last = replace(SPEC, calibrate=False).fit(held_out.mask_fold([record], held.last_blocks, held_out.LAST))
    known = calibrate.Calibrated(model.calibration, calibrate.HeldOutBands({}, {}))
    [(number, run)] = calibrate.add_last_runs(known, last, held, last.scaling).bands.cold.items()
    calibrated = replace(last, calibration=model.calibration)
    path = calibrated.simulate(record.u)
    y_std, rows = last.scaling.y_std, slice(100, 150)
    assert number == len(held.blocks) and held.last_blocks[0].rows == rows
    np.testing.assert_allclose(run.error, (record.y - path.mean)[rows, 0] / y_std, atol=0.05)  # started elsewhere
    np.testing.assert_allclose(np.sqrt(run.variance), path.std[rows, 0] / y_std, rtol=0.05)
    # In units of all records, in which the output noise is: here half as large as those of the first two thirds.
    half = replace(last.scaling, y_std=0.5 * y_std)
    [other] = calibrate.add_last_runs(known, last, held, half).bands.cold.values()
    noise = model.calibration.factors[-1] ** 2 * model.calibration.output_noise
    np.testing.assert_allclose(other.error, 2.0 * run.error)
    np.testing.assert_allclose(other.variance - noise, 4.0 * (run.variance - noise))


@pytest.mark.slow
def test_ctrl_c_while_calibrating_returns_the_model(record):
    with count_evaluations() as seen:
        replace(SPEC, calibrate=False).fit(record)
    with count_evaluations(press_at=len(seen) + 3):
        model = SPEC.fit(record)
    assert model.calibration is None and model.status is Status.INTERRUPTED


@pytest.mark.parametrize(("inducing", "expected"), [(60, 50), (20, 20)])
def test_fits_without_a_fold_have_as_many_inducing_inputs_as_are_enough(record, model, inducing, expected, monkeypatch):
    """Where one of them fails, the model stays without a calibration."""
    sizes = []

    def note(problem, *rest):
        sizes.append(problem.spec.inducing)
        raise ComputationError("its size is known")

    monkeypatch.setattr(calibrate, "solve", note)
    task = prepare(replace(SPEC, inducing=inducing), [record])
    with pytest.warns(UserWarning, match="the bands are not calibrated: its size is known"):
        assert with_numerics(calibrate.calibrate)(model, task, lambda *said: None, Journal()) is model
    assert sizes == [expected]


def test_too_few_measured_blocks_leave_it_uncalibrated(record):
    with pytest.warns(UserWarning, match="3 of 12 blocks of the training data have measured outputs"):
        assert SPEC.fit(small.with_gaps(record, slice(40, None))).calibration is None
