"""`revarb.fit`: everything is chosen on held-out stretches of the training records.

Candidates (candidates.py) are fitted without the stretches of one fold at a time and simulate them (trials.py). The
simplest one that cannot be told from the best is fitted to everything, and the same fits calibrate its bands.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import effective_n_jobs

from revarb.data.preprocessor import Preprocessor
from revarb.data.quality import warn_about_quality
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, as_records
from revarb.data.windows import Order
from revarb.errors import InputError, check_integer, check_seed, describe
from revarb.models.base import Fitted
from revarb.optim.status import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.machine import collect_versions
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_bar
from revarb.training.candidates import (
    MORE_LAGS,
    Structure,
    leave_out_short,
    limit_lags,
    list_other_recipes,
    list_structures,
    list_variants,
)
from revarb.training.choice_store import ChoiceStore
from revarb.training.final_fit import fit_default, fit_interrupted, fit_taken
from revarb.training.fold_paths import ALL
from revarb.training.heavy_tails import try_student
from revarb.training.linear_trial import find_delay, try_linear
from revarb.training.one_standard_error import log_errors
from revarb.training.parts import cut_parts
from revarb.training.ranking import Ranking, rank
from revarb.training.solve import count_steps
from revarb.training.stretches import FOLDS, cut_stretches
from revarb.training.trials import HeldOut, Progress, Scored, Trials, hold_out

EFFORTS = ("normal", "quick")
DROP = 0.4  # a structure is dropped after its first fold where its log error is larger than the best one's by this
DROP_VARIANT = 0.1  # a variant of the best structure, which is rarely better by much
QUICK = 'With the effort "quick" no recurrent GP without a linear part was tried.'
MAX_WORKERS = 8  # processes, each of which compiles and holds its own programs


@with_numerics
def fit(
    train: Series | Sequence[Series],
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    *,
    members: int = 1,
    effort: str = "normal",
    resume: bool = False,
) -> Fitted:
    """Train the model that simulates held-out stretches of the training records best.

    Linear and recurrent GP models of several orders, structures and trainings are tried. The simplest one whose
    held-out error is within one standard error of the best is fitted to all records and calibrated on the same
    stretches. `model.choice` has everything that was tried. To say it yourself, use `revarb.RGP(...).fit`.

    Ctrl-C returns the best candidate so far, with status "interrupted"; a second Ctrl-C stops immediately.

    Parameters
    ----------
    train : Series or list of Series
        Training records. Windows never cross from one record to the next; NaN in y is a missing value.
    seed : int
        Seed of all fits.
    jobs : int, optional
        Number of processes that share the fits; default: one per core, at most eight. The result does not depend on it.
    progress : bool
        Show a progress bar, or where the output is not a terminal, a line now and then.
    members : int
        Number of recurrent GP candidates, the best ones, whose mixture is returned; 1 for the best one alone.
    effort : "normal" or "quick"
        "quick" tries linear models and recurrent GPs with a linear part only, in a quarter of the time.
    resume : bool
        Continue a choice on the same records that was killed or interrupted.

    Returns
    -------
    FittedRGP, FittedARX or Ensemble
        A `FittedARX` where nothing nonlinear was found, an `Ensemble` with `members` above 1.

    Raises
    ------
    InputError
        If the records cannot be used, such as a constant column or too few samples.
    ComputationError
        If no candidate could be fitted.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(80.0) ** 1.5)
    >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:80]
    >>> model = revarb.fit(revarb.Series(u, y), jobs=1)  # doctest: +SKIP
    >>> model.choice.taken  # doctest: +SKIP
    'linear, 1 + 2 lags'
    """
    seed, records = check_seed(seed), as_records(train)
    Standardiser.from_records(records)  # refuses a constant column before anything is left out or cut
    records, members = leave_out_short(records), check_integer("members", members, least=1)
    workers, effort = _count_workers(jobs), _check_effort(effort)
    held_out = _hold_out(cut_parts(records))
    if held_out is None:
        return fit_default(records, seed, progress)
    warn_about_quality(as_records(train))
    store = ChoiceStore.open(_digest(records, seed), resume)
    with progress_bar("choosing", _count_steps(held_out, effort), progress) as update, capture_interrupts(1) as pressed:
        whole = all(part is record for part, record in zip(held_out.records, records, strict=False))
        trials = Trials(held_out, seed, workers, store, Progress(update, pressed), whole)
        ranking = try_student(_try_candidates(trials, effort), trials)  # which tries nothing after Ctrl-C
        if effort == "quick":
            ranking = _add_sentence(ranking, QUICK)
        if pressed:
            return fit_interrupted(ranking, held_out, records, seed)
        model = fit_taken(ranking, trials, records, members)
    if model.status is not Status.INTERRUPTED:
        store.discard()
    return model


@dataclass(frozen=True)
class Chosen:
    """`revarb.fit` as a configuration, for `revarb.compare` and other code that takes one.

    Parameters
    ----------
    jobs, members : int
        As in `revarb.fit`.
    effort : "normal" or "quick"
        As in `revarb.fit`.

    Examples
    --------
    >>> import revarb
    >>> models = {"Mean": revarb.Mean(), "revarb (chosen)": revarb.Chosen(jobs=1)}
    """

    jobs: int | None = None
    members: int = 1
    effort: str = "normal"

    def fit(
        self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False, *, resume: bool = False
    ) -> Fitted:
        """Train the model that `revarb.fit` chooses.

        Parameters
        ----------
        train : Series or list of Series
            Training records.
        seed : int
            Seed of all fits.
        progress : bool
            Show a progress bar, or where the output is not a terminal, a line now and then.
        resume : bool
            Continue a choice on the same records that was killed or interrupted.

        Returns
        -------
        FittedRGP, FittedARX or Ensemble
        """
        return fit(train, seed, self.jobs, progress, members=self.members, effort=self.effort, resume=resume)


def _check_effort(effort: object) -> str:
    if not isinstance(effort, str) or effort not in EFFORTS:
        known = " or ".join(repr(each) for each in EFFORTS)
        raise InputError(f"effort must be {known}, received {describe(effort)}")
    return effort


def _select(structures: Sequence[Structure], effort: str) -> list[Structure]:
    # Linear parts have the quickest fits, and they or linear models are taken in 23 of 24 choices on the development
    # set without its drawn records of Artificial (results/field.json).
    return [each for each in structures if effort == "normal" or each.spec.linear]


def _count_workers(jobs: int | None) -> int:
    if jobs is None:
        return min(effective_n_jobs(-1), MAX_WORKERS)
    if isinstance(jobs, int) and jobs == -1:
        return effective_n_jobs(-1)
    return check_integer("jobs (or -1 for one per core)", jobs, least=1)


def _hold_out(parts: Sequence[Series]) -> HeldOut | None:
    # The stretches of the largest order, the same for all candidates; None where the records are too short.
    lags = limit_lags(parts, MORE_LAGS)
    inputs = parts[0].u.shape[1]
    prep = Preprocessor.from_records(parts, Order(lags, lags if inputs else 0, 1))
    return hold_out(parts, cut_stretches(parts, prep), prep.skip)


def _try_candidates(trials: Trials, effort: str) -> Ranking:
    # Linear models, then the first fold of every structure, all folds of those that are left, variants of the best.
    held_out = trials.held_out
    linear = try_linear(held_out)
    structures = _select(list_structures(held_out.records, find_delay(linear)), effort)
    if trials.together:
        _fit_recipes(trials, structures)
    can_start_last = trials.workers > 1 and trials.whole  # the fit to all records, while folds are fitted
    only = [(each, ALL) for each in structures if len(structures) == 1 and can_start_last]
    _try_structures(trials, structures, linear, structures, DROP, only)
    scored = [scored for each in structures for scored in trials.score(each)]
    best = _find_best(scored, structures)
    variants = list_variants(best, held_out.records)
    # Variants are rarely better: the fit of the best structure to all records begins where a process would be idle.
    ahead = [(best, ALL)] if variants and can_start_last else []
    _try_structures(trials, variants, linear, structures, DROP_VARIANT, ahead)
    scored += [scored for each in variants for scored in trials.score(each)]
    return rank([*linear, *scored], held_out, trials.failures, bool(trials.progress.pressed))


def _add_sentence(ranking: Ranking, text: str) -> Ranking:
    return replace(ranking, choice=replace(ranking.choice, sentence=f"{ranking.choice.sentence} {text}"))


def _fit_recipes(trials: Trials, structures: Sequence[Structure]) -> None:
    # The batch of a structure has room for its other recipe, whether it becomes a variant of the best or not.
    records = trials.held_out.records
    recipes = list_other_recipes(structures, records)
    likely = [each for each in list_variants(structures[-1], records) if each not in recipes]
    trials.run([(each, fold) for each in (*structures, *recipes) for fold in trials.members], likely)


def _try_structures(
    trials: Trials,
    tried: Sequence[Structure],
    linear: Sequence[Scored],
    before: Sequence[Structure],
    margin: float,
    ahead: Sequence[tuple[Structure, int]] = (),
) -> None:
    # The first fold of all, then the other folds of those that are not far behind the best candidate so far. Together
    # the folds take hardly more time than one, and the fit to all records is one of them.
    if trials.together:
        trials.run([(each, fold) for each in tried for fold in trials.members])
        return
    # Linear parts are never dropped: their other folds come along too, last, where a process would be idle.
    others = range(1, FOLDS)
    idle = [*ahead, *((each, fold) for each in tried if each.spec.linear for fold in others)]
    trials.run([*((each, 0) for each in tried), *idle])
    kept = _drop(trials, tried, linear, before, margin)
    trials.run([(each, fold) for each in kept for fold in others])


def _find_best(scored: Sequence[Scored], structures: Sequence[Structure]) -> Structure:
    complete = [each for each in scored if each.complete]
    best = min(complete, key=lambda each: float(np.mean(log_errors(each.errors))), default=None)
    return structures[0] if best is None or best.structure is None else best.structure


def _drop(
    trials: Trials, tried: Sequence[Structure], linear: Sequence[Scored], before: Sequence[Structure], margin: float
) -> list[Structure]:
    # Structures that are not far behind the best candidate on the stretches of the first fold, and the linear part: it
    # is the quickest, and what is nearly linear must not be lost to three stretches.
    scores = {each: _score_first(trials.score(each), trials.held_out) for each in {*tried, *before}}
    best = min([*scores.values(), _score_first(linear, trials.held_out)])
    kept = [each for each in tried if each.spec.linear or scores[each] <= best + margin]
    trials.progress.skip_folds([each for each in tried if each not in kept])
    return kept


def _score_first(scored: Sequence[Scored], held_out: HeldOut) -> float:
    first = [stretch.fold == 0 for stretch in held_out.stretches]
    scores = [float(np.mean(log_errors(each.errors[first]))) for each in scored]
    return min(scores, default=np.inf)


def _count_steps(held_out: HeldOut, effort: str) -> int:
    first = _select(list_structures(held_out.records, 1), effort)
    structures = [*first, *list_variants(first[-1], held_out.records)]
    trials, final = zip(*((count_steps(each.trial), count_steps(each.spec)) for each in structures), strict=True)
    return FOLDS * sum(trials) + max(final)


def _digest(records: Sequence[Series], seed: int) -> str:
    first = records[0]
    about = [seed, first.input_names, first.output_names, first.dt, collect_versions()]
    data = hashlib.sha256(json.dumps(about).encode())
    for values in (values for record in records for values in (record.u, record.y)):
        data.update(f"{values.shape}".encode() + values.tobytes())
    return data.hexdigest()
