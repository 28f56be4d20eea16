"""`revarb.fit`: everything is chosen on held-out blocks of the training records.

Candidates are fitted without the blocks of one fold at a time and simulate them (validation.py). The best few of them
(ranking.py) are fitted to everything (final_fit.py), and their mixture is calibrated on the same blocks and
on forecasts of the last third (mixture.py).
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from revarb.data.quality import warn_about_quality
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, as_records, check_enough_rows
from revarb.errors import InputError, check_integer, check_number, check_seed, describe
from revarb.fitting.held_out import FOLDS, HeldOut
from revarb.models.base import Fitted, ModelSpec
from revarb.models.configuration import Configuration
from revarb.models.recipe import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.machine import collect_versions
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_bar
from revarb.runtime.unfinished import UnfinishedParts
from revarb.runtime.workers import check_jobs, count_workers
from revarb.selection.candidates import DefaultCandidates, read_candidates
from revarb.selection.final_fit import fit_default, fit_interrupted, fit_members, list_final_folds
from revarb.selection.records import LONG_ROWS, cut_parts, hold_out_blocks, leave_out_short, set_aside
from revarb.selection.schedule import Progress, Scheduler
from revarb.selection.search import AnyCandidates, Budget, try_candidates
from revarb.selection.student_t import try_student
from revarb.selection.validation import Validation

EFFORTS = ("normal", "quick")
QUICK = 'With the effort "quick" no recurrent GP without a linear part was tried.'
MEMBERS = 5  # of the mixture; settled on the development set (docs/design/decisions)
MAX_WORKERS = 8  # processes, each of which compiles and holds its own programs


@with_numerics
def fit(
    train: Series | Sequence[Series],
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    *,
    candidates: Sequence[ModelSpec] | Mapping[str, ModelSpec] | None = None,
    members: int = MEMBERS,
    effort: str = "normal",
    time_limit: float | None = None,
    resume: bool = False,
) -> Fitted:
    """Train the mixture of the models that simulate held-out blocks of the training records best.

    Linear and recurrent GP models of several orders, structures and trainings are tried, or those that are passed. The
    best ones are fitted to all records, without those that are clearly worse than the first, and their mixture is
    calibrated on the same blocks and on forecasts of the last third. `model.choice` has everything that was tried. To
    configure the model yourself, use `revarb.RGP(...).fit`.

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
    candidates : list of configurations, or dict from names to configurations, optional
        What is tried, in place of the default candidates: `revarb.RGP`, each at all weights of the free-run term up to
        that of its recipe; `revarb.ARX`, each up to its order; any other object with `fit(train, seed=...)` whose
        models have `simulate`.
    members : int
        At most so many candidates are mixed: the best one of every structure, unless clearly worse than the best; 1
        for the best alone.
    effort : "normal" or "quick"
        "quick" tries linear models and recurrent GPs with a linear part only, in half of the time.
    time_limit : float, optional
        Seconds after which nothing new is started: candidates are tried in the order of their promise, as long as they
        would finish. At least the linear models are tried. With a limit the result depends on the machine.
    resume : bool
        Continue a choice on the same records that was killed or interrupted.

    Returns
    -------
    FittedRGP, FittedARX or Ensemble
        An `Ensemble`; a `FittedARX` where nothing nonlinear is better; a `FittedRGP` where no other candidate is close
        to it, or with `members=1`. With other kinds of candidates a model of that kind, if it is the best.

    Raises
    ------
    InputError
        If the records cannot be used, such as a constant column or too few samples, or the candidates cannot.
    ComputationError
        If no candidate could be fitted.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(200.0) ** 1.5)
    >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:200]
    >>> model = revarb.fit(revarb.Series(u, y), jobs=1)  # doctest: +SKIP
    >>> model.choice.taken  # doctest: +SKIP
    'linear, 1 + 2 lags'

    Candidates of your own:

    >>> model = revarb.fit(revarb.Series(u, y), jobs=1, candidates=[revarb.ARX(2, 3), revarb.Mean()])
    >>> [candidate.name for candidate in model.choice.candidates]
    ['linear, 1 + 2 lags', 'Mean']
    """
    deadline = None if time_limit is None else time.monotonic() + check_number("time_limit", time_limit, above=0.0)
    seed, records = check_seed(seed), as_records(train)
    Standardiser.from_records(records)  # refuses a constant column before anything is left out or cut
    workers = count_workers(jobs) if check_jobs(jobs) is not None else min(count_workers(-1), MAX_WORKERS)
    chosen = _check_candidates(candidates, effort, records)
    members = check_integer("members", members, least=1)
    if candidates is None:
        check_enough_rows(records)
        records = leave_out_short(records)
    parts = cut_parts(records)
    held_out = hold_out_blocks(parts, chosen.find_largest_order(parts))
    if held_out is None and candidates is None:
        return fit_default(records, seed, progress)
    if held_out is None:
        raise InputError(
            "the records are too short, or too little of them is measured, to compare these candidates on held-out "
            "blocks; use fewer lags, or fit one of them"
        )
    warn_about_quality(as_records(train))
    digest = _digest(records, seed)
    records, aside = set_aside(records, chosen.find_largest_order(parts))
    store = UnfinishedParts.open("choice", [f"{digest}.*"], resume)
    with (
        progress_bar("choosing", _count_fits(held_out, chosen, members, aside), progress) as update,
        capture_interrupts(1) as pressed,
    ):
        scheduler = Scheduler(
            records,
            held_out.records,
            (*held_out.blocks, *held_out.last_blocks),
            seed,
            workers,
            store,
            digest,
            Progress(update, pressed),
        )
        model = _choose(Validation(held_out, scheduler, aside), chosen, records, Budget(members, deadline))
    if getattr(model, "status", None) is not Status.INTERRUPTED:
        store.discard()
    return model


@dataclass(frozen=True)
class Chosen(Configuration):
    """`revarb.fit` as a configuration, for `revarb.compare` and other code that takes one.

    Parameters
    ----------
    jobs, members : int
        As in `revarb.fit`.
    effort : "normal" or "quick"
        As in `revarb.fit`.
    time_limit : float, optional
        As in `revarb.fit`.
    candidates : tuple of configurations, or dict from names to configurations, optional
        As in `revarb.fit`.

    Examples
    --------
    >>> import revarb
    >>> models = {"Mean": revarb.Mean(), "revarb (chosen)": revarb.Chosen(jobs=1)}
    """

    jobs: int | None = None
    members: int = MEMBERS
    effort: str = "normal"
    time_limit: float | None = None
    candidates: Any = None

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
        return fit(
            train, seed, self.jobs, progress, candidates=self.candidates, members=self.members, effort=self.effort,
            time_limit=self.time_limit, resume=resume,
        )  # fmt: skip


def _check_candidates(candidates: object, effort: object, records: Sequence[Series]) -> AnyCandidates:
    if not isinstance(effort, str) or effort not in EFFORTS:
        known = " or ".join(repr(each) for each in EFFORTS)
        raise InputError(f"effort must be {known}, received {describe(effort)}")
    if candidates is None:
        return DefaultCandidates(effort == "quick", sum(len(record) for record in records) > LONG_ROWS)
    if effort != "normal":
        raise InputError(f"effort={effort!r} selects among the default candidates; leave it out with candidates=…")
    return read_candidates(candidates)


def _choose(validation: Validation, candidates: AnyCandidates, records: Sequence[Series], budget: Budget) -> Fitted:
    ranking = try_candidates(validation, candidates, budget)
    if isinstance(candidates, DefaultCandidates):
        ranking = try_student(ranking, validation, candidates, budget)  # which tries nothing after Ctrl-C
        if candidates.linear_only:
            ranking = replace(ranking, remarks=(*ranking.remarks, QUICK))
    if validation.scheduler.progress.pressed:
        return fit_interrupted(ranking, validation.held_out, records, validation.scheduler.seed)
    return fit_members(ranking, validation, records)


def _count_fits(held_out: HeldOut, candidates: AnyCandidates, members: int, aside: HeldOut | None) -> int:
    # At most: members of one path share their last fits.
    paths = candidates.list_paths(held_out.records, 1)
    last = sorted((len(list_final_folds(path, aside)) for path in paths), reverse=True)
    return FOLDS * len(paths) + sum(last[:members])


def _digest(records: Sequence[Series], seed: int) -> str:
    first = records[0]
    about = [seed, first.input_names, first.output_names, first.dt, collect_versions()]
    data = hashlib.sha256(json.dumps(about).encode())
    for values in (values for record in records for values in (record.u, record.y)):
        data.update(f"{values.shape}".encode() + values.tobytes())
    return data.hexdigest()
