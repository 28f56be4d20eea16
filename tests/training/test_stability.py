"""Whether a candidate stays bounded on other inputs, and from other starts."""

import numpy as np

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.gp.layer import Linear
from revarb.models.fitted_arx import FittedARX
from revarb.optim.status import Status
from revarb.training.segments import measure_cold_runs
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
    held_out = hold_out([record], cut_stretches([record], integrator.preprocessor), 0)
    errors = measure_folds(dict.fromkeys(range(FOLDS), integrator), held_out)
    early, late = (
        measure_cold_runs(integrator.chain, integrator.preprocessor, held_out.scaling, runs)
        for runs in (held_out.segments, held_out.late)
    )
    assert early.max() < 1.0 < late.min()  # of the output's standard deviation
    numbers = list(held_out.late_numbers)
    assert [held_out.stretches[number].begin >= 60 for number in range(len(early))] == [
        number in numbers for number in range(len(early))
    ]
    assert [held_out.stretches[number].fold for number in numbers] == [run.fold for run in held_out.late]
    expected = early.copy()
    expected[numbers] = np.sqrt(early[numbers] * late)  # one error per stretch
    np.testing.assert_allclose(errors, expected)
    partial = measure_folds({0: integrator}, held_out)
    assert [np.isnan(error) for error in partial] == [stretch.fold != 0 for stretch in held_out.stretches]
    np.testing.assert_allclose(partial[~np.isnan(partial)], expected[~np.isnan(partial)])


def test_a_late_run_that_overflows_makes_the_error_infinite():
    record = simulate_first_order(0.8, np.random.default_rng(0).normal(size=120))
    growing = make_first_order(1e30, record)
    held_out = hold_out([record], cut_stretches([record], growing.preprocessor), 0)
    errors = measure_folds(dict.fromkeys(range(FOLDS), growing), held_out)
    assert len(errors) == len(held_out.stretches) and np.isinf(errors[list(held_out.late_numbers)]).all()


def test_too_few_stretches_or_a_fold_that_leaves_too_little_hold_nothing_out():
    record = simulate_first_order(0.8, np.random.default_rng(0).normal(size=120))
    stretches = cut_stretches([record], make_first_order(0.8, record).preprocessor)
    assert hold_out([record], stretches, 0) is not None
    for kept, enough in ((FOLDS - 1, False), (FOLDS, True)):  # stretches with any measured output
        y = record.y.copy()
        y[stretches[kept].begin :] = np.nan
        assert (hold_out([Series(record.u, y)], stretches, 0) is not None) is enough
    y = np.zeros(120)
    y[stretches[5].rows] = record.y[stretches[5].rows, 0]  # constant without this stretch
    assert hold_out([Series(record.u, y)], stretches, 0) is None
