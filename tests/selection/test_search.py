"""How long a choice takes: what is multiplied, whatever an evaluation takes."""

from types import SimpleNamespace

import pytest

import revarb
from revarb.errors import InputError
from revarb.fitting.held_out import FOLDS
from revarb.selection import search
from revarb.selection.candidates import CandidatePath
from revarb.selection.search import (
    EVALUATIONS,
    OTHERS,
    SHARED,
    Duration,
    count_evaluations,
    estimate_last_fits,
    measure_durations,
)
from support import small

SPEC = small.spec(recipe=revarb.Recipe(stages=(revarb.Stage(("mu",), 30),) * 2, free_run_weight=5.0))
PATH, MEAN = CandidatePath(SPEC, "RGP"), CandidatePath(revarb.Mean(), "Mean")
RECORDS = [small.record(samples=140)]


def validation(workers, pressed=()):
    """Parts with a quarter of the rows of the records."""
    progress = SimpleNamespace(pressed=pressed)
    scheduler = SimpleNamespace(
        parts=[small.record(samples=35)], records=RECORDS, workers=workers, seed=0, progress=progress
    )
    return SimpleNamespace(scheduler=scheduler, held_out=SimpleNamespace(records=RECORDS, blocks=()), aside=None)


def test_evaluations_are_those_of_all_stages_and_weights():
    stages, (*_, free_run) = 60, SPEC.recipe.iterations
    weights = len(SPEC.recipe.free_run_weights)
    assert count_evaluations(PATH) == pytest.approx(EVALUATIONS * (stages + weights * free_run))
    assert count_evaluations(MEAN) == 0.0


@pytest.fixture
def evaluations(monkeypatch):
    """The evaluations of the bound that are measured; they do nothing."""
    seen = []
    monkeypatch.setattr(search, "make_objective", lambda *what: seen.append)
    return seen


@pytest.mark.parametrize(("workers", "folds"), [(1, FOLDS), (2, 2 * SHARED), (3, 2 * SHARED), (9, SHARED)])
def test_an_evaluation_is_multiplied(evaluations, monkeypatch, workers, folds):
    """Folds are fitted in turn, or side by side and slower; a member is fitted to all records, and like a fold."""
    monkeypatch.setattr(search, "OTHERS", 0.0)
    found = measure_durations(validation(workers), [PATH])[PATH]
    assert found.folds / found.final == pytest.approx(folds * 35 / (35 + 140))
    assert len(evaluations) == 1 + search.REPEATS  # the first one compiles


def test_after_ctrl_c_nothing_more_is_compiled(evaluations):
    measure_durations(validation(2, pressed=[2]), [PATH])
    assert evaluations == []


def test_what_cannot_be_measured_takes_no_time(monkeypatch):
    def refuse(*arguments):
        raise InputError("too short")

    monkeypatch.setattr(search, "initialise_fold", refuse)
    for found in measure_durations(validation(2), [PATH, MEAN]).values():
        assert found == pytest.approx((2 * OTHERS, 2 * OTHERS), rel=1e-3)


@pytest.mark.parametrize(
    ("members", "workers", "last"), [(5, 1, 60.0), (2, 1, 50.0), (1, 1, 30.0), (5, 2, 30.0), (5, 9, 30.0)]
)
def test_the_last_fits_are_those_of_the_members(members, workers, last):
    """The slowest paths may be the members; side by side no fit is faster than alone."""
    durations = [Duration(100.0, 10.0), Duration(200.0, 30.0), Duration(1.0, 20.0)]
    assert estimate_last_fits(durations, members, workers) == last
    assert estimate_last_fits([], members, workers) == 0.0
