"""Whether a candidate stays bounded on other inputs, and from other starts."""

import numpy as np

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.gp.layer import Linear
from revarb.models.fitted_arx import FittedARX
from revarb.optim.status import Status
from revarb.training.stability import is_stable
from revarb.training.stretches import FOLDS, cut_stretches
from revarb.training.trials import hold_out, measure_folds


def simulate_first_order(feedback, u):
    """y[k] = feedback · y[k−1] + u[k−1], as a record."""
    y = np.zeros(len(u))
    for k in range(1, len(u)):
        y[k] = feedback * y[k - 1] + u[k - 1]
    return Series(u, y)


def make_first_order(feedback, record):
    """The model with this feedback and gain 1 in raw units, scaled by the record."""
    prep = Preprocessor.from_records([record], Order(1, 1, 1))
    gain = prep.scaling.u_std / prep.scaling.y_std
    offset = (prep.scaling.u_mean + (feedback - 1.0) * prep.scaling.y_mean) / prep.scaling.y_std
    return FittedARX(prep, Status.CONVERGED, 0, np.ones(1), Linear(np.array([[feedback], [gain[0]]]), offset))


def is_stable_on(record, *feedbacks):
    models = [make_first_order(feedback, record) for feedback in feedbacks]
    return is_stable([(model.chain, model.preprocessor) for model in models], [record])


def test_stable_models_are_stable_and_unstable_ones_are_not():
    record = simulate_first_order(0.8, np.random.default_rng(0).normal(size=120))
    assert is_stable_on(record, 0.8) and is_stable_on(record, 0.7, 0.85)
    assert not is_stable_on(record, 1.03)
    assert not is_stable_on(record, 50.0)  # its runs overflow
    assert not is_stable_on(record, 0.8, 0.8, 1.03)  # one fold is enough


def test_records_of_different_lengths():
    records = [simulate_first_order(0.8, np.random.default_rng(n).normal(size=n)) for n in (80, 12)]
    for feedback, expected in ((0.8, True), (1.2, False)):
        model = make_first_order(feedback, records[0])
        assert is_stable([(model.chain, model.preprocessor)], records) is expected


def test_an_integrator_that_starts_elsewhere_has_large_errors():
    """A record that goes up and down again: at a third of it the output is far from where a cold run starts."""
    record = simulate_first_order(1.0, np.repeat([1.0, -1.0, 0.0], 40))
    integrator = make_first_order(1.0, record)
    held_out = hold_out([record], cut_stretches([record], integrator.preprocessor))
    errors = measure_folds(dict.fromkeys(range(FOLDS), integrator), held_out)
    late = errors[len(held_out.segments) :]
    assert len(late) == len(held_out.late) > 0
    assert errors[: len(held_out.segments)].max() < 1.0 < late.min()  # of the output's standard deviation
    partial = measure_folds({0: integrator}, held_out)
    assert [np.isnan(error) for error in partial] == [segment.fold != 0 for segment in held_out.runs]
