"""Invalid arguments of trained models and of their parts: one line that says what was wrong, and what to do."""

from dataclasses import asdict, replace
from functools import cache

import numpy as np
import pytest

import revarb
from fuzz import samples
from revarb import Ensemble, InputError, Live, Window
from revarb.models.choice import MAX_TEXT
from support import small

RECORD = small.record(samples=60)
TWO = small.record(samples=60, inputs=2, outputs=2)
CALIBRATION = revarb.Calibration(0.3, 0.04, (2, 10), (0.8, 1.0, 1.5), 12, 0.2)


@cache
def rgp():
    return samples.at_the_start(small.spec(hidden=1, inducing=5), 0, [RECORD])


@cache
def wide():
    return samples.at_the_start(small.spec(hidden=1, inducing=5), 0, [TWO])


@cache
def robust():
    return samples.at_the_start(small.spec(hidden=1, inducing=5, noise="student-t"), 0, [RECORD])


@cache
def arx():
    return revarb.ARX(2, 2).fit(RECORD)


@cache
def ensemble():
    return Ensemble.from_members([rgp(), replace(rgp(), seed=1)])


def live(steps=0, **options):
    run = Live(wide(), **options)
    for row in range(steps):
        run.step(TWO.u[row])
    return run


def calibrate(change):
    return revarb.Calibration.from_dict({**asdict(CALIBRATION), **change})


def open_live():
    """A run whose last step was made without its inputs."""
    run = live(observe=True)
    run.step()
    return run


def feedthrough():
    return Live(samples.at_the_start(small.spec(hidden=1, inducing=5, input_delay=0), 0, [RECORD]))


STARTS = {
    "inputs": (Window(np.zeros((20, 2)), np.zeros(20)), r"the record has 2 input\(s\), but the model 1"),
    "outputs": (Window(np.zeros(20), np.zeros((20, 2))), r"the record has 2 output\(s\), but the model 1"),
    "text": ("warm", "start must be 'cold', 'measured', 'continue', a revarb.Window.*received 'warm'"),
    "type": (7, "start must be 'cold', 'measured', 'continue'.*received 'int'"),
}
SIMULATIONS = {
    "a network that is not there": (lambda: rgp().simulate(RECORD.u, "network"), r"has no networks; fit RGP\(recog"),
    "no networks": (lambda: rgp().recognise(RECORD.u), r"has no networks; fit RGP\(recognition="),
    "another model's state": (lambda: rgp().simulate(RECORD.u, start=samples.model().final_states[0]), "start must be"),
    "an RGP's state": (lambda: arx().simulate(RECORD.u, start=wide().final_states[0]), "start must be 'cold'"),
    "another method": (lambda: arx().simulate(RECORD.u, "moments"), "method must be 'residuals', received 'moments'"),
    "too few samples": (
        lambda: ensemble().simulate(RECORD.u, "samples", samples=3), "two or more per member.* at least 4, received 3",
    ),
    "states of too few members": (
        lambda: ensemble().simulate(RECORD.u, start=ensemble().final_states[0][:1]),
        "must be one of this ensemble's final_states.* each of its 2 members",
    ),
    "no horizon": (lambda: rgp().predict(RECORD, 0), "horizon must be a whole number from 1 to"),
    "an array": (lambda: arx().predict(RECORD.y), "predict takes a measured revarb.Series.*received a ndarray"),
    "other outputs": (lambda: arx().predict(small.record(outputs=2)), r"the record has 2 output\(s\), but the model 1"),
    "no outliers": (lambda: rgp().outliers(), "Gaussian noise knows no outliers"),
    "outliers of no level": (lambda: robust().outliers(level=2.0), "level must be between 0 and 1"),
    "a record of another length": (lambda: rgp().plot_fit(RECORD[:40]), "pass the training records"),
}  # fmt: skip
MIXTURES = {
    "no members": (lambda: Ensemble.from_members([]), "takes one or more fitted RGPs, received"),
    "no candidates": (lambda: Ensemble.from_candidates([]), "takes one or more fitted RGPs or ARX models"),
    "another NARX model": (
        lambda: Ensemble.from_candidates([revarb.MLPNARX(1, 1, units=(2,), iterations=1).fit(RECORD)]),
        "takes one or more fitted RGPs or ARX models",
    ),
    "equal seeds": (lambda: Ensemble.from_members([rgp(), rgp()]), r"must differ in their seeds, received \[0, 0\]"),
    "other records": (
        lambda: Ensemble.from_members([rgp(), replace(wide(), seed=3)]),
        "one configuration to the same records; the one of seed 3 differs from .* 0",
    ),
    "the bound of linear models": (lambda: Ensemble.from_candidates([arx()]).bound, "none of the members is a recurr"),
    "candidates of other records": (lambda: Ensemble.from_candidates([rgp(), wide()]), "fits to the same records"),
}
LIVE = {
    "a mean": (lambda: Live(revarb.Mean().fit(RECORD)), "a live run takes an RGP, an ARX model or .* a FittedMean"),
    "one state for two members": (
        lambda: Live(ensemble(), start=rgp().final_states[0]),
        "must be one of this ensemble's final_states",
    ),
    "samples": (lambda: live(samples=-1), "samples must be a whole number of at least 0"),
    "observe": (lambda: live(observe=1), "observe must be true or false, received 1"),
    "start": (lambda: live(start=rgp().final_states[0]), "start must be 'cold'"),
    "columns": (lambda: live().step([1.0]), "u has 1 column"),
    "NaN": (lambda: live().step([np.nan, 1.0]), r"u has 1 value.* not finite"),
    "no step": (lambda: live().correct(TWO.y[0]), "correct takes the measured outputs of the last step, and none was"),
    "one output of two": (lambda: live(1).correct([1.0]), r"y has 1 value\(s\), but the model has 2 output\(s\)"),
    "a cube": (lambda: live(1).correct(np.ones((1, 2, 1))), "y must be a vector or a matrix"),
    "texts": (lambda: live(1).correct(["a", "b"]), "y must be a table of"),
    "predict": (lambda: live(1).predict(3), r"predict needs the covariance of the states: correct\(y\) first, or Live"),
    "state": (lambda: live(1).state, "state needs the covariance of the states"),
    "apply": (lambda: live(1).apply(TWO.u[0]), r"apply\(u\) is for a step that was made without inputs"),
    "held": (lambda: live(observe=True).predict(3), "pass u, the inputs of the next k steps: there was no step"),
    "rows": (lambda: live(observe=True).predict(3, TWO.u[:2]), r"u has 2 row\(s\), but k=3; pass the inputs of the"),
    "one input of two": (lambda: live(observe=True).predict(2, TWO.u[:2, :1]), r"u has 1 column\(s\), but the model"),
    "open step": (lambda: open_live().step(TWO.u[0]), "the inputs of the last step are open"),
    "open prediction": (lambda: open_live().predict(2, TWO.u[:2]), "the inputs of the last step are open"),
    "feedthrough": (lambda: feedthrough().step(), "pass the inputs of the step: with input_delay=0"),
}
LINEAR, CHOICE = samples.CHOICE.candidates[0], samples.CHOICE
CALIBRATIONS = {
    "latent_scale must be a finite number of at least 0": {"latent_scale": -1.0},
    "output_noise must be a finite number above 0": {"output_noise": 0.0},
    "needs ascending edges and one factor more, received": {"edges": (5, 2)},
    "needs ascending edges and one factor more": {"factors": (1.0,)},
    "factor must be a finite number above 0": {"factors": (1.0, 0.0, 1.0)},
    "stretches must be a whole number of at least 1": {"stretches": 0},
    "error must be a finite number": {"error": float("nan")},
    "degrees_of_freedom must be a finite number above 2": {"degrees_of_freedom": 2.0},
    "noise and factors are at most 1e.06": {"output_noise": 1e9},
}
VALUES = {
    **{message: (lambda change=change: calibrate(change), message) for message, change in CALIBRATIONS.items()},
    "error": (lambda: replace(LINEAR, error=-0.1), "error must be a finite number of at least 0, received -0.1"),
    "NaN": (lambda: replace(LINEAR, error=float("nan")), "error must be a finite number"),
    "standard error": (lambda: replace(LINEAR, standard_error=float("inf")), "standard_error must be a finite number"),
    "blocks": (lambda: replace(LINEAR, stretches=-1), "stretches must be a whole number of at least 0"),
    "seconds": (lambda: replace(LINEAR, seconds=-1.0), "seconds must be a finite number of at least 0"),
    "note": (lambda: replace(LINEAR, note="x" * (MAX_TEXT + 1)), "texts of at most 2000 characters"),
    "sentence": (lambda: replace(CHOICE, sentence="x" * (MAX_TEXT + 1)), "must be texts"),
    "taken": (lambda: replace(CHOICE, taken="linear, 3 lags"), "'linear, 3 lags', is not among those that were tried"),
    "horizon_std": (lambda: replace(arx(), horizon_std=np.zeros((2, 1))), r"a row of 1 positive number\(s\) per step"),
    "NaN in horizon_std": (lambda: replace(arx(), horizon_std=np.full((1, 1), np.nan)), "a row of 1 positive number"),
}  # fmt: skip
TABLE = SIMULATIONS | MIXTURES | {f"live: {name}": row for name, row in LIVE.items()} | VALUES


@pytest.mark.parametrize(("call", "message"), TABLE.values(), ids=TABLE)
def test_it_is_refused_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("model", [rgp, arx, ensemble, Live], ids=["RGP", "ARX", "ensemble", "Live"])
def test_a_start_that_does_not_fit_is_refused(model, start):
    value, message = STARTS[start]
    with pytest.raises(InputError, match=message):
        Live(rgp(), value) if model is Live else model().simulate(np.zeros(9), start=value)
