"""Which candidates are members of the mixture, and the sentence that says why."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from revarb.data.windows import Order
from revarb.errors import ComputationError
from revarb.fitting.arx import ARX
from revarb.fitting.held_out import FOLDS, compute_held_out_error, measure_rms, simulate_blocks
from revarb.models.choice import COLD_RUNS
from revarb.models.ensemble import Ensemble
from revarb.selection import ranking
from revarb.selection.candidates import CandidateKey, CandidatePath, DefaultCandidates
from revarb.selection.ranking import PREDICTIONS, can_be_mixed, mix_candidates, rank
from revarb.selection.records import hold_out_blocks
from revarb.selection.validation import CandidateResult, score_predictions
from support import small

RECORD = small.record(samples=130)
A, B, C, D = (CandidatePath(small.spec(inducing=inducing), "RGP") for inducing in (4, 5, 6, 7))


@pytest.fixture(scope="module")
def held_out():
    return hold_out_blocks([RECORD], DefaultCandidates().find_largest_order([RECORD]))


@pytest.fixture(scope="module")
def model():
    return ARX(1, 1).fit(RECORD)


@pytest.fixture
def make(held_out, model):
    """Make a result: its errors are a factor times those of a typical one, with this standard error of their logs."""
    count = len(held_out.blocks)
    spread = np.random.default_rng(0).uniform(0.1, 0.4, size=count)
    sway = np.linspace(-1.0, 1.0, count)  # its mean is 0
    sway *= np.sqrt(count) / sway.std(ddof=1)

    def make_result(name, factor, path=None, weight=0.0, folds=FOLDS, deviation=0.0):
        errors = factor * spread * np.exp(deviation * sway)
        errors[[block.fold >= folds for block in held_out.blocks]] = np.nan
        # The order of a linear model is its identity.
        key = CandidateKey(Order(1, 1 + len(name), 1)) if path is None else path.at(weight)
        return CandidateResult(replace(key, name=name), dict.fromkeys(range(folds), model), errors, 1.5)

    return make_result


@pytest.fixture(autouse=True)
def unstable(monkeypatch):
    """Every candidate counts as stable, unless its name is in the list."""
    unstable = []
    monkeypatch.setattr(ranking, "is_stable", lambda result, records: result.name not in unstable)
    return unstable


def names(results):
    return [each.name for each in results]


def notes(choice):
    return {candidate.name: candidate.note for candidate in choice.candidates}


def test_a_linear_model_that_is_best_is_alone(make, held_out):
    """However close the next one is."""
    found = rank([make("linear", 0.98), make("a", 0.99, A, deviation=0.1)], held_out, {}, 5)
    choice = found.describe()
    assert names(found.members) == ["linear"] and found.mixture is None and choice.scored_by == COLD_RUNS
    assert notes(choice) == {"linear": "taken", "a": ""} and [each.weight for each in choice.candidates] == [0.0, 0.0]
    assert choice.sentence.startswith("A linear model is enough: its held-out error is ")
    assert "the best nonlinear model has" in choice.sentence
    poor = rank([make("linear", 3.0), make("a", 3.1, A)], held_out, {}, 5).describe()
    assert poor.scored_by != COLD_RUNS or poor.error > 0.6 * poor.mean_error
    assert poor.sentence.startswith("A linear model is taken, but none is good enough: its held-out error ")
    alone = rank([make("linear", 1.0)], held_out, {}, 5).describe().sentence
    assert alone.startswith("linear: its held-out error is ") and alone.endswith("Only linear models were tried.")


@pytest.mark.parametrize(
    ("ratio", "deviation", "close"),
    [(1.0, 0.1, True), (1.2, 0.1, True), (1.2, 0.08, False), (1.49, 1.0, True), (1.51, 1.0, False)],
)
def test_members_are_not_clearly_worse_than_the_best(make, held_out, ratio, deviation, close):
    """Neither by more than two standard errors, log(1.2) = 0.182, nor by half."""
    found = rank([make("other", 0.5 * ratio, B, deviation=deviation), make("best", 0.5, A)], held_out, {}, 5)
    assert set(names(found.members)) == ({"best", "other"} if close else {"best"})
    assert (found.taken is found.mixture) == close


def test_standard_errors_are_those_of_the_difference_to_the_best(make, held_out):
    """The mean of log(error / error of the best): what makes a block hard for all drops out."""
    swaying = [make("a", 0.5, A, deviation=0.3), make("b", 0.51, B, deviation=0.3), make("c", 0.51, C, deviation=0.2)]
    table = {row.name: row.standard_error for row in rank(swaying, held_out, {}, 1).describe().candidates}
    assert table == {"a": None, "b": pytest.approx(0.0, abs=1e-12), "c": pytest.approx(0.1)}


def test_members_are_at_most_so_many_and_one_of_a_structure(make, held_out):
    """All linear models are one structure."""
    close = [
        make("a2", 0.5, A, 2.0), make("l", 0.51, deviation=0.2), make("b", 0.53, B, deviation=0.2),
        make("c", 0.54, C, deviation=0.2),
    ]  # fmt: skip
    others = [
        make("a10", 0.505, A, 10.0, deviation=0.2), make("ll", 0.52, deviation=0.2), make("d", 0.9, D, deviation=1.0),
    ]  # fmt: skip
    ordered = names(close)
    for count in range(1, 5):
        found = rank([*others, *close], held_out, {}, count)
        assert names(found.members) == ordered[:count] and found.best.name == "a2"
        assert (found.mixture is None) == (count == 1)
    assert names(rank([*others, *close], held_out, {}, 9).members) == ordered
    choice = rank([*others, *close], held_out, {}, 4).describe()
    assert notes(choice) == {**dict.fromkeys(names(others), ""),
                             **dict.fromkeys(ordered, "member"), "mixture of 4": "taken"}  # fmt: skip
    assert names(choice.members) == ordered and {each.weight for each in choice.members} == {0.25}
    assert sum(each.weight for each in choice.candidates) == 1.0


def test_what_cannot_be_mixed_is_no_member_and_alone_where_it_is_best(make, held_out):
    own = make("own", 0.45, D, deviation=0.2)
    own = replace(own, folds=dict.fromkeys(range(FOLDS), SimpleNamespace()))
    assert not can_be_mixed(own) and not can_be_mixed(make("a", 1.0, A, folds=3)) and can_be_mixed(make("l", 1.0))
    results = [make("a", 0.5, A), make("b", 0.52, B, deviation=0.4)]
    found = rank([*results, own], held_out, {}, 5)
    assert names(found.members) == ["own"] and found.mixture is None
    own.errors[:] *= 0.51 / 0.45  # now between the others, which are as close to it
    assert all(names(rank([*results, own], held_out, {}, count).members) == ["a", "b"] for count in (2, 5))
    assert names(rank([results[0], own], held_out, {}, 5).members) == ["a"]


def test_the_error_of_the_mixture_is_that_of_the_mean_of_its_members(make, held_out):
    """By plain means of the runs over every block."""
    folds = [{fold: ARX(lags, 1).fit(RECORD[fold:]) for fold in range(FOLDS)} for lags in (1, 2)]
    members = [replace(make(name, 1.0, path), folds=each) for name, path, each in zip("ab", (A, B), folds, strict=True)]
    mixture = mix_candidates(members, held_out)
    assert mixture.key.configuration == (A.at(0.0), B.at(0.0)) and mixture.name == "mixture of 2"
    assert all(isinstance(model, Ensemble) for model in mixture.folds.values()) and mixture.complete
    runs = (*held_out.runs, *held_out.late_runs)
    errors = []
    for number, run in enumerate(runs):
        simulated = [simulate_blocks(each[run.fold], runs)[number] for each in folds]
        errors.append(measure_rms((simulated[0] + simulated[1]) / 2.0, run, held_out.scaling))
    early, late = (
        errors[: len(held_out.runs)],
        dict(zip(held_out.late_numbers, errors[len(held_out.runs) :], strict=True)),
    )
    expected = [np.sqrt(error * late.get(number, error)) for number, error in enumerate(early)]
    np.testing.assert_allclose(mixture.errors, expected)


def test_the_sentence_has_the_error_of_the_mixture(make, held_out):
    results = [make("linear", 1.0), make("a", 0.5, A, 2.0), make("b", 0.7, B, deviation=0.5)]
    found = rank(results, held_out, {}, 5)
    choice, [best, other] = found.describe(), [compute_held_out_error(each.errors) for each in found.members]
    taken = choice.taken_candidate
    assert taken.name == "mixture of 2" and taken.error == compute_held_out_error(found.mixture.errors)
    assert choice.sentence == (
        f"mixture of 2: its held-out error is {taken.error:.3g} of the output's standard deviation, that of the best "
        f"linear model {2 * best:.3g}. Its members have {best:.3g} to {other:.3g} alone."
    )
    assert other == pytest.approx(1.4 * best) and choice.linear_error == pytest.approx(2.0 * best)
    alone = rank(results, held_out, {}, 1).describe()
    assert alone.taken == "a" and alone.taken_candidate.error == best
    assert alone.sentence.startswith(f"a: its held-out error is {best:.3g} of") and alone.sentence.endswith(
        "it is the best."
    )
    row = alone.taken_candidate
    assert (row.standard_error, row.stretches, row.seconds) == (None, len(held_out.blocks), 1.5)
    assert alone.candidates[0].standard_error < 1e-9  # the same factor on every block


def test_unstable_candidates_are_left_out_unless_all_are(make, held_out, unstable):
    unstable.append("a")
    results = [make("linear", 1.0), make("a", 0.2, A), make("b", 0.5, B)]
    choice = rank(results, held_out, {}, 1).describe()
    assert notes(choice) == {"linear": "", "a": "unstable", "b": "taken"}
    # Who is a member is judged beside the best stable one.
    near = [make("a", 0.2, A), make("b", 0.5, B), make("c", 0.51, C, deviation=0.1)]
    assert names(rank(near, held_out, {}, 5).members) == ["b", "c"]
    unstable += ["linear", "b"]
    assert rank(results, held_out, {}, 1).best.name == "a"


def test_diverged_candidates_are_left_out_and_reasons_given_once(make, held_out):
    diverged = make("a", 0.2, A)
    diverged.errors[3] = np.inf
    choice = rank([make("linear", 1.0), diverged], held_out, {}, 5).describe()
    assert choice.taken == "linear" and choice.candidates[1].error is None
    for failed, reason in (
        ({}, "all held-out simulations diverged"),
        ({A: "singular", B: "singular", C: "other"}, "singular; other$"),
    ):
        with pytest.raises(ComputationError, match=f"no candidate could be fitted: {reason}"):
            rank([], held_out, failed, 5)


@pytest.mark.parametrize("interrupted", [False, True])
def test_what_is_not_scored_on_all_blocks_is_unfinished_and_failures_are_listed(make, held_out, interrupted):
    """After Ctrl-C nothing is mixed."""
    results = [make("linear", 1.0), make("a", 0.1, A, folds=1), make("b", 0.5, B), make("c", 0.6, C, deviation=0.2)]
    found = rank(results, held_out, {D: "singular"}, 5, interrupted)
    choice = found.describe()
    said = "Interrupted: b is the best of the candidates that were finished; others were not."
    assert (choice.sentence == said) == interrupted == (found.mixture is None)
    assert notes(choice)["a"] == "unfinished" and notes(choice)[D.at(0.0).name] == "failed"
    first = sum(block.fold == 0 for block in held_out.blocks)
    assert choice.candidates[1].stretches == first and choice.candidates[1].error is not None


def test_after_ctrl_c_a_part_is_better_than_nothing(make, held_out):
    part = rank([make("a", 0.1, A, folds=1)], held_out, {}, 5, interrupted=True)
    assert notes(part.describe()) == {"a": "taken"}
    with pytest.raises(KeyboardInterrupt):
        rank([], held_out, {}, 5, interrupted=True)


@pytest.mark.parametrize("noisy", [True, False])
def test_where_no_cold_run_follows_the_record_the_best_is_alone(make, held_out, unstable, monkeypatch, noisy):
    """However close the others are. Predictions decide if they are nearly as bad."""
    monkeypatch.setattr(ranking, "HARDLY_EASIER", 0.0 if noisy else 10.0)
    unstable.append("u")
    others = [make("d", 4.0, B, folds=1), make("u", 4.0, C, 2.0)]
    results = [make("a", 4.0, A), make("b", 4.01, D, deviation=0.1), make("linear", 4.1), *others]
    found = rank(results, held_out, {}, 5)
    choice = found.describe()
    assert (choice.scored_by == PREDICTIONS) == noisy and found.mixture is None
    assert notes(choice) == {"a": "taken", "b": "", "linear": "", "d": "unfinished", "u": "unstable"}
    known = [candidate.error is not None for candidate in choice.candidates]
    assert known == [True, True, True, not noisy, not noisy]  # one measure per table
    expected = score_predictions(results[0], held_out).errors if noisy else results[0].errors
    np.testing.assert_array_equal(found.best.errors, expected)
    assert choice.error == compute_held_out_error(expected)
    assert ("its held-out error 1 to 3 steps ahead is" in choice.sentence) == noisy
    assert rank([make("linear", 4.0), make("a", 1.0, A)], held_out, {}, 5).scored_by == COLD_RUNS


def test_predictions_decide_where_they_are_hardly_easier_than_cold_runs(make, held_out, monkeypatch):
    monkeypatch.setattr(ranking, "UNINFORMATIVE", 0.3)
    ahead = compute_held_out_error(score_predictions(make("a", 4.0, A), held_out).errors)
    typical = compute_held_out_error(make("a", 1.0, A).errors)
    for share, scored_by in ((0.49, COLD_RUNS), (0.51, PREDICTIONS)):
        assert ahead / share > 0.3
        assert rank([make("a", ahead / share / typical, A)], held_out, {}, 5).scored_by == scored_by


def test_where_a_candidate_cannot_predict_cold_runs_decide(make, held_out, monkeypatch):
    monkeypatch.setattr(ranking, "HARDLY_EASIER", 0.0)
    own = make("own", 3.9, D)
    own = replace(own, folds=dict.fromkeys(range(FOLDS), SimpleNamespace()))
    choice = rank([make("a", 4.0, A), own], held_out, {}, 5).describe()
    assert (choice.taken, choice.scored_by) == ("own", COLD_RUNS) and all(row.error for row in choice.candidates)
