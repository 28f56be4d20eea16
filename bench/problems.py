"""The start of a fit to a random record: the time of an evaluation does not depend on what was measured."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from revarb.config.recipe import Recipe
from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.gp.layer import Gaussians
from revarb.runtime.numerics import with_numerics
from revarb.training.objective import make_objective
from revarb.training.problem import Problem, make_plan, prepare

SPEC = RGP(lags=10, input_lags=10, hidden=2, inducing=100)
HASTY = replace(SPEC, recipe=Recipe(kmeans_starts=1, kmeans_iterations=1))  # for long records, whose start is not timed
SEED = 0


@with_numerics
def problem(samples: int, spec: RGP = SPEC) -> Problem:
    """The start of a fit to so many samples."""
    rng = np.random.default_rng(SEED)
    return prepare(spec, [Series(u=rng.standard_normal(samples), y=rng.standard_normal(samples))], SEED)


def psi_width(x_hat: Gaussians) -> int:
    """Columns of the product inside Ψ2: the regressors, squares of the uncertain ones, one for those of the known."""
    assert x_hat.variance is not None
    size, uncertain = x_hat.mean.shape[1], x_hat.variance.shape[1]
    return size + uncertain + (uncertain < size)


def fit_step(given: Problem) -> Callable[[], object]:
    """One step of `fit`, to be called inside `with_numerics`: flat vector in, bound and flat gradient out."""
    vector, objective = make_plan(given).start, make_objective(given)
    return lambda: objective(vector)  # waits for the device
