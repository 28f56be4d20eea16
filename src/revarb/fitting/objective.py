"""The bound, with and without the free-run term, and its gradient: compiled functions of the flat vector."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from revarb.fitting.free_run import FreeRuns, sum_squared_errors, weigh_runs
from revarb.fitting.lbfgs import Objective, Vector
from revarb.fitting.problem import Problem
from revarb.runtime.machine import replicate_results
from revarb.runtime.numerics import AnyArray
from revarb.variational.bound import Layout, Rows, bound_and_means, revarb_bound
from revarb.variational.parameters import Form, Parameters, flatten, get_form, unflatten


def penalised_bound(
    parameters: Parameters, rows: Rows, runs: FreeRuns | None, weight: AnyArray | float, layout: Layout
) -> AnyArray:
    """The bound, minus `weight` times the summed squared error of the free runs if there are any (Eq. 49)."""
    if runs is None:
        return revarb_bound(parameters, rows, layout)
    bound, states, means = bound_and_means(parameters, rows, layout)
    # Without weight nothing is simulated: it takes no time, and a run that diverges does no harm.
    penalty = jax.lax.cond(
        weight > 0.0, lambda: weight * sum_squared_errors(means, states, runs, layout.lags), lambda: jnp.zeros(())
    )
    return bound - penalty


class MemberBound(NamedTuple):
    """The objective of one member of a batch (batched_lbfgs.py), with its rows and runs as data."""

    form: Form
    layout: Layout

    def __call__(
        self, vector: AnyArray, own: tuple[Rows, FreeRuns | None], weight: AnyArray | float
    ) -> tuple[AnyArray, AnyArray]:
        """Compute the bound, with the free-run term where there are runs, and its gradient."""
        parameters = unflatten(vector, self.form)
        value, gradient = jax.value_and_grad(penalised_bound)(parameters, *own, weight, self.layout)
        return value, flatten(gradient)


def _bound_and_gradient(
    vector: AnyArray,
    rows: Rows,
    runs: FreeRuns | None = None,
    weight: AnyArray | float = 0.0,
    *,
    form: Form,
    layout: Layout,
) -> tuple[AnyArray, AnyArray]:
    return MemberBound(form, layout)(vector, (rows, runs), weight)


bound_and_gradient = jax.jit(replicate_results(_bound_and_gradient), static_argnames=("form", "layout"))


def make_objective(problem: Problem, runs: FreeRuns | None = None, weight: float = 0.0) -> Objective:
    """Make the objective of a fit, with the free-run term if there are runs; all weights share one compiled program."""
    form = get_form(problem.start)

    def objective(vector: Vector) -> tuple[float, Vector]:
        value, gradient = bound_and_gradient(vector, problem.rows, runs, weight, form=form, layout=problem.layout)
        return float(value), np.asarray(gradient)

    return objective


def weigh_at(problem: Problem, vector: Vector) -> FreeRuns:
    """The free runs of a problem; with Student-t noise, weighted as the bound weighs their samples at this point."""
    assert problem.runs is not None
    noise = unflatten(vector, get_form(problem.start)).noise
    return problem.runs if noise is None else weigh_runs(problem.runs, np.asarray(noise.weights))
