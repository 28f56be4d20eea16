"""What candidates do on held-out blocks, and whether they stay bounded on other inputs."""

from types import SimpleNamespace

import numpy as np
import pytest

from revarb.data.windows import Order
from revarb.selection.candidates import CandidateKey
from revarb.selection.validation import CandidateResult, is_stable
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
    assert not is_stable_with(1.2)
    assert not is_stable_with(50.0)  # its runs overflow
    assert not is_stable_with(0.8, 0.8, 1.2)  # one fold is enough
