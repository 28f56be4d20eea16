"""The start of a fit to a random record: the time of an evaluation does not depend on the data."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from revarb.data.series import Series
from revarb.fitting.objective import make_objective
from revarb.fitting.problem import Problem, initialise, make_plan, prepare
from revarb.gp.layer import Gaussians
from revarb.models.recipe import Recipe
from revarb.models.rgp import RGP
from revarb.runtime.numerics import with_numerics

SPEC = RGP(lags=10, input_lags=10, hidden=2, inducing=100)
QUICK_START = replace(SPEC, recipe=Recipe(kmeans_starts=1, kmeans_iterations=1, max_rows=None))  # for long records
SEED = 0


@with_numerics
def make_problem(samples: int, spec: RGP = SPEC) -> Problem:
    """Prepare a fit to a record of this many samples."""
    rng = np.random.default_rng(SEED)
    record = Series(u=rng.standard_normal(samples), y=rng.standard_normal(samples))
    return initialise(prepare(spec, [record]), SEED)


def count_psi_columns(x_hat: Gaussians) -> int:
    """Columns of the product inside Ψ2: the regressors, squares of the uncertain ones, one for all known ones."""
    assert x_hat.variance is not None
    size, uncertain = x_hat.mean.shape[1], x_hat.variance.shape[1]
    return size + uncertain + (uncertain < size)


def make_fit_step(given: Problem) -> Callable[[], object]:
    """Make one step of `fit`, to be called inside `with_numerics`: from flat vector to bound and gradient."""
    vector, objective = make_plan(given).start, make_objective(given)
    return lambda: objective(vector)  # waits for the device
