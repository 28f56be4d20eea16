"""One evaluation of the bound with its gradient, compared with GPy's psi statistics and with the floor."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from bench.gpy_peer import make_gpy_evaluation
from bench.problems import SEED, SPEC, count_psi_columns, make_fit_step, make_problem
from bench.timing import time_alternately, time_median
from revarb.fitting.problem import Problem
from revarb.gp.layer import Gaussians, Layer
from revarb.runtime.numerics import with_numerics
from revarb.variational.bound import build_layer_problems

SAMPLES = (250, 512, 2000)  # Drive, Actuator, and a record that does not fit into the processor's cache


def measure(samples: int) -> dict[str, Any]:
    """Time revarb, GPy and the floor."""
    given = make_problem(samples)
    layers = list_regressions(given)
    # `fit` enters `with_numerics` once (2 ms), not at every step; GPy and the floor use BLAS on all threads.
    ours, peer = with_numerics(make_fit_step)(given), make_gpy_evaluation(layers)
    floor = make_floor(len(given.rows.y), [count_psi_columns(x_hat) for _, x_hat in layers])
    own_seconds, peer_seconds, floor_seconds = time_alternately(
        [
            lambda: with_numerics(time_median)(ours),
            lambda: time_median(peer, repetitions=3),
            lambda: time_median(floor),
        ]
    )
    return {
        "name": "bound and gradient",
        "n": samples,
        "device": jax.devices()[0].device_kind,
        "seconds": own_seconds,
        "peer_seconds": peer_seconds,
        "ratio": peer_seconds / own_seconds,
        "floor_seconds": floor_seconds,
        "of_floor": own_seconds / floor_seconds,
    }


@with_numerics
def list_regressions(given: Problem) -> list[tuple[Layer, Gaussians]]:
    """Every layer with its regressors, as in the bound."""
    problems = build_layer_problems(given.start, given.start.states, given.rows, given.layout)
    return [(layer, jax.tree.map(np.asarray, x_hat)) for layer, x_hat, _ in problems]


def make_floor(rows: int, widths: Sequence[int]) -> Callable[[], object]:
    """Lower limit for Ψ2 and its gradient, in NumPy: per layer a product, its exponential, two products back."""
    rng = np.random.default_rng(SEED)
    pairs = SPEC.inducing * (SPEC.inducing + 1) // 2
    factors = [(rng.standard_normal((rows, k)) / k, rng.standard_normal((pairs, k))) for k in widths]
    block = 256  # rows at a time: the exponentials stay in the processor's cache
    exponentials = np.empty((block, pairs))

    def evaluate() -> None:
        for a, b in factors:
            for start in range(0, rows, block):
                part = a[start : start + block]
                out = exponentials[: len(part)]
                np.exp(np.matmul(part, b.T, out=out), out=out)
                _ = out @ b, out.T @ part

    return evaluate


if __name__ == "__main__":
    print(json.dumps([measure(samples) for samples in SAMPLES]))
