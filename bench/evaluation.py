"""One evaluation of the bound with its gradient, as the optimiser asks for it, beside GPy's and the floor under it."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from bench.gpy_peer import statistics_and_gradients
from bench.problems import SEED, SPEC, fit_step, problem, psi_width
from bench.timing import alternating_medians, median_seconds
from revarb.gp.layer import Gaussians, Layer
from revarb.runtime.numerics import with_numerics
from revarb.training.problem import Problem
from revarb.variational.bound import build_layer_problems

SAMPLES = (250, 512, 2000)  # Drive, Actuator, and a record that does not fit into the cache


def row(samples: int) -> dict[str, Any]:
    """Ours, GPy's and the floor's."""
    given = problem(samples)
    layers = regressions(given)
    # `fit` enters `with_numerics` once (2 ms), not at every step; GPy and the floor keep BLAS on all threads.
    ours, peer = with_numerics(fit_step)(given), statistics_and_gradients(layers)
    least = floor(len(given.rows.y), [psi_width(x_hat) for _, x_hat in layers])
    own_seconds, peer_seconds, floor_seconds = alternating_medians(
        [
            lambda: with_numerics(median_seconds)(ours),
            lambda: median_seconds(peer, repetitions=3),
            lambda: median_seconds(least),
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
def regressions(given: Problem) -> list[tuple[Layer, Gaussians]]:
    """Every layer with its regressors, as the bound sees them."""
    problems = build_layer_problems(given.start.layers, given.start.states, given.rows, given.layout)
    return [(layer, jax.tree.map(np.asarray, x_hat)) for layer, x_hat, _ in problems]


def floor(rows: int, widths: Sequence[int]) -> Callable[[], object]:
    """What Ψ2 and its gradient cannot avoid, in NumPy: per layer a product, its exponential, two products back."""
    rng = np.random.default_rng(SEED)
    pairs = SPEC.inducing * (SPEC.inducing + 1) // 2
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


if __name__ == "__main__":
    print(json.dumps([row(samples) for samples in SAMPLES]))
