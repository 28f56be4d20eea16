"""A small system and a quick model of it, for tests that need a trained one."""

from dataclasses import replace

import numpy as np

from revarb.analysis.scores import scores
from revarb.data.series import Series
from revarb.fitting.problem import initialise, prepare
from revarb.models.recipe import Recipe, Stage
from revarb.models.rgp import RGP

QUICK = Recipe(stages=(Stage(("mu", "lam", "zeta", "w"), 15),))


def record(seed=0, samples=60, inputs=1, outputs=1):
    """A stable nonlinear system with a little noise."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, size=(samples, inputs))
    x = np.zeros(samples)
    for k in range(1, samples):
        x[k] = 0.7 * x[k - 1] + 0.6 * np.tanh(2.0 * u[k - 1].sum())
    y = np.stack([np.sin(x + shift) for shift in range(outputs)], axis=1)
    return Series(u, y + 0.02 * rng.normal(size=y.shape))


def with_gaps(record, *gaps):
    """The record with some of its outputs (indices of `y`) not measured."""
    y = record.y.copy()
    for gap in gaps:
        y[gap] = np.nan
    return replace(record, y=y)


def rmse(spec):
    """Error of a free simulation of 200 new samples, after a fit to 200 others."""
    train, test = record(0, samples=200), record(1, samples=200)
    return scores(spec.fit(train, seed=0).simulate(test.u), test.y, skip=5).rmse


def problem(spec, *records, seed=0):
    """A fit of these records before its first step."""
    return initialise(prepare(spec, records), seed)


def spec(**changes):
    """A quick configuration."""
    values = {"lags": 2, "input_lags": 2, "hidden": 2, "inducing": 12, "recipe": QUICK, "calibrate": False} | changes
    return RGP(**values)
