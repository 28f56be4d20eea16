"""One evaluation of the bound with its gradient, as the optimiser asks for it, and the floor under its time."""

import time
from collections.abc import Callable, Sequence
from statistics import median

import jax
import numpy as np

from revarb import RGP, Series
from revarb.bound import layer_problems
from revarb.collapsed import Gaussians, Layer
from revarb.fit import Problem, objective_of, prepare
from revarb.numerics import with_numerics
from revarb.parameters import flatten

SPEC = RGP(lags=10, input_lags=10, hidden=2, inducing=100)
SEED = 0
WARM_UPS = 2
REPETITIONS = 11


@with_numerics
def problem(samples: int) -> Problem:
    """The start of a fit of `SPEC` to a random record: the time does not depend on what was measured."""
    rng = np.random.default_rng(SEED)
    return prepare(SPEC, Series(u=rng.standard_normal(samples), y=rng.standard_normal(samples)), SEED)


@with_numerics
def regressions(given: Problem) -> list[tuple[Layer, Gaussians]]:
    """Every layer with its regressors, as the bound sees them."""
    problems = layer_problems(given.start, given.rows, given.layout)
    return [(layer, jax.tree.map(np.asarray, x_hat)) for layer, x_hat, _ in problems]


def fit_step(given: Problem) -> Callable[[], object]:
    """One step of `fit`, to be called inside `with_numerics`: flat vector in, bound and flat gradient out."""
    vector, objective = np.array(flatten(given.start)), objective_of(given)
    return lambda: objective(vector)  # waits for the device


def floor(rows: int, regressor_sizes: Sequence[int], inducing: int) -> Callable[[], object]:
    """What Ψ2 and its gradient cannot avoid, in NumPy: per layer a product, its exponential, two products back."""
    rng = np.random.default_rng(SEED)
    pairs = inducing * (inducing + 1) // 2
    widths = [2 * size for size in regressor_sizes]
    factors = [(rng.standard_normal((rows, k)) / k, rng.standard_normal((pairs, k))) for k in widths]
    block = 256  # rows at a time: the exponentials stay in the cache, or this would be no floor for many rows
    exponentials = np.empty((block, pairs))

    def evaluate() -> None:
        for a, b in factors:
            for start in range(0, rows, block):
                part = a[start : start + block]
                out = exponentials[: len(part)]
                np.exp(np.matmul(part, b.T, out=out), out=out)
                _ = out @ b, out.T @ part

    return evaluate


def median_seconds(evaluate: Callable[[], object]) -> float:
    """Median time of a call, once it is warm."""
    warm_up(evaluate)
    return median(_seconds(evaluate) for _ in range(REPETITIONS))


def warm_up(evaluate: Callable[[], object]) -> None:
    """Compile, and fill caches."""
    for _ in range(WARM_UPS):
        evaluate()


def _seconds(evaluate: Callable[[], object]) -> float:
    begin = time.perf_counter()
    evaluate()
    return time.perf_counter() - begin
