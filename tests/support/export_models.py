"""Small trained models of every kind that can be exported."""

from dataclasses import replace
from functools import cache

import numpy as np

import revarb

RECIPE = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta", "w", "variance"), 5),))

SPECS = {
    "one layer": revarb.RGP(2, 3, hidden=1, inducing=8, recipe=RECIPE),
    "two layers": revarb.RGP(3, 2, hidden=2, inducing=8, recipe=RECIPE),
    "linear part, dead time": revarb.RGP(2, 2, input_delay=3, hidden=1, inducing=8, linear=True, recipe=RECIPE),
    "feedthrough": revarb.RGP(2, 2, input_delay=0, hidden=1, inducing=8, recipe=RECIPE),
    "two states": revarb.RGP(2, 2, hidden=2, inducing=8, latent_dim=2, recipe=RECIPE),
    "ARX": revarb.ARX(lags=3, input_lags=2),
    "GP-NARX": revarb.GPNARX(lags=2, input_lags=2, iterations=5),
    "MLP-NARX": revarb.MLPNARX(lags=2, input_lags=2, units=(4,), iterations=5),
}


def make_record(inputs: int = 1, outputs: int = 1, rows: int = 70) -> revarb.Series:
    """A stable nonlinear system in units far from z-scores."""
    u = np.random.default_rng(0).normal(size=(rows, inputs))
    y = [np.convolve(np.tanh(u).sum(1), [0.0, 0.5, 0.3 + 0.1 * k])[:rows] for k in range(outputs)]
    return revarb.Series(3.0 + 2.0 * u, 100.0 * np.stack(y, 1) - 5.0)


@cache
def fit_small(name: str, inputs: int = 1, outputs: int = 1):
    """The model of this name, trained once per process on `make_record(inputs, outputs)`."""
    return SPECS[name].fit(make_record(inputs, outputs))


@cache
def fit_mixed():
    """An ensemble of two models that look back differently far."""
    members = [fit_small(name) for name in ("one layer", "linear part, dead time")]
    return revarb.Ensemble.from_candidates(members)


@cache
def fit_mixture(inputs: int = 2, outputs: int = 2):
    """A mixture as `revarb.fit` makes it: recurrent GPs, and a linear model with a band of its own for two steps."""
    linear = replace(fit_small("ARX", inputs, outputs), horizon_std=0.1 + 0.1 * np.arange(2.0 * outputs).reshape(2, -1))
    recurrent = [fit_small(name, inputs, outputs) for name in ("two layers", "linear part, dead time")]
    return revarb.Ensemble.from_candidates([recurrent[0], linear, recurrent[1]])


def simulate_mean(model, u: np.ndarray) -> np.ndarray:
    """The mean-only run from a cold start, by the model itself."""
    return model.simulate(u, "mean" if "mean" in model.methods else "residuals").mean
