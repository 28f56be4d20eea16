"""The last fits of a choice: what becomes of members that fail, and what is left after Ctrl-C.

Of linear models, in the place of recurrent GPs: nothing is compiled.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import revarb
from revarb.data.windows import Order
from revarb.errors import ComputationError
from revarb.fitting.held_out import FOLDS, LAST
from revarb.fitting.weight_path import ALL, WeightPath
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_arx import FittedARX
from revarb.models.recipe import Status
from revarb.selection import final_fit, ranking
from revarb.selection.candidates import CandidateKey, CandidatePath
from revarb.selection.final_fit import fit_members
from revarb.selection.linear import fit_linear_candidate
from revarb.selection.ranking import rank
from revarb.selection.records import hold_out_blocks
from revarb.selection.schedule import FitJob
from revarb.selection.validation import CandidateResult, Validation
from support import small

RECORD = small.record(samples=130)
HELD_OUT = hold_out_blocks([RECORD], Order(2, 2, 1))
RECIPE = replace(small.QUICK, free_run_weight=5.0)  # weights 0, 2, 5
A, B = (CandidatePath(small.spec(inducing=inducing, recipe=RECIPE), name) for inducing, name in ((4, "a"), (5, "b")))
MODELS = [revarb.ARX(1, 1).fit(RECORD, seed=seed) for seed in range(7)]


class Fits:
    """In place of a validation: the fits to all records of some paths fail, as far as Ctrl-C lets them begin."""

    aside = None

    def __init__(self, failing, reached=3, pressed=False):
        self.held_out, self.failing, self.reached = HELD_OUT, failing, reached
        progress = SimpleNamespace(pressed=[2] if pressed else [])
        self.scheduler = SimpleNamespace(seed=0, workers=1, progress=progress)

    def fit(self, jobs):
        assert all(job.fold in (ALL, LAST) for job in jobs)

    @property
    def paths(self):
        known = [(path, first) for path, first in ((A, 0), (B, 3)) if path not in self.failing]
        return {
            FitJob(path, ALL): WeightPath(tuple(MODELS[first : first + self.reached]), 1.0) for path, first in known
        }

    get_model = Validation.get_model


@pytest.fixture(autouse=True)
def stable(monkeypatch):
    monkeypatch.setattr(ranking, "is_stable", lambda result, records: True)


SWAY = np.resize([1.0, -1.0], len(HELD_OUT.blocks))  # of the logs of the errors


def make(error, path=None, weight=0.0, deviation=0.0):
    """With a standard error of that of the logs, about."""
    key = CandidateKey(Order(1, 1, 1), name="linear") if path is None else path.at(weight)
    errors = error * np.exp(deviation * np.sqrt(len(SWAY)) * SWAY)
    return CandidateResult(key, dict.fromkeys(range(FOLDS), MODELS[6]), errors, 1.0)


BEST = make(0.2, A, 5.0)
CLOSE = [make(0.21, A, 2.0, 0.1), make(0.215, B, 5.0, 0.1), make(0.22, deviation=0.2)]
WORSE = [make(0.31, A), make(0.33, B, 2.0), make(0.35, B)]  # more than 1.5 times the best
RESULTS = [BEST, *CLOSE, *WORSE]


def fit(results, members, failing=(), **options):
    """The model, and the seeds of its members: 0 to 2 for the weights of A, 3 to 5 of B, 0 of a linear one."""
    model = fit_members(rank(results, HELD_OUT, {}, members), Fits(failing, **options), [RECORD])
    return model, [member.seed for member in getattr(model, "members", (model,))]


def test_what_cannot_be_fitted_is_left_out():
    """Not replaced: the mean with others is worse."""
    model, seeds = fit(RESULTS, 5)
    assert seeds == [2, 5, 0] and isinstance(model, Ensemble) and isinstance(model.members[2], FittedARX)
    assert model.choice.taken == "mixture of 3" and "Not fitted" not in model.choice.sentence
    model, seeds = fit(RESULTS, 5, failing=[A])
    assert seeds == [5, 0] and isinstance(model, Ensemble) and model.choice.taken == "mixture of 2"
    assert [(row.name, row.weight) for row in model.choice.members] == [("b, 2 lags, w = 5", 0.5), ("linear", 0.5)]
    assert model.choice.sentence.endswith("Not fitted to all records: a, 2 lags, w = 5.")
    assert fit(RESULTS, 3, failing=[B])[1] == [2, 0]


def test_one_that_is_left_is_a_model_alone():
    model, seeds = fit(RESULTS, 2, failing=[A])
    assert isinstance(model, FittedARX) and seeds == [5] and model.choice.taken == "b, 2 lags, w = 5"
    assert {row.note for row in model.choice.candidates} == {"taken", ""}
    assert "; it is the best that was fitted to all records. Not fitted to all records: a, " in model.choice.sentence


@pytest.mark.parametrize("results", [[BEST, CLOSE[0], *WORSE, make(0.4)], [BEST, *WORSE, make(0.4)]])
def test_where_no_member_can_be_fitted_the_next_best_is_taken(results):
    """One, by its error."""
    model, seeds = fit(results, 5, failing=[A])
    assert seeds == [4] and model.choice.taken == "b, 2 lags, w = 2"
    assert "; it is the best that was fitted to all records. Not fitted to all records: a, " in model.choice.sentence


@pytest.mark.parametrize("bounded", [True, False])
def test_what_is_not_stable_without_the_last_third_decides_no_band(monkeypatch, bounded):
    monkeypatch.setattr(final_fit, "fit_linear_without_last", lambda order, held_out: MODELS[5])
    monkeypatch.setattr(final_fit, "stays_bounded", lambda model, records, scaling: bounded)
    assert final_fit._find_last(MODELS[0], make(0.4), Fits([])) is (MODELS[5] if bounded else None)


@pytest.mark.parametrize("members", [1, 5])
def test_a_linear_model_that_is_left_is_alone(members):
    """With its own band."""
    model, _ = fit(RESULTS, members, failing=[A, B])
    own = fit_linear_candidate(CLOSE[-1], HELD_OUT, [RECORD], seed=0)
    np.testing.assert_array_equal(model.residual_std, own.residual_std)
    assert model.choice.taken == "linear" and "A linear model is enough" not in model.choice.sentence
    assert model.choice.taken_candidate.note == "taken"
    better = [BEST, make(0.21, deviation=0.1), make(0.215, B, 5.0, 0.1)]
    assert isinstance(fit(better, 5)[0], Ensemble)
    assert fit(better, members, failing=[A])[0].choice.taken == "linear"  # better than what could join it
    with pytest.raises(ComputationError, match="no candidate could be fitted to all records; use RGP"):
        fit([BEST, *WORSE], members, failing=[A, B])


def test_what_is_not_stable_when_fitted_to_all_records_is_replaced_by_a_smaller_weight(monkeypatch):
    monkeypatch.setattr(final_fit, "stays_bounded", lambda model, records, scaling=None: model.seed != 2)
    with pytest.warns(
        UserWarning, match="a, 2 lags, w = 5: .* not stable, and is replaced by that of a smaller weight"
    ):
        model, seeds = fit(RESULTS, 3)
    assert seeds == [1, 5, 0] and model.choice.taken == "mixture of 3"


def test_what_is_not_stable_with_any_weight_is_left_out(monkeypatch):
    monkeypatch.setattr(final_fit, "stays_bounded", lambda model, records, scaling=None: model.seed not in (0, 1, 2))
    with pytest.warns(UserWarning, match="a, 2 lags, w = 5: fitted to all records it is not stable, and is left out"):
        model, seeds = fit(RESULTS, 3)
    assert seeds == [5] and model.choice.taken == "b, 2 lags, w = 5"
    assert "Not fitted to all records: a, 2 lags, w = 5; linear." in model.choice.sentence
    monkeypatch.setattr(final_fit, "is_stable", lambda result, records: False)  # no candidate is: all are compared
    assert fit(RESULTS, 3)[1] == [2, 5, 0]


def test_where_the_last_run_diverges_the_weight_before_is_kept_once():
    with pytest.warns(UserWarning, match="a, 2 lags, w = 5: its run over all records diverged before this weight"):
        model, seeds = fit([BEST, CLOSE[0], CLOSE[1], CLOSE[2]], 5, failing=[B], reached=2)
    assert seeds == [1, 0] and model.choice.taken == "mixture of 2"


def test_after_ctrl_c_what_is_finished_is_mixed():
    model, seeds = fit(RESULTS, 5, failing=[A], pressed=True)
    assert seeds == [5, 0] and model.status is Status.INTERRUPTED and isinstance(model, Ensemble)
    assert "Not fitted to all records: a, " in model.choice.sentence
    nothing, _ = fit(RESULTS, 5, failing=[A, B], pressed=True)
    assert nothing.status is Status.INTERRUPTED and nothing.choice.taken == "a, 2 lags, w = 5"
    assert nothing.choice.sentence.startswith("Interrupted: a, 2 lags, w = 5 is the best")
    assert [row.note for row in nothing.choice.candidates] == ["taken", *[""] * 6]
