"""Rows of a study, made up."""


def score_row(dataset, model, rmse, method="mean", seed=0, reason=None, **others):
    """The row of one run, with ordinary scores beside its error."""
    row = {"dataset": dataset, "model": model, "method": method, "seed": seed, "reason": reason, "rmse": rmse}
    scores = {
        "nrmse": rmse,
        "nlpd": 0.0,
        "coverage50": 0.5,
        "coverage95": 0.95,
        "fit_seconds": 2.0,
        "simulate_seconds": 1.0,
    }
    return {**row, **scores, **others}
