"""Fits with appended rows: the same bound, the same model, and one program for records of nearby length."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.fitting import weight_path
from revarb.fitting.objective import bound_and_gradient, weigh_at
from revarb.fitting.problem import make_plan, remove_padding
from revarb.fitting.weight_path import ALL, fit_whole_path, initialise_fold
from revarb.models.model_file import load
from revarb.models.recipe import FIXED_FREE, Recipe, Stage
from revarb.variational.parameters import flatten, get_form, unflatten
from support import small

STAGES = (Stage((*FIXED_FREE, "lam", "tau"), 4),)
RECIPE = Recipe(hidden_noise=0.01, latent_variance=0.02, stages=STAGES, free_run_weight=10.0, free_run_iterations=3)
RECORDS = [small.record(samples=47, outputs=2), small.record(1, samples=60, outputs=2)]  # 45 and 58 rows: 48 and 60
GAPS = [small.with_gaps(RECORDS[0], (slice(20, 26), 0)), RECORDS[1]]
CASES = {
    "linear part, two layers": ({"linear": True, "hidden": 2}, RECORDS),
    "Student-t, missing outputs": ({"noise": "student-t"}, GAPS),
    "runs from states": ({"recipe": replace(RECIPE, free_run=20)}, RECORDS),
}


def make_spec(**changes):
    return small.spec(**({"hidden": 1, "inducing": 8, "latent_dim": 2, "recipe": RECIPE} | changes))


@pytest.fixture
def without_padding(monkeypatch):
    """A function that calls another one while no rows are appended."""

    def call(function, *arguments):
        with monkeypatch.context() as patched:
            patched.setattr(weight_path, "pad_problem", lambda problem: problem)
            return function(*arguments)

    return call


def evaluate(problem, vector):
    """The penalised bound and its gradient, as a tree of parameters."""
    form = get_form(problem.start)
    runs = weigh_at(problem, vector)
    value, gradient = bound_and_gradient(vector, problem.rows, runs, 2.0, form=form, layout=problem.layout)
    return float(value), unflatten(np.asarray(gradient), form)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_bound_and_gradient_are_those_without_appended_rows(case, without_padding, rng):
    changes, records = CASES[case]
    arguments = make_spec(**changes), records, (), ALL, 0
    padded, plain = initialise_fold(*arguments), without_padding(initialise_fold, *arguments)
    assert padded.layout.lengths == (50, 62) and plain.layout.lengths == (47, 60)
    start = make_plan(padded).start
    vector = start + 0.05 * rng.normal(size=start.shape)
    value, gradient = evaluate(padded, vector)
    parameters, lengths = remove_padding(unflatten(vector, get_form(padded.start)), padded.rows, padded.layout)
    assert lengths == plain.layout.lengths
    expected, slopes = evaluate(plain, np.asarray(flatten(parameters)))
    assert value == pytest.approx(expected, rel=1e-10)
    inner = np.asarray(flatten(remove_padding(gradient, padded.rows, padded.layout)[0]))
    np.testing.assert_allclose(inner, flatten(slopes), rtol=1e-8, atol=1e-10 * np.abs(inner).max())
    whole = np.asarray(flatten(gradient))
    assert np.sum(whole != 0.0) == np.sum(inner != 0.0)  # nothing at the appended rows
    assert len(whole) > len(inner)


@pytest.mark.slow
def test_a_path_is_that_without_appended_rows(without_padding, tmp_path):
    arguments = make_spec(), RECORDS, (), ALL, 0, lambda steps, text: None
    padded, plain = fit_whole_path(*arguments).models, without_padding(fit_whole_path, *arguments).models
    assert len(padded) == len(plain) == 3
    for got, expected in zip(padded, plain, strict=True):
        assert got.bound == pytest.approx(expected.bound, rel=1e-7)
        assert got.lengths == expected.lengths == (47, 60)
        np.testing.assert_allclose(got.simulate(RECORDS[0].u).mean, expected.simulate(RECORDS[0].u).mean, atol=1e-5)
        for state, other in zip(got.final_states, expected.final_states, strict=True):
            np.testing.assert_allclose(state.mean, other.mean, atol=1e-5)
            np.testing.assert_array_equal(state.past_u, other.past_u)
    padded[-1].save(tmp_path / "padded.rgp")
    loaded = load(tmp_path / "padded.rgp")
    assert [mu.shape for mu in loaded.trained.parameters.states.mu] == [(107, 2)]
    assert [len(path) for path in loaded.smooth()] == [45, 58]


@pytest.mark.slow
@pytest.mark.usefixtures("kept_programs")
def test_records_of_nearby_length_share_one_compilation():
    for samples in (102, 105):
        fit_whole_path(make_spec(), [small.record(samples=samples)], (), ALL, 0, lambda steps, text: None)
    assert bound_and_gradient._cache_size() == 1
