"""Which candidate is taken, and the sentence that says why."""

import numpy as np
import pytest

from revarb.baselines.arx import ARX
from revarb.data.windows import Order
from revarb.errors import ComputationError
from revarb.models.choice import COLD_RUNS
from revarb.training import choose, ranking
from revarb.training.candidates import list_structures
from revarb.training.ranking import AHEAD, WINDOWS, rank
from revarb.training.stretches import FOLDS
from revarb.training.trials import Scored
from support import small

RECORD = small.record(samples=130)
SIMPLE, COMPLEX = list_structures([RECORD], 1)[1:3]


@pytest.fixture(scope="module")
def held_out():
    return choose._hold_out([RECORD])


@pytest.fixture(scope="module")
def model():
    return ARX(1, 1).fit(RECORD)


@pytest.fixture
def make(held_out, model):
    """Make a candidate: its errors are a factor times those of a typical one, with some noise."""
    spread = np.random.default_rng(0).uniform(0.1, 0.4, size=len(held_out.stretches))

    def make_scored(name, factor, structure=None, weight=0.0, folds=FOLDS, noise=0.0):
        drawn = np.random.default_rng(1).normal(size=len(spread))
        errors = factor * spread * np.exp(noise * (drawn - drawn.mean()))
        errors[[stretch.fold >= folds for stretch in held_out.stretches]] = np.nan
        complexity = (False, 0.0, 2) if structure is None else structure.complexity(weight)
        order = Order(1, 1, 1) if structure is None else None
        return Scored(name, complexity, errors, 1.5, dict.fromkeys(range(folds), model), structure, weight, order)

    return make_scored


@pytest.fixture
def unstable(monkeypatch):
    """Every candidate counts as stable, unless its name is in the list."""
    unstable = []
    monkeypatch.setattr(ranking, "_is_stable", lambda scored, held_out: scored.name not in unstable)
    return unstable


def notes(choice):
    return {candidate.name: candidate.note for candidate in choice.candidates}


def test_a_linear_model_that_is_as_good_is_taken(make, held_out, unstable):
    found = rank([make("linear", 1.0), make("a", 0.99, SIMPLE, noise=0.1)], held_out, {})
    assert found.winner.name == "linear" and found.choice.taken == "linear" and found.choice.scored_by == COLD_RUNS
    assert found.choice.sentence.startswith("A linear model is enough: its held-out error is ")
    assert "the best nonlinear model has" in found.choice.sentence
    assert notes(found.choice) == {"linear": "taken", "a": ""}
    alone = rank([make("linear", 1.0)], held_out, {}).choice.sentence
    assert "the best nonlinear model" not in alone and alone.endswith("better by more than one standard error.")


def test_a_nonlinear_model_that_is_better_is_taken(make, held_out, unstable):
    scored = [make("linear", 1.0), make("a", 0.5, SIMPLE, 2.0), make("b", 0.8, COMPLEX)]
    found = rank(scored, held_out, {})
    assert found.winner.name == "a"
    error = np.exp(np.mean(np.log(scored[1].errors)))
    assert found.choice.sentence == (
        f"a: its held-out error is {error:.3g} of the output's standard deviation, that of the best linear model "
        f"{2 * error:.3g}; it is the best."
    )
    best, linear = found.choice.taken_candidate, found.choice.candidates[0]
    assert best.error == pytest.approx(error) and best.standard_error is None and linear.standard_error < 1e-9
    assert (best.stretches, best.seconds) == (len(held_out.stretches), 1.5)


def test_the_simplest_within_one_standard_error_is_taken(make, held_out, unstable):
    scored = [make("linear", 3.0), make("a10", 0.5, SIMPLE, 10.0), make("a2", 0.505, SIMPLE, 2.0, noise=0.1)]
    found = rank(scored, held_out, {})
    assert found.choice.taken == "a2" and found.taken == 2
    assert "it is the simplest within one standard error of the best, " in found.choice.sentence
    assert found.choice.taken_candidate.standard_error == pytest.approx(0.1 / np.sqrt(len(held_out.stretches)), rel=0.6)


def test_unstable_candidates_are_left_out_unless_all_are(make, held_out, unstable):
    unstable.append("a")
    scored = [make("linear", 1.0), make("a", 0.2, SIMPLE), make("b", 0.5, COMPLEX)]
    found = rank(scored, held_out, {})
    assert notes(found.choice) == {"linear": "", "a": "unstable", "b": "taken"}
    unstable += ["linear", "b"]
    assert rank(scored, held_out, {}).choice.taken == "a"


def test_diverged_candidates_are_left_out(make, held_out, unstable):
    diverged = make("a", 0.2, SIMPLE)
    diverged.errors[3] = np.inf
    found = rank([make("linear", 1.0), diverged], held_out, {})
    assert found.choice.taken == "linear" and found.choice.candidates[1].error is None
    with pytest.raises(ComputationError, match="no candidate could be fitted: all held-out simulations diverged"):
        rank([], held_out, {})
    with pytest.raises(ComputationError, match="no candidate could be fitted: the matrix is singular"):
        rank([], held_out, {SIMPLE: "the matrix is singular"})


def test_partial_scores_are_dropped_and_failures_listed(make, held_out, unstable):
    scored = [make("linear", 1.0), make("a", 0.1, SIMPLE, folds=1)]
    choice = rank(scored, held_out, {COMPLEX: "singular"}).choice
    assert notes(choice) == {"linear": "taken", "a": "dropped", COMPLEX.describe(0.0): "failed"}
    first = sum(stretch.fold == 0 for stretch in held_out.stretches)
    assert choice.candidates[1].stretches == first and choice.candidates[1].error is not None
    only = rank(scored[1:], held_out, {}, interrupted=True)  # no linear model: better than nothing
    assert only.choice.taken == "a" and notes(only.choice) == {"a": "taken"}


def test_a_reason_is_given_once(held_out):
    with pytest.raises(ComputationError, match=r"no candidate could be fitted: singular; other$"):
        rank([], held_out, {SIMPLE: "singular", COMPLEX: "singular", list_structures([RECORD], 1)[0]: "other"})


def test_after_ctrl_c_what_was_not_finished_is_called_so(make, held_out, unstable):
    scored = [make("linear", 1.0), make("a", 0.1, SIMPLE, folds=1)]
    choice = rank(scored, held_out, {COMPLEX: "singular"}, interrupted=True).choice
    assert notes(choice) == {"linear": "taken", "a": "unfinished", COMPLEX.describe(0.0): "failed"}
    assert choice.sentence == "Interrupted: linear is the best of the candidates that were finished; others were not."
    with pytest.raises(KeyboardInterrupt):
        rank([], held_out, {}, interrupted=True)


def test_where_cold_runs_tell_nothing_predictions_decide(make, held_out, model, unstable):
    unstable.append("u")
    others = [make("d", 4.0, COMPLEX, folds=1), make("u", 4.0, COMPLEX, 2.0)]
    found = rank([make("linear", 4.0), make("a", 4.1, SIMPLE), *others], held_out, {})
    assert found.choice.scored_by == WINDOWS and "cold runs tell nothing" in WINDOWS
    assert notes(found.choice) == {"linear": "taken", "a": "", "d": "dropped", "u": "unstable"}
    known = [candidate.error is not None for candidate in found.choice.candidates]
    assert known == [True, True, False, False]  # one measure per table
    assert "its held-out error 1 to 3 steps ahead is" in found.choice.sentence
    ahead = [(model.predict(RECORD, steps).mean - RECORD.y) / held_out.scaling.y_std for steps in AHEAD]
    errors = [np.sqrt(np.mean([errors[stretch.rows] ** 2 for errors in ahead])) for stretch in held_out.stretches]
    np.testing.assert_allclose(found.winner.errors, errors)
    assert found.choice.taken_candidate.error == pytest.approx(np.exp(np.mean(np.log(errors))))
    assert rank([make("linear", 4.0), make("a", 1.0, SIMPLE)], held_out, {}).choice.scored_by == COLD_RUNS


def test_the_best_few_are_of_different_structures(make, held_out, unstable):
    scored = [
        make("linear", 3.0), make("a0", 0.6, SIMPLE, 0.0), make("a2", 0.5, SIMPLE, 2.0), make("b0", 0.9, COMPLEX, 0.0),
        make("b2", 0.8, COMPLEX, 2.0), make("c", 0.1, COMPLEX, 10.0, folds=1),
    ]  # fmt: skip
    found = rank(scored, held_out, {})
    assert [each.name for each in found.list_best(1)] == ["a2"]
    assert [each.name for each in found.list_best(3)] == ["a2", "b2"]


def test_an_unstable_model_is_no_member_of_a_mixture(make, held_out, unstable):
    unstable.append("b")
    diverged = make("c", 0.1, list_structures([RECORD], 1)[0])
    diverged.errors[3] = np.inf
    found = rank([make("a", 0.5, SIMPLE), make("b", 0.2, COMPLEX), diverged], held_out, {})
    assert [each.name for each in found.list_best(3)] == ["a"]


def test_stability_is_that_of_all_folds(make, held_out, monkeypatch):
    seen = []
    monkeypatch.setattr(ranking, "is_stable", lambda models, records: bool(seen.append(len(models))) or True)
    rank([make("linear", 1.0)], held_out, {})
    assert seen == [FOLDS]
