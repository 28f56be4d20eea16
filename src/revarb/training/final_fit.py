"""The last step of a choice: the candidate that was taken, fitted to all records and calibrated."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from revarb.config.recipe import RECIPES
from revarb.config.rgp import RGP
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.errors import ComputationError, RevarbError, warn_user
from revarb.models.base import Fitted
from revarb.models.choice import Candidate, Choice
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.status import Status
from revarb.training.candidates import FEW_LAGS, describe_order, limit_lags
from revarb.training.choice_calibration import calibrate_linear, calibrate_nonlinear
from revarb.training.fit import fit_rgp
from revarb.training.fold_paths import ALL, trace_path
from revarb.training.linear_fit import solve_least_squares
from revarb.training.narx_rows import build_narx_rows, mark_complete
from revarb.training.problem import FEW_INDUCING
from revarb.training.ranking import Ranking
from revarb.training.trials import HeldOut, Scored, Trials


def fit_taken(ranking: Ranking, trials: Trials, records: Sequence[Series], members: int) -> Fitted:
    """Fit the candidate that was taken, or the mixture of the best few, to all records."""
    held_out, seed = trials.held_out, trials.seed
    if ranking.winner.structure is None:
        return replace(_fit_linear(ranking.winner, held_out, records, seed), choice=ranking.choice)
    fitted: dict[str, FittedRGP] = {}
    for each in ranking.list_best(len(ranking.scored)):
        try:
            fitted[each.name] = _fit_nonlinear(each, trials, records)
        except RevarbError as error:
            warn_user(f"{each.name} could not be fitted to all records, and the next best candidate is taken: {error}")
            continue
        if fitted[each.name].status is Status.INTERRUPTED or len(fitted) == members:
            break
    return _finish(ranking.choice, fitted, members)


def _finish(choice: Choice, fitted: Mapping[str, FittedRGP], members: int) -> Fitted:
    if not fitted:
        raise ComputationError("no candidate could be fitted to all records; use RGP(...).fit with fewer lags")
    models = list(fitted.values())
    interrupted = models[-1].status is Status.INTERRUPTED
    finished = models[:-1] if interrupted and len(models) > 1 else models  # the last one may have left out a fold
    model = models[0] if members == 1 else Ensemble.from_candidates(finished)
    first = next(iter(fitted))
    if first != choice.taken:  # the one that was to be taken could not be fitted
        sentence = f"{first}: the next best candidate, because {choice.taken} could not be fitted to all records."
        notes = {choice.taken: "failed", first: "taken"}
        candidates = tuple(replace(each, note=notes.get(each.name, each.note)) for each in choice.candidates)
        choice = replace(choice, candidates=candidates, taken=first, sentence=sentence)
    return replace(model, status=Status.INTERRUPTED if interrupted else model.status, choice=choice)


def fit_interrupted(ranking: Ranking, held_out: HeldOut, records: Sequence[Series], seed: int) -> Fitted:
    """The best candidate so far after Ctrl-C: a linear model, or a fit that has left out one fold; not calibrated."""
    sentence, winner = ranking.choice.sentence, ranking.winner
    if winner.structure is None:
        model: Fitted = _fit_linear(winner, held_out, records, seed)
    else:
        model = next(iter(winner.folds.values()))
        sentence += " It was fitted to a part of the records, and its bands are not calibrated."
    return replace(model, status=Status.INTERRUPTED, choice=replace(ranking.choice, sentence=sentence))


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


def _fit_linear(winner: Scored, held_out: HeldOut, records: Sequence[Series], seed: int) -> FittedARX:
    assert winner.order is not None
    prep = Preprocessor.from_records(records, winner.order)
    rows = build_narx_rows(prep, records)
    model = solve_least_squares(rows, np.ones(rows.x_hat.shape[1], dtype=bool), mark_complete(rows))
    std, horizon_std = calibrate_linear(winner, held_out, prep.scaling)
    return replace(FittedARX.from_records(records, prep, model, std, seed), horizon_std=horizon_std)


def _fit_nonlinear(scored: Scored, trials: Trials, records: Sequence[Series]) -> FittedRGP:
    structure = scored.structure
    assert structure is not None
    report = trials.progress.make_final_report(scored.name)
    known = trials.finished.get(structure)
    [model, *_] = scored.folds.values()  # what is left after Ctrl-C before the first weight: a fit without one fold
    assert isinstance(model, FittedRGP)
    try:
        path = trace_path(structure.spec, records, (), ALL, trials.seed, report)
        for model in path if known is None else known.models:
            if model.spec.recipe.free_run_weight == scored.weight:
                break
        else:
            warn_user(f"{scored.name}: its run over all records diverged before this weight; the one before is kept")
    except KeyboardInterrupt:
        return replace(model, status=Status.INTERRUPTED)
    try:
        return replace(model, calibration=calibrate_nonlinear(scored, trials.held_out))
    except RevarbError as error:
        warn_user(f"the bands are not calibrated: {error}")
        return model
