"""Records, numbers and models that a fit refuses: the call and what its message says."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.data.series import Series
from revarb.errors import InputError
from support import small

RECORD = small.record()
RAMP = np.arange(30.0)


def fit(record=RECORD, changes=(), **options):
    return lambda model: small.spec(**dict(changes)).fit(record, **options)


def fit_arx(lags, gaps):
    return lambda model: revarb.ARX(lags, lags).fit(small.with_gaps(RECORD, gaps))


def refit(record=RECORD, change=lambda model: model, **options):
    return lambda model: change(model).refit(record, **options)


def with_names(model):
    return replace(model, preprocessor=replace(model.preprocessor, input_names=("valve",)))


def with_networks(model):
    return replace(model, spec=replace(model.spec, recognition=revarb.Recognition()))


CASES = {
    "too short": (fit(small.record(samples=11), {"lags": 10}), "record 0 has 11 samples, but lags=10.*at least 12"),
    "too short for inputs": (fit(small.record(samples=13), {"input_lags": 9, "input_delay": 4}), "at least 14"),
    "constant input": (fit(Series(np.ones(30), RAMP)), "input column 'u' is constant"),
    "no record": (fit([]), "no record was given"),
    "no restarts": (fit(restarts=0), "restarts must be a whole number of at least 1, received 0"),
    "no jobs": (fit(restarts=2, jobs=0), r"jobs \(or -1 for one per core\) must be a whole number of at least 1"),
    "negative seed": (fit(restarts=2, seed=-1), "seed must be"),
    "last seed": (fit(restarts=2, seed=2**63 - 1), "seed must be a whole number from 0 to"),
    "jobs alone": (fit(jobs=2), "jobs=2 without restarts"),
    "before workers start": (fit(small.record(samples=3), restarts=2, jobs=2), "record 0 has 3 samples"),
    "no complete row": (fit_arx(2, slice(0, None, 2)), "no row of the records has all its past outputs measured"),
    "nothing measured": (fit_arx(1, slice(2, None)), "no output after the transients is measured, by which"),
    "refit, inputs": (refit(small.record(inputs=2)), r"the record has 2 input\(s\), but the model 1"),
    "refit, dt": (refit(Series(RECORD.u, RECORD.y, dt=0.5)), "the record has dt=0.5, but the model was trained with"),
    "refit, too short": (refit(RECORD[:3]), "at least 4"),
    "refit, an array": (refit(np.zeros((5, 2))), "record 0 is a ndarray, not a Series"),
    "refit, flag": (refit(calibrate=1), "calibrate must be true or false, received 1"),
    "refit, names": (
        refit(Series(RECORD.u, RECORD.y, input_names=["pump"]), with_names), r"\['pump'\], the model \['valve'\]",
    ),
    "refit, networks": (refit(change=with_networks), "a model with recognition networks cannot be refitted"),
    "refit, other spec": (lambda model: small.spec().refit(model, RECORD), "fitted with another configuration"),
}  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return small.spec(hidden=1).fit(RECORD)


@pytest.mark.parametrize("case", CASES)
def test_refusals(case, model):
    call, message = CASES[case]
    with pytest.raises(InputError, match=message):
        call(model)
