"""Student-t noise as a candidate of a choice."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.data.windows import Order
from revarb.models.recipe import R0_FREE, Recipe, Stage
from revarb.selection.records import hold_out_blocks
from revarb.selection.student_t import has_heavy_tails, leave_out_outliers
from support import small
from support.small_choice import SAMPLES, use_defaults


def make_errors(seed=0, count=12, samples=40):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(samples, 1)) for _ in range(count)]


def make_outputs(errors):
    """Smooth outputs with the same spikes as the errors."""
    return [np.sin(np.arange(len(error)) / 6.0)[:, None] * 5.0 + error for error in errors]


@pytest.mark.parametrize(
    "change", [lambda k, error: error, lambda k, error: error + 30.0 * np.sin(k / 12.0),
               lambda k, error: np.where((k >= 5) & (k < 10), np.nan, error)], ids=["Gaussian", "slow", "missing"],
)  # fmt: skip
def test_errors_without_heavy_tails(change):
    errors = [change(np.arange(40.0)[:, None], error) for error in make_errors()]
    assert not has_heavy_tails(errors, make_outputs(make_errors()))


@pytest.mark.parametrize("share", [0.03, 0.1])
def test_spikes_are_heavy_tails_if_the_output_has_them(share):
    rng, errors = np.random.default_rng(1), make_errors()
    for error in errors:
        error[rng.random(error.shape) < share] += 12.0
    assert has_heavy_tails(errors, make_outputs(errors))
    assert not has_heavy_tails(errors, make_outputs(make_errors()))  # the output does nothing unusual there


def spoil(record, share=0.06, seed=0):
    rng, y = np.random.default_rng(seed), record.y.copy()
    rows = 10 + rng.choice(len(y) - 10, int(share * len(y)), replace=False)
    y[rows, 0] += rng.choice([-1.0, 1.0], len(rows)) * rng.uniform(3.0, 6.0, len(rows)) * y.std()
    return replace(record, y=y), rows


@pytest.mark.slow
def test_a_choice_takes_student_noise_on_a_record_with_spikes(monkeypatch):
    recipe = Recipe(stages=(Stage(R0_FREE, 15),), free_run_weight=1.0)
    use_defaults(monkeypatch, small.spec(hidden=1, calibrate=True, recipe=recipe))
    spoiled, rows = spoil(small.record(samples=SAMPLES))
    model = revarb.fit(spoiled, jobs=1)
    assert all(each.name.startswith("RGP, small, Student-t noise") for each in model.choice.members)
    assert "heavy tails" in model.choice.sentence and model.spec.noise == "student-t"
    assert [each.note for each in model.choice.candidates].count("taken") == 1
    found = {each.row for each in model.outliers()}
    assert len(found & set(rows.tolist())) >= 0.8 * len(rows)
    assert model.calibration.degrees_of_freedom is not None


def test_outliers_are_left_out_of_the_errors():
    spoiled, rows = spoil(small.record(samples=SAMPLES))
    held_out = hold_out_blocks([spoiled], Order(2, 2, 1))
    trusted = leave_out_outliers(held_out)
    assert trusted.records == held_out.records and trusted.late_numbers == held_out.late_numbers
    assert trusted.scaling.y_std < held_out.scaling.y_std
    left_out = [run.record.y[run.first :] for run in trusted.runs]
    assert np.isnan(np.concatenate(left_out)).sum() >= 0.8 * len(rows)
    for ours, theirs in zip(trusted.late_runs, held_out.late_runs, strict=True):
        assert (len(ours.record), ours.first, ours.fold) == (len(theirs.record), theirs.first, theirs.fold)
