"""The last step of a choice: the members, fitted to all records and calibrated."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import ComputationError, RevarbError, warn_user
from revarb.fitting.calibrate import Calibrated, HeldOutBands, add_last_runs, find_calibration
from revarb.fitting.calibration_rule import POOLED
from revarb.fitting.fit import fit_rgp
from revarb.fitting.held_out import FOLDS, LAST, HeldOut, compute_held_out_error, measure_block_errors
from revarb.fitting.problem import FEW_INDUCING
from revarb.fitting.weight_path import ALL
from revarb.models.base import Fitted
from revarb.models.choice import Candidate, Choice, format_error
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.recipe import RECIPES, Status
from revarb.models.rgp import RGP
from revarb.runtime.numerics import map_in_threads
from revarb.selection.candidates import LINEAR_PART, CandidateKey, CandidatePath
from revarb.selection.linear import collect_linear_bands, fit_linear_candidate, fit_linear_without_last
from revarb.selection.mixture import scale_bands
from revarb.selection.ranking import Ranking, list_close, mix_candidates
from revarb.selection.records import FEW_LAGS, limit_lags
from revarb.selection.schedule import FitJob
from revarb.selection.validation import CandidateResult, Validation, is_stable, stays_bounded

LEAST_NOISE = 1e-4  # variance of the output noise of a calibrated model, z-scored


def fit_members(ranking: Ranking, validation: Validation, records: Sequence[Series]) -> Fitted:
    """Fit the members to all records and calibrate them: the mixture, or the only one.

    A member that cannot be fitted is left out; where none can, the next best candidate is taken. A linear model is
    still alone if none of the better ones could be fitted.
    """
    if isinstance(ranking.best.key.configuration, Order):
        model = fit_linear_candidate(ranking.best, validation.held_out, records, validation.scheduler.seed)
        return replace(model, choice=ranking.describe())
    fitted = _fit_best(ranking, validation, records)
    interrupted = bool(validation.scheduler.progress.pressed)
    if interrupted and all(key.path is None for key in fitted):  # only a linear member, which takes no time
        return fit_interrupted(replace(ranking, interrupted=True, mixture=None), validation.held_out, records, 0)
    if not fitted:
        raise ComputationError("no candidate could be fitted to all records; use RGP(...).fit with fewer lags")
    fitted, remarks = _keep_close(fitted, ranking, validation)
    members = tuple(each for each in ranking.compared if each.key in fitted)
    members = members if members[0].path is not None else members[:1]
    mixed = len(members) > 1
    if remarks:
        mixture = mix_candidates(members, validation.held_out) if mixed else None
        ranking = replace(ranking, members=members, mixture=mixture, remarks=(*ranking.remarks, *remarks))
    calibrated = map_in_threads(
        lambda each: _calibrate(fitted[each.key], each, validation), members, validation.scheduler.workers
    )
    [(model, _), *_] = calibrated
    if members[0].path is not None:  # a linear model alone has its own rule
        models = scale_bands(*zip(*calibrated, strict=True))
        model = Ensemble.from_candidates(models) if mixed else models[0]
    return _attach(ranking.describe(), model, interrupted)


def _keep_close(
    fitted: Mapping[CandidateKey, Any], ranking: Ranking, validation: Validation
) -> tuple[dict[CandidateKey, Any], list[str]]:
    # The members, and sentences on those that are left out. On blocks that were set aside the fits to all records can
    # be compared, and with more rows than a choice has they differ more.
    names = {each.key: each.name for each in ranking.compared}
    lost = [each.name for each in ranking.members if each.key not in fitted]
    remarks = [f"Not fitted to all records: {'; '.join(lost)}."] if lost else []
    if validation.aside is None:
        return dict(fitted), remarks
    results = sorted((_judge_aside(key, model, validation.aside) for key, model in fitted.items()), key=_get_error)
    if not np.isfinite(_get_error(results[0])):
        return dict(fitted), remarks
    close = list_close([each for each in results if np.isfinite(_get_error(each))])
    far = [f"{names[each.key]} ({format_error(_get_error(each))})" for each in results if each not in close]
    worse = f" Left out for theirs: {'; '.join(far)}." if far else ""
    known = f"{len(validation.aside.blocks)} blocks that no fit has seen"
    error = format_error(_get_error(close[0]))
    remarks.append(f"On {known} the best of the fits to all records has an error of {error}.{worse}")
    return {each.key: fitted[each.key] for each in close}, remarks


def _judge_aside(key: CandidateKey, model: Any, aside: HeldOut) -> CandidateResult:
    folds = dict.fromkeys(range(FOLDS), model)
    return CandidateResult(key, folds, measure_block_errors(folds, aside), 0.0)


def _get_error(result: CandidateResult) -> float:
    return compute_held_out_error(result.errors)


def _fit_best(ranking: Ranking, validation: Validation, records: Sequence[Series]) -> dict[CandidateKey, Any]:
    # The fits of all members run side by side; without any, the others are tried in the order of their errors.
    paths = dict.fromkeys(each.path for each in ranking.members if each.path is not None)
    jobs = [FitJob(path, fold) for path in paths for fold in list_final_folds(path, validation.aside)]
    validation.fit(sorted(jobs, key=lambda job: job.fold))  # after Ctrl-C a model is worth more than its band
    fitted: dict[CandidateKey, Any] = {}
    for each in (*ranking.members, *(other for other in ranking.compared if other not in ranking.members)):
        if fitted and each not in ranking.members:
            break
        model = _fit_candidate(each, validation, records)
        if model is not None and _has_become_unstable(model, each, validation.held_out):
            model = _find_stable(each, validation)
            instead = "left out" if model is None else "replaced by that of a smaller weight"
            warn_user(f"{each.name}: fitted to all records it is not stable, and is {instead}")
        if model is not None and all(model is not other for other in fitted.values()):
            fitted[each.key] = model
    return fitted


def list_final_folds(path: CandidatePath, aside: HeldOut | None) -> list[int]:
    """What a member is fitted to: all records, and for its bands these without their last third.

    Where blocks were set `aside`, these are enough.
    """
    return [ALL, LAST] if isinstance(path.spec, RGP) and aside is None else [ALL]


def _has_become_unstable(model: Any, result: CandidateResult, held_out: HeldOut) -> bool:
    # Where no candidate is stable, all are compared.
    return not stays_bounded(model, held_out.records) and is_stable(result, held_out.records)


def _find_stable(result: CandidateResult, validation: Validation) -> Any:
    # Fitted to all records, with the largest of the smaller weights that is stable; None without any.
    smaller = () if result.path is None else [each for each in result.path.weights if each < result.key.weight]
    keys = [replace(result.key, weight=weight) for weight in reversed(smaller)]
    models = [model for key in keys if (model := validation.get_model(key, ALL)) is not None]
    return next((model for model in models if stays_bounded(model, validation.held_out.records)), None)


def _fit_candidate(result: CandidateResult, validation: Validation, records: Sequence[Series]) -> Any:
    # None after Ctrl-C, and where it cannot be fitted.
    if result.path is None:
        return fit_linear_candidate(result, validation.held_out, records, validation.scheduler.seed)
    if not validation.scheduler.progress.pressed:
        folds = list_final_folds(result.path, validation.aside)
        validation.fit([FitJob(result.path, fold) for fold in folds])
    model = validation.get_model(result.key, ALL)
    if model is None and (known := validation.paths.get(FitJob(result.path, ALL))) is not None:
        warn_user(f"{result.name}: its run over all records diverged before this weight; the one before is kept")
        return known.models[-1]
    return model


def _attach(choice: Choice, model: Any, interrupted: bool) -> Any:
    # A user's own kind of model may have no place for the choice.
    if isinstance(model, Fitted):
        return replace(model, status=Status.INTERRUPTED if interrupted else model.status, choice=choice)
    with suppress(AttributeError):
        model.choice = choice
    return model


def fit_interrupted(ranking: Ranking, held_out: HeldOut, records: Sequence[Series], seed: int) -> Fitted:
    """The best candidate so far after Ctrl-C: a linear model, or a fit that has left out one fold; not calibrated."""
    best = ranking.best
    if isinstance(best.key.configuration, Order):
        return _attach(ranking.describe(), fit_linear_candidate(best, held_out, records, seed), interrupted=True)
    remark = "It was fitted to a part of the records, and its bands are not calibrated."
    [model, *_] = best.folds.values()
    return _attach(replace(ranking, remarks=(*ranking.remarks, remark)).describe(), model, interrupted=True)


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
    name = CandidatePath(spec, LINEAR_PART).at(recipe.free_run_weight).name
    sentence = "The records are too short, or too little is measured, to hold anything out: this is the default."
    return replace(model, choice=Choice((Candidate(name, None, None, 0, 0.0, "taken"),), name, sentence, "nothing"))


def _calibrate(model: Any, result: CandidateResult, validation: Validation) -> tuple[Any, HeldOutBands | None]:
    # Without bands where it is not calibrated.
    held_out, last = validation.held_out, _find_last(model, result, validation)
    if validation.aside is not None:
        held_out, result = validation.aside, replace(result, folds=dict.fromkeys(range(FOLDS), model))
    if isinstance(model, FittedARX):
        folds = result.folds if last is None else {**result.folds, LAST: last}
        return model, collect_linear_bands(model, folds, held_out)
    if not isinstance(model, FittedRGP):
        return model, None
    try:
        known = calibrate_candidate(result, held_out)
        if last is not None:
            known = add_last_runs(known, last, held_out, model.scaling)
    except RevarbError as error:
        warn_user(f"the bands are not calibrated: {error}")
        return model, None
    return replace(model, calibration=known.calibration), known.bands


def _find_last(model: Any, result: CandidateResult, validation: Validation) -> Any:
    # The fit without the last third of every record; None where it failed, or is unstable as no member may be. Its own
    # units are those of the first two thirds.
    held_out = validation.held_out
    if validation.aside is not None:
        return None
    if isinstance(model, FittedARX):
        last = fit_linear_without_last(model.order, held_out)
    else:
        last = validation.get_model(result.key, LAST)
    return last if last is not None and stays_bounded(last, held_out.records, held_out.scaling) else None


def calibrate_candidate(result: CandidateResult, held_out: HeldOut) -> Calibrated:
    """Noises and widths of a recurrent GP, from its fits without each fold."""
    errors = measure_block_errors(result.folds, held_out)  # of cold runs, also where predictions have decided
    return find_calibration(result.folds, held_out.records, held_out.blocks, errors, LEAST_NOISE, POOLED)
