"""Bound, gradient and a fit with all devices against one.

`python -m support.rows_over_devices COORDINATOR PROCESS | refused` prints a line of JSON.
"""

import json
import re
import sys
from dataclasses import replace

import jax
import numpy as np

import revarb
from revarb.fitting.objective import bound_and_gradient, make_objective
from revarb.fitting.problem import make_plan
from revarb.runtime.numerics import with_numerics
from revarb.variational.parameters import get_form
from support import small


@with_numerics
def compare_bounds():
    # Short lengthscales: where K_z is nearly singular, the rounding of any two orders of summation differs by more.
    spec = small.spec(inducing=20, lags=3, input_lags=4, recipe=replace(small.QUICK, lengthscale_factor=0.3))
    problem = small.problem(spec, small.record(0, samples=97), small.record(1, samples=64))  # 157 rows: one left over
    vector, objective = make_plan(problem).start, make_objective(problem)
    bound, gradient = objective(vector)
    with jax.set_mesh(revarb.row_mesh()):
        spread_bound, spread_gradient = objective(vector)
        program = bound_and_gradient.lower(vector, problem.rows, form=get_form(problem.start), layout=problem.layout)
    text = program.compile().as_text()
    return {
        "bound_error": abs(spread_bound / bound - 1.0),
        "gradient_error": float(np.abs(spread_gradient - gradient).max() / np.abs(gradient).max()),
        "messages": len(re.findall(r" (?:all-reduce|all-gather|all-to-all|collective-permute)\(", text)),
    }


def compare_fits():
    alone = small.spec().fit(small.record())
    with jax.set_mesh(revarb.row_mesh()):
        together = small.spec().fit(small.record())
    return {"fit_bound": together.bound, "fit_bound_alone": alone.bound}


def refuse_processes():
    with jax.set_mesh(revarb.row_mesh()):
        try:
            small.spec().fit(small.record(), restarts=2, jobs=2)
        except revarb.InputError as error:
            return {"message": str(error)}


if sys.argv[1:] == ["refused"]:
    print(json.dumps(refuse_processes()))
else:
    jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=int(sys.argv[2]))
    print(json.dumps({"devices": len(jax.devices()), **compare_bounds(), **compare_fits()}))
