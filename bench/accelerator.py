"""Evaluations on a GPU: `python -m bench.accelerator --json FILE`, on a machine that has one."""

import argparse
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bench.problems import QUICK_START, count_psi_columns, make_fit_step, make_problem
from bench.timing import time_median
from revarb.evaluation.results_file import write_results
from revarb.runtime.files import check_writable
from revarb.runtime.numerics import with_numerics
from revarb.training.objective import bounds_and_gradients
from revarb.training.problem import Problem, make_plan
from revarb.variational.bound import build_layer_problems
from revarb.variational.parameters import get_form

MEMBERS = 16
MATRIX = 8192

NOTES = {
    "seconds": "median; from the flat vector to the bound and its gradient, host to host",
    "together": "a batch of sixteen starts in one call, host to host; times_one: its time over that of one evaluation",
    "gemm_tflops": f"float64 product of two {MATRIX} x {MATRIX} matrices, measured in the same run",
    "psi2_tflops": "the four products per layer (one forward, three backward) of psi2, over the time of everything",
    "of_gemm": "psi2_tflops / gemm_tflops",
}


@with_numerics
def measure() -> list[dict[str, Any]]:
    """Time one evaluation at Drive's size, a batch of sixteen, and one of a long record."""
    drive, long = make_problem(250), make_problem(100_000, QUICK_START)
    one, together = time_median(make_fit_step(drive)), time_median(_make_batch(drive))
    return [
        {"name": "bound and gradient", "n": 250, "seconds": one},
        {"name": f"{MEMBERS} together", "n": 250, "seconds": together, "times_one": together / one},
        _long_row(long, _gemm_tflops()),
    ]


def _make_batch(given: Problem):
    vectors = np.stack([make_plan(given).start * (1.0 + 1e-3 * k) for k in range(MEMBERS)])
    form = get_form(given.start)

    def evaluate() -> list[np.ndarray]:
        return [np.asarray(x) for x in bounds_and_gradients(vectors, given.rows, form, given.layout)]

    return evaluate


def _long_row(given: Problem, gemm_tflops: float) -> dict[str, Any]:
    seconds = time_median(make_fit_step(given))
    rate = _psi2_operations(given) / seconds / 1e12
    shares = {"psi2_tflops": rate, "gemm_tflops": gemm_tflops, "of_gemm": rate / gemm_tflops}
    return {"name": "long record", "n": 100_000, "seconds": seconds, **shares}


def _psi2_operations(given: Problem) -> float:
    count, inducing = len(given.rows.y), given.spec.inducing
    problems = build_layer_problems(given.start.layers, given.start.states, given.rows, given.layout)
    return sum(4 * 2.0 * count * count_psi_columns(x_hat) * inducing * (inducing // 2 + 1) for _, x_hat, _ in problems)


def _gemm_tflops() -> float:
    matrix = jax.random.normal(jax.random.key(0), (MATRIX, MATRIX))
    product = jax.jit(lambda a: a @ a)
    return 2.0 * MATRIX**3 / time_median(lambda: product(matrix).block_until_ready()) / 1e12


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.accelerator")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE")
    target = check_writable(parser.parse_args().json)
    if jax.default_backend() == "cpu":
        parser.error("JAX has no accelerator here")
    found = measure()
    for row in found:
        print(row)
    meta = {"command": "python -m bench.accelerator", "device": jax.devices()[0].device_kind, "notes": NOTES}
    write_results(target, meta, found)
