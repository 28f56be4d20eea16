"""The last step of a choice: the candidate that was taken, fitted to all records and calibrated."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from revarb.data.series import Series
from revarb.errors import ComputationError, RevarbError, warn_user
from revarb.fitting.calibrate import find_calibration
from revarb.fitting.calibration_rule import POOLED
from revarb.fitting.fit import fit_rgp
from revarb.fitting.held_out import HeldOut
from revarb.fitting.problem import FEW_INDUCING
from revarb.fitting.weight_path import ALL, fit_weight_path
from revarb.models.base import Fitted
from revarb.models.calibration import Calibration
from revarb.models.choice import Candidate, Choice
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.recipe import RECIPES
from revarb.models.rgp import RGP
from revarb.models.status import Status
from revarb.selection.candidates import CandidateKey, describe_order
from revarb.selection.linear import fit_linear_candidate
from revarb.selection.ranking import Ranking
from revarb.selection.records import FEW_LAGS, limit_lags
from revarb.selection.schedule import fit_once
from revarb.selection.validation import CandidateResult, Validation

LEAST_NOISE = 1e-4  # variance of the output noise of a calibrated model, z-scored


def fit_taken(ranking: Ranking, validation: Validation, records: Sequence[Series], members: int) -> Fitted:
    """Fit the candidate that was taken, or the mixture of the best few, to all records."""
    seed = validation.scheduler.seed
    if ranking.winner.path is None:
        model = fit_linear_candidate(ranking.winner, validation.held_out, records, seed)
        return replace(model, choice=ranking.choice)
    fitted: dict[CandidateKey, Any] = {}
    for each in ranking.list_best(len(ranking.results)):
        try:
            model = _fit_nonlinear(each, validation, records)
        except RevarbError as error:
            warn_user(f"{each.name} could not be fitted to all records, and the next best candidate is taken: {error}")
            continue
        if fitted and not isinstance(model, FittedRGP):
            continue  # a mixture consists of recurrent GPs
        fitted[each.key] = model
        if _is_interrupted(model) or len(fitted) == members or not isinstance(model, FittedRGP):
            break
    return _finish(ranking, fitted, members)


def _finish(ranking: Ranking, fitted: Mapping[CandidateKey, Any], members: int) -> Fitted:
    if not fitted:
        raise ComputationError("no candidate could be fitted to all records; use RGP(...).fit with fewer lags")
    models = list(fitted.values())
    interrupted = _is_interrupted(models[-1])
    finished = models[:-1] if interrupted and len(models) > 1 else models  # the last one may have left out a fold
    alone = members == 1 or not isinstance(models[0], FittedRGP)
    model = models[0] if alone else Ensemble.from_candidates(finished)
    [first, *_], choice = fitted, ranking.choice
    if first != ranking.taken:  # the one that was to be taken could not be fitted
        sentence = f"{first.name}: the next best candidate, because {choice.taken} could not be fitted to all records."
        notes = {choice.taken: "failed", first.name: "taken"}
        candidates = tuple(replace(each, note=notes.get(each.name, each.note)) for each in choice.candidates)
        choice = replace(choice, candidates=candidates, taken=first.name, sentence=sentence)
    return _attach(choice, model, interrupted)


def _attach(choice: Choice, model: Any, interrupted: bool) -> Any:
    # A user's own kind of model may have no place for the choice.
    if isinstance(model, Fitted):
        return replace(model, status=Status.INTERRUPTED if interrupted else model.status, choice=choice)
    with suppress(AttributeError):
        model.choice = choice
    return model


def _is_interrupted(model: Any) -> bool:
    return getattr(model, "status", None) is Status.INTERRUPTED


def fit_interrupted(ranking: Ranking, held_out: HeldOut, records: Sequence[Series], seed: int) -> Fitted:
    """The best candidate so far after Ctrl-C: a linear model, or a fit that has left out one fold; not calibrated."""
    choice, winner = ranking.choice, ranking.winner
    if winner.path is None:
        return _attach(choice, fit_linear_candidate(winner, held_out, records, seed), interrupted=True)
    sentence = f"{choice.sentence} It was fitted to a part of the records, and its bands are not calibrated."
    [model, *_] = winner.folds.values()
    return _attach(replace(choice, sentence=sentence), model, interrupted=True)


def fit_default(records: Sequence[Series], seed: int, progress: bool) -> FittedRGP:
    """The model for records that are too short to hold anything out: nothing is chosen, nothing calibrated."""
    warn_user(
        "the records are too short, or too little of them is measured, to hold anything out: a default model is "
        "fitted, and its bands are not calibrated"
    )
    lags = limit_lags(records, FEW_LAGS)
    rows = sum(len(record) - lags for record in records)
    recipe = replace(RECIPES["linear"], free_run_weight=2.0)
    spec = RGP(
        lags, lags, hidden=1, inducing=min(FEW_INDUCING, rows), latent_dim=records[0].y.shape[1], linear=True,
        recipe=recipe, calibrate=False,
    )  # fmt: skip
    model = fit_rgp(spec, records, seed=seed, progress=progress, resume=False)
    name = f"RGP, linear part, {describe_order(spec)}, w = 2"
    sentence = "The records are too short, or too little is measured, to hold anything out: this is the default."
    return replace(model, choice=Choice((Candidate(name, None, None, 0, 0.0, "taken"),), name, sentence, "nothing"))


def _fit_nonlinear(result: CandidateResult, validation: Validation, records: Sequence[Series]) -> Any:
    path, scheduler = result.path, validation.scheduler
    assert path is not None
    report = scheduler.progress.make_final_report(result.name)
    [left, *_] = result.folds.values()  # what is left after Ctrl-C before the first weight: a fit without one fold
    if not path.has_weights:
        for model in fit_once(path.spec, records, scheduler.seed, report).models:
            return _calibrate(model, result, validation.held_out)
        return replace(left, status=Status.INTERRUPTED) if isinstance(left, Fitted) else left
    model, known = left, validation.get_final(path)
    try:
        traced = fit_weight_path(path.spec, records, (), ALL, scheduler.seed, report)
        for model in traced if known is None else known.models:
            if model.spec.recipe.free_run_weight == result.key.weight:
                break
        else:
            warn_user(f"{result.name}: its run over all records diverged before this weight; the one before is kept")
    except KeyboardInterrupt:
        return replace(model, status=Status.INTERRUPTED)
    return _calibrate(model, result, validation.held_out)


def _calibrate(model: Any, result: CandidateResult, held_out: HeldOut) -> Any:
    if not isinstance(model, FittedRGP):
        return model
    try:
        return replace(model, calibration=calibrate_candidate(result, held_out))
    except RevarbError as error:
        warn_user(f"the bands are not calibrated: {error}")
        return model


def calibrate_candidate(result: CandidateResult, held_out: HeldOut) -> Calibration:
    """Noises and widths of a recurrent GP, from its fits without each fold."""
    return find_calibration(result.folds, held_out.records, held_out.blocks, result.errors, LEAST_NOISE, POOLED)
