"""Invalid input to analyses of models and comparisons raises `InputError` with a line that says what to do."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.analysis.reliability import error_by_horizon, pit_values, reliability_diagram
from revarb.analysis.scores import scores
from support import small
from support.export_models import fit_small
from support.small_rivals import Broken, Misshapen

RECORD = small.record()


def make_path(std=None):
    """Three rows of zeros."""
    return revarb.Trajectory(np.zeros((3, 1)), std and np.full((3, 1), std), "test", 0, ("y",))


def judge_in_all_ways(std, y):
    """Calls of the three functions for one path."""
    judges = (reliability_diagram, pit_values, error_by_horizon)
    return [lambda judge=judge: judge([make_path(std)], [y]) for judge in judges]


def compare(**changes):
    arguments = {"train": RECORD, "test": small.record(1), "models": {"ARX": revarb.ARX(2, 2)}, "seeds": 1}
    return lambda: revarb.compare(**arguments | changes)


def analyse(record, **options):
    return lambda: revarb.ARX(2, 2).fit(RECORD).residuals(record, **options)


SCORES = [
    (lambda: scores(make_path(), [1, 2]), r"y has shape \(2, 1\) but the simulated trajectory has \(3, 1\)"),
    (lambda: scores(make_path(), [1, 2, 3], 3), "skip must leave rows to score: received skip=3 for 3 rows"),
    (lambda: scores(make_path(), [1, 2, 3], -1), "skip must be a whole number of at least 0, received -1"),
    (lambda: scores(make_path(), [1, np.inf, 3]), "not finite"),
    (lambda: scores(make_path(), [1, np.nan, np.nan], 1), "y has no measured value after the first 1 rows; there is"),
    (lambda: scores("path", [1, 2, 3], 0), "pass what simulate returned and the measured y, received a str"),
    (lambda: make_path().interval(0.95), "has no uncertainty"),
]
RELIABILITY = [
    (call, match)
    for std, y, match in (
        (None, np.ones(3), "a simulation with method='test' has no band"),
        (1.0, np.full(3, np.nan), "no output was measured after the first 0 rows"),
        (1.0, np.array([1.0, np.inf, 1.0]), "not finite"),
        (1.0, np.ones(4), r"y has shape \(4, 1\) but"),
    )
    for call in judge_in_all_ways(std, y)
]
COMPARISONS = [
    (compare(models={}), "models must name at least one"),
    (compare(models={"ARX": revarb.ARX}), "model 'ARX' must be a configuration with fit"),
    (compare(models={1: revarb.ARX()}), "a model must be named by a text, received 1"),
    (compare(models={"a": Misshapen(threading.Lock())}, jobs=2), "cannot be sent to another process .* use jobs=1"),
    (compare(models={"GPSSM": revarb.GPSSM()}, test=RECORD[:8]), "a test record has 8 rows, but .* are left out"),
    (compare(skip=60), "a test record has 60 rows, but 60 are left out"),
    (compare(skip=-1), "skip must be a whole number of at least 0"),
    (compare(seeds=0), "seeds .* must be a whole number of at least 1, received 0"),
    (compare(seeds=[1, 1]), "each once"),
    (compare(train=revarb.Series(RECORD.u, np.ones(60))), "output column 'y' is constant"),
    (compare(jobs=0), "jobs must be a whole number of at least 1"),
    (compare(test=revarb.Series(np.zeros((9, 2)), np.zeros(9))), "train and test must agree in input_names"),
    (compare(test=small.with_gaps(RECORD, slice(None))), "the test part has no measured output value"),
    (compare(test=small.record(samples=4), skip=4), "a test record has 4 rows, but 4 are left out"),
    (lambda: compare(models={"a": Broken()})().plot(), "every model failed"),
    (lambda: compare(models={"Mean": revarb.Mean()})().plot(1), "column must be a whole number from 0 to 0"),
]
RESIDUALS = [
    (analyse(RECORD[:20]), r"the record has 16 output value.* takes at least 20: pass a longer"),
    (analyse(RECORD, max_lag=29), r"max_lag .* must be a whole number from 1 to 28, received 29"),
    (analyse(small.record(inputs=2)), "the record has 2 input"),
    (analyse(replace(RECORD, y=np.full((60, 1), np.nan))), "has 0 output value"),
    (lambda: analyse(RECORD)().plot(outputs=["z"]), r"outputs must be of \['y'\], received \['z'\]"),
]
AT = r"at must be a finite value for each of the inputs \['u0', 'u1'\]"
NYQUIST = "above 0 and at most the Nyquist frequency, 0.5; pass none"
FINITE = "inputs must be a list of finite values of one input"
RESPONSES = [
    *((lambda model, at=at: model.linearise(at=at), AT) for at in (1.0, [1, 2, 3], [1, np.nan], "here", [[1, 2]])),
    (lambda model: model.linearise(at={"valve": 1.0}), "at has a value for 'valve', which is not an input of the mode"),
    (lambda model: model.linearise(at={"u0": "a"}), r"at\['u0'\] must be a finite number"),
    (lambda model: model.step_response(), r"input must be one of \['u0', 'u1'\]; none was named"),
    (lambda model: model.static_gain_curve(input="valve"), "received 'valve'"),
    (lambda model: model.step_response("a", input="u0"), "size must be a finite number, received 'a'"),
    (lambda model: model.step_response(steps=0, input="u0"), "steps must be a whole number of at least 1, received 0"),
    *(
        (lambda model, values=values: model.frequency_response(frequencies=values), NYQUIST)
        for values in ([0.0], [0.6], [-1.0], [np.nan], [], "all", [[0.1]])
    ),
    *(
        (lambda model, values=values: model.static_gain_curve(values, input="u0"), FINITE)
        for values in ([], [np.inf], "all", [[1.0]])
    ),
]


@pytest.mark.parametrize(("call", "match"), SCORES + RELIABILITY + COMPARISONS + RESIDUALS)
def test_scores_comparisons_and_residuals(call, match):
    with pytest.raises(revarb.InputError, match=match):
        call()


@pytest.mark.parametrize(("call", "match"), RESPONSES)
def test_responses(call, match):
    with pytest.raises(revarb.InputError, match=match):
        call(fit_small("ARX", 2, 2))


@pytest.mark.parametrize("name", ["linearise", "step_response", "frequency_response", "static_gain_curve"])
def test_a_model_without_inputs_has_no_response(name):
    model = revarb.ARX(lags=2).fit(revarb.Series(None, np.sin(np.arange(60.0))))
    with pytest.raises(revarb.InputError, match="the model has no inputs, so it has no response to one"):
        getattr(model, name)()
