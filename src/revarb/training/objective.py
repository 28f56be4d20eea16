"""The bound, with and without the free-run term, and its gradient: compiled functions of the flat vector."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from revarb.optim.lbfgs import Objective, Vector
from revarb.runtime.mesh import replicate_results
from revarb.runtime.numerics import AnyArray
from revarb.training.free_run import FreeRuns, sum_squared_errors
from revarb.training.problem import Problem
from revarb.variational.bound import Layout, Rows, bound_and_means, revarb_bound
from revarb.variational.parameters import Form, Parameters, flatten, get_form, unflatten


def _bound_and_gradient(vector: AnyArray, rows: Rows, form: Form, layout: Layout) -> tuple[AnyArray, AnyArray]:
    bound, gradient = jax.value_and_grad(revarb_bound)(unflatten(vector, form), rows, layout)
    return bound, flatten(gradient)


bound_and_gradient = jax.jit(replicate_results(_bound_and_gradient), static_argnames=("form", "layout"))


def make_objective(problem: Problem) -> Objective:
    """Make the objective of a fit: from the flat vector to the bound and its gradient."""
    form = get_form(problem.start)

    def objective(vector: Vector) -> tuple[float, Vector]:
        bound, gradient = bound_and_gradient(vector, problem.rows, form=form, layout=problem.layout)
        return float(bound), np.asarray(gradient)

    return objective


def penalised_bound(
    parameters: Parameters, rows: Rows, runs: FreeRuns, weight: AnyArray | float, layout: Layout
) -> AnyArray:
    """The bound minus `weight` times the summed squared error of the free runs (Eq. 49)."""
    bound, states, means = bound_and_means(parameters, rows, layout)
    # Without weight nothing is simulated: it takes no time, and a run that diverges does no harm.
    penalty = jax.lax.cond(
        weight > 0.0, lambda: weight * sum_squared_errors(means, states, runs, layout.lags), lambda: jnp.zeros(())
    )
    return bound - penalty


def _penalised_bound_and_gradient(
    vector: AnyArray, rows: Rows, runs: FreeRuns, weight: AnyArray | float, form: Form, layout: Layout
) -> tuple[AnyArray, AnyArray]:
    value, gradient = jax.value_and_grad(penalised_bound)(unflatten(vector, form), rows, runs, weight, layout)
    return value, flatten(gradient)


penalised_bound_and_gradient = jax.jit(
    replicate_results(_penalised_bound_and_gradient), static_argnames=("form", "layout")
)


def make_penalised_objective(problem: Problem, runs: FreeRuns, weight: float) -> Objective:
    """Make the objective with the free-run term; all weights share one compiled function."""
    form = get_form(problem.start)

    def objective(vector: Vector) -> tuple[float, Vector]:
        value, gradient = penalised_bound_and_gradient(
            vector, problem.rows, runs, weight, form=form, layout=problem.layout
        )
        return float(value), np.asarray(gradient)

    return objective


class MemberBound(NamedTuple):
    """The objective of one member of a batch (optim/batched_lbfgs.py), with its rows and runs as data."""

    form: Form
    layout: Layout

    def __call__(
        self, vector: AnyArray, own: tuple[Rows, FreeRuns | None], weight: AnyArray | float
    ) -> tuple[AnyArray, AnyArray]:
        """Compute the bound, with the free-run term where there are runs, and its gradient."""
        rows, runs = own
        if runs is None:
            return _bound_and_gradient(vector, rows, self.form, self.layout)
        return _penalised_bound_and_gradient(vector, rows, runs, weight, self.form, self.layout)
