"""What candidates do on held-out blocks, and whether they stay bounded on other inputs."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import revarb
from revarb.data.scaling import Standardiser
from revarb.data.windows import Order
from revarb.errors import ComputationError
from revarb.fitting.held_out import FOLDS
from revarb.selection.candidates import CandidateKey
from revarb.selection.records import hold_out_blocks
from revarb.selection.validation import AHEAD, CandidateResult, is_stable, score_predictions, stays_bounded
from support import small
from support.linear_systems import first_order_model, first_order_record


def make_result(*models):
    return CandidateResult(CandidateKey(Order(1, 1, 1)), dict(enumerate(models)), np.empty(0), 0.0)


def only_simulate(model):
    """The model as a user's own kind of model."""
    return SimpleNamespace(simulate=model.simulate)


@pytest.mark.parametrize("kind", [lambda model: model, only_simulate])
@pytest.mark.parametrize("lengths", [[120], [80, 12]])
def test_stable_models_are_stable_and_unstable_ones_are_not(kind, lengths):
    records = [first_order_record(0.8, np.random.default_rng(n).normal(size=n)) for n in lengths]

    def is_stable_with(*feedbacks):
        return is_stable(make_result(*(kind(first_order_model(each, records[0])) for each in feedbacks)), records)

    assert is_stable_with(0.8) and is_stable_with(0.7, 0.85)
    scaling = Standardiser.from_records(records)
    for share in (0.1, 1.0):  # in units of which a run is larger than what was measured, or as large
        smaller = replace(scaling, y_std=share * scaling.y_std)
        assert stays_bounded(kind(first_order_model(0.8, records[0])), records, smaller) == (share == 1.0)
    assert not is_stable_with(1.2)
    assert not is_stable_with(50.0)  # its runs overflow
    assert not is_stable_with(0.8, 0.8, 1.2)  # one fold is enough


def test_predictions_ahead():
    record = small.record(samples=130)
    held_out, model = hold_out_blocks([record], Order(1, 1, 1)), revarb.ARX(1, 1).fit(record)
    ahead = [(model.predict(record, steps).mean - record.y) / held_out.scaling.y_std for steps in AHEAD]
    expected = [np.sqrt(np.mean([errors[block.rows] ** 2 for errors in ahead])) for block in held_out.blocks]

    def measure(*models):
        return score_predictions(make_result(*models), held_out).errors

    np.testing.assert_allclose(measure(*[model] * FOLDS), expected)
    assert [np.isnan(error) for error in measure(model)] == [block.fold != 0 for block in held_out.blocks]

    def diverge(record, steps):
        raise ComputationError("diverged")

    assert np.isinf(measure(*[SimpleNamespace(predict=diverge)] * FOLDS)).all()
