"""The bound and its gradient as a compiled function of the flat vector of parameters."""

import jax
import numpy as np

from revarb.optim.lbfgs import Objective, Vector
from revarb.runtime.mesh import replicate_results
from revarb.runtime.numerics import AnyArray
from revarb.training.problem import Problem
from revarb.variational.bound import Layout, Rows, revarb_bound
from revarb.variational.parameters import Form, flatten, get_form, unflatten


def _bound_and_gradient(vector: AnyArray, rows: Rows, form: Form, layout: Layout) -> tuple[AnyArray, AnyArray]:
    bound, gradient = jax.value_and_grad(revarb_bound)(unflatten(vector, form), rows, layout)
    return bound, flatten(gradient)


bound_and_gradient = jax.jit(replicate_results(_bound_and_gradient), static_argnames=("form", "layout"))
bounds_and_gradients = jax.jit(  # batched: one row of vectors per start
    replicate_results(jax.vmap(_bound_and_gradient, in_axes=(0, None, None, None))), static_argnums=(2, 3)
)


def make_objective(problem: Problem) -> Objective:
    """Make the objective of a fit: from the flat vector to the bound and its gradient."""
    form = get_form(problem.start)

    def objective(vector: Vector) -> tuple[float, Vector]:
        bound, gradient = bound_and_gradient(vector, problem.rows, form=form, layout=problem.layout)
        return float(bound), np.asarray(gradient)

    return objective
