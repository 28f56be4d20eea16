"""Which candidate is taken, and the sentence that says why."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.data.windows import Order
from revarb.errors import ComputationError
from revarb.fitting.arx import ARX
from revarb.fitting.held_out import FOLDS, compute_held_out_error
from revarb.models.choice import COLD_RUNS
from revarb.selection import ranking
from revarb.selection.candidates import CandidateKey, DefaultCandidates
from revarb.selection.ranking import PREDICTIONS, rank
from revarb.selection.records import hold_out_blocks
from revarb.selection.validation import CandidateResult, measure_ahead
from support import small

RECORD = small.record(samples=130)
LINEAR_PART, SIMPLE, COMPLEX = DefaultCandidates().list_paths([RECORD], 1)


@pytest.fixture(scope="module")
def held_out():
    return hold_out_blocks([RECORD], DefaultCandidates().find_largest_order([RECORD]))


@pytest.fixture(scope="module")
def model():
    return ARX(1, 1).fit(RECORD)


@pytest.fixture
def make(held_out, model):
    """Make a result: its errors are a factor times those of a typical one, with some noise."""
    spread = np.random.default_rng(0).uniform(0.1, 0.4, size=len(held_out.blocks))

    def make_result(name, factor, path=None, weight=0.0, folds=FOLDS, noise=0.0):
        drawn = np.random.default_rng(1).normal(size=len(spread))
        errors = factor * spread * np.exp(noise * (drawn - drawn.mean()))
        errors[[block.fold >= folds for block in held_out.blocks]] = np.nan
        key = CandidateKey(Order(1, 1, 1), 0.0, name, (False, 0.0, 2)) if path is None else path.at(weight)
        return CandidateResult(replace(key, name=name), dict.fromkeys(range(folds), model), errors, 1.5)

    return make_result


@pytest.fixture
def unstable(monkeypatch):
    """Every candidate counts as stable, unless its name is in the list."""
    unstable = []
    monkeypatch.setattr(ranking, "is_stable", lambda result, records: result.name not in unstable)
    return unstable


def notes(choice):
    return {candidate.name: candidate.note for candidate in choice.candidates}


def test_a_linear_model_that_is_as_good_is_taken(make, held_out, unstable):
    choice = rank([make("linear", 1.0), make("a", 0.99, SIMPLE, noise=0.1)], held_out, {}).choice
    assert notes(choice) == {"linear": "taken", "a": ""} and choice.scored_by == COLD_RUNS
    assert choice.sentence.startswith("A linear model is enough: its held-out error is ")
    assert "the best nonlinear model has" in choice.sentence
    alone = rank([make("linear", 1.0)], held_out, {}).choice.sentence
    assert "the best nonlinear model" not in alone and alone.endswith("better by more than one standard error.")


def test_a_nonlinear_model_that_is_better_is_taken(make, held_out, unstable):
    results = [make("linear", 1.0), make("a", 0.5, SIMPLE, 2.0), make("b", 0.8, COMPLEX)]
    found = rank(results, held_out, {})
    assert found.winner.name == "a"
    error = np.exp(np.mean(np.log(results[1].errors)))
    assert found.choice.sentence == (
        f"a: its held-out error is {error:.3g} of the output's standard deviation, that of the best linear model "
        f"{2 * error:.3g}; it is the best."
    )
    best, linear = found.choice.taken_candidate, found.choice.candidates[0]
    assert best.error == pytest.approx(error) and best.standard_error is None and linear.standard_error < 1e-9
    assert (best.stretches, best.seconds) == (len(held_out.blocks), 1.5)


def test_the_simplest_within_one_standard_error_is_taken(make, held_out, unstable):
    results = [make("linear", 3.0), make("a10", 0.5, SIMPLE, 10.0), make("a2", 0.505, SIMPLE, 2.0, noise=0.1)]
    found = rank(results, held_out, {})
    assert found.choice.taken == "a2" and found.taken == results[2].key
    assert "it is the simplest within one standard error of the best, " in found.choice.sentence
    assert found.choice.taken_candidate.standard_error == pytest.approx(0.1 / np.sqrt(len(held_out.blocks)), rel=0.6)


def test_unstable_candidates_are_left_out_unless_all_are(make, held_out, unstable):
    unstable.append("a")
    results = [make("linear", 1.0), make("a", 0.2, SIMPLE), make("b", 0.5, COMPLEX)]
    found = rank(results, held_out, {})
    assert notes(found.choice) == {"linear": "", "a": "unstable", "b": "taken"}
    unstable += ["linear", "b"]
    assert rank(results, held_out, {}).choice.taken == "a"


def test_diverged_candidates_are_left_out_and_reasons_given_once(make, held_out, unstable):
    diverged = make("a", 0.2, SIMPLE)
    diverged.errors[3] = np.inf
    found = rank([make("linear", 1.0), diverged], held_out, {})
    assert found.choice.taken == "linear" and found.choice.candidates[1].error is None
    for failed, reason in (
        ({}, "all held-out simulations diverged"),
        ({SIMPLE: "singular", COMPLEX: "singular", LINEAR_PART: "other"}, "singular; other$"),
    ):
        with pytest.raises(ComputationError, match=f"no candidate could be fitted: {reason}"):
            rank([], held_out, failed)


@pytest.mark.parametrize(("interrupted", "note"), [(False, "dropped"), (True, "unfinished")])
def test_partial_scores_are_dropped_and_failures_listed(make, held_out, unstable, interrupted, note):
    results = [make("linear", 1.0), make("a", 0.1, SIMPLE, folds=1)]
    choice = rank(results, held_out, {COMPLEX: "singular"}, interrupted).choice
    assert notes(choice) == {"linear": "taken", "a": note, COMPLEX.at(0.0).name: "failed"}
    first = sum(block.fold == 0 for block in held_out.blocks)
    assert choice.candidates[1].stretches == first and choice.candidates[1].error is not None
    said = "Interrupted: linear is the best of the candidates that were finished; others were not."
    assert (choice.sentence == said) == interrupted


def test_after_ctrl_c_a_part_is_better_than_nothing(make, held_out, unstable):
    choice = rank([make("a", 0.1, SIMPLE, folds=1)], held_out, {}, interrupted=True).choice
    assert notes(choice) == {"a": "taken"}
    with pytest.raises(KeyboardInterrupt):
        rank([], held_out, {}, interrupted=True)


def test_where_cold_runs_are_uninformative_predictions_decide(make, held_out, model, unstable):
    unstable.append("u")
    others = [make("d", 4.0, COMPLEX, folds=1), make("u", 4.0, COMPLEX, 2.0)]
    found = rank([make("linear", 4.0), make("a", 4.1, SIMPLE), *others], held_out, {})
    assert found.choice.scored_by == PREDICTIONS and "cold-start errors are uninformative" in PREDICTIONS
    assert notes(found.choice) == {"linear": "taken", "a": "", "d": "dropped", "u": "unstable"}
    known = [candidate.error is not None for candidate in found.choice.candidates]
    assert known == [True, True, False, False]  # one measure per table
    assert "its held-out error 1 to 3 steps ahead is" in found.choice.sentence
    errors = measure_ahead(found.winner, held_out)
    np.testing.assert_array_equal(found.winner.scores, errors)
    assert found.choice.taken_candidate.error == compute_held_out_error(errors)
    assert found.winner.errors.min() > errors.max()  # the errors of cold runs are kept
    assert rank([make("linear", 4.0), make("a", 1.0, SIMPLE)], held_out, {}).choice.scored_by == COLD_RUNS


def test_the_best_few_are_stable_and_of_different_structures(make, held_out, unstable):
    unstable.append("u")
    diverged = make("d", 0.1, LINEAR_PART)
    diverged.errors[3] = np.inf
    results = [
        make("linear", 3.0), make("a0", 0.6, SIMPLE, 0.0), make("a2", 0.5, SIMPLE, 2.0), make("b0", 0.9, COMPLEX, 0.0),
        make("b2", 0.8, COMPLEX, 2.0), make("c", 0.1, COMPLEX, 10.0, folds=1), make("u", 0.2, LINEAR_PART), diverged,
    ]  # fmt: skip
    found = rank(results, held_out, {})
    assert [each.name for each in found.list_best(1)] == ["a2"]
    assert [each.name for each in found.list_best(3)] == ["a2", "b2"]


def test_candidates_of_one_name_are_told_apart(make, held_out, unstable):
    """The identity is the configuration and the weight: the name is for display."""
    found = rank([make("same", 1.0, SIMPLE), make("same", 0.5, COMPLEX)], held_out, {})
    assert found.winner.path == COMPLEX and [row.note for row in found.choice.candidates] == ["", "taken"]
