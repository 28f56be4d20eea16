"""Runs on a record: its inputs are taken, and its first outputs with the start "measured"."""

import numpy as np
import pytest

import revarb
from revarb.models.ensemble import Ensemble
from support import small

RECORD, TEST = small.record(samples=80), small.record(3, samples=90)
LINEAR = revarb.ARX(2, 2).fit(RECORD)
RECURRENT = small.spec(hidden=1).fit(RECORD)
MODELS = {"linear": LINEAR, "recurrent": RECURRENT, "mixture": Ensemble.from_candidates([RECURRENT, LINEAR])}


@pytest.mark.parametrize("name", MODELS)
def test_a_record_stands_for_its_inputs_or_begins_the_run(name):
    model, window = MODELS[name], revarb.Window(TEST.u[:20], TEST.y[:20])
    for path, expected in (
        (model.simulate(TEST), model.simulate(TEST.u)),
        (model.simulate(TEST, start="measured"), model.simulate(TEST.u[20:], start=window)),
    ):
        np.testing.assert_array_equal(path.mean, expected.mean)
        np.testing.assert_array_equal(path.std, expected.std)
        assert path.start == expected.start
    few = model.simulate(TEST[:9], start="measured")  # half of the rows
    assert len(few) == 4 and few.start == "window of 5 samples"


def test_what_does_not_fit_is_refused():
    with pytest.raises(revarb.InputError, match=r'start="measured" needs the measured outputs: pass a revarb.Series'):
        LINEAR.simulate(TEST.u, start="measured")
    with pytest.raises(revarb.InputError, match="pass a record without steps"):
        LINEAR.simulate(TEST, steps=3)
    with pytest.raises(revarb.InputError, match="the record has 2 input"):
        LINEAR.simulate(small.record(inputs=2))
    no_inputs = revarb.ARX(2).fit(revarb.Series(None, np.sin(0.3 * np.arange(60.0))))
    assert len(no_inputs.simulate(revarb.Series(None, np.zeros(7)))) == 7
