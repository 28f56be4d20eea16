"""Free simulation of Actuator's test part, compared with the same recursion in Python with GPy's predictions.

Also that of a mixture of five models of Drive's training part, compared with that of its members alone.
"""

import json
from collections.abc import Callable
from typing import Any

import GPy
import numpy as np
from GPy.core.parameterization.variational import NormalPosterior
from GPy.inference.latent_function_inference.posterior import Posterior as PeerPosterior

from bench.timing import time_alternately, time_median
from revarb import datasets
from revarb.data.windows import input_windows_after
from revarb.gp.posterior import Posterior
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.recipe import Recipe, Stage
from revarb.models.rgp import RGP


class PeerLayer:
    """A trained layer in GPy's objects."""

    def __init__(self, layer: Posterior):
        size = layer.zeta.shape[1]
        lengthscales = 1.0 / np.sqrt(layer.w)
        self.kernel = GPy.kern.RBF(size, variance=float(layer.variance), lengthscale=lengthscales, ARD=True)
        self.zeta = GPy.Param("zeta", np.array(layer.zeta))
        self.beta, self.sigma2 = np.array(layer.beta), float(layer.sigma2)
        self.posterior = PeerPosterior(
            woodbury_vector=self.beta, woodbury_inv=np.array(layer.reduction), K=self.kernel.K(self.zeta)
        )

    def mean(self, mean: np.ndarray) -> float:
        """Mean at a known regressor."""
        return float((self.kernel.K(mean[None], self.zeta) @ self.beta)[0, 0])

    def moments(self, mean: np.ndarray, variance: np.ndarray) -> tuple[float, float]:
        """Mean and variance, noise included, at an uncertain regressor."""
        x_hat = NormalPosterior(mean[None], np.maximum(variance[None], 1e-12))
        f, spread = self.posterior._raw_predict(self.kernel, x_hat, self.zeta)
        return float(f[0, 0]), float(spread[0, 0]) + self.sigma2


def simulate_peer_mean(layers: list[PeerLayer], u_bar: np.ndarray, lags: int) -> np.ndarray:
    """Mean-only free run with one state per layer."""
    *hidden, output = layers
    windows, path = [np.zeros(lags) for _ in hidden], []
    for inputs in u_bar:
        below = inputs
        for h, layer in enumerate(hidden):
            state = layer.mean(np.concatenate([windows[h], below]))
            windows[h] = below = np.concatenate([[state], windows[h][:-1]])
        path.append(output.mean(below))
    return np.array(path)


def simulate_peer_moments(layers: list[PeerLayer], u_bar: np.ndarray, lags: int) -> np.ndarray:
    """Free run with variances; states are treated as independent."""
    *hidden, output = layers
    windows, path = [(np.zeros(lags), np.ones(lags)) for _ in hidden], []
    for inputs in u_bar:
        below = (inputs, np.zeros_like(inputs))
        for h, layer in enumerate(hidden):
            state = layer.moments(*(np.concatenate([own, side]) for own, side in zip(windows[h], below, strict=True)))
            pairs = zip(state, windows[h], strict=True)
            windows[h] = below = tuple(np.concatenate([[new], old[:-1]]) for new, old in pairs)
        path.append(output.moments(*below)[0])
    return np.array(path)


def measure() -> list[dict[str, Any]]:
    """Time both methods of revarb and of the peer."""
    split = datasets.load("actuator")
    model = RGP(calibrate=False).fit(split.train)
    chain = model.trained.chain
    layers = [PeerLayer(layer) for layer in (*chain.hidden, chain.output)]
    u_bar = _input_rows(model, split.test.u)
    _check_same_work(model, split.test.u, simulate_peer_mean(layers, u_bar, model.spec.lags))
    return [
        _row("mean", model, split.test.u, lambda: simulate_peer_mean(layers, u_bar, model.spec.lags)),
        _row("moments", model, split.test.u, lambda: simulate_peer_moments(layers, u_bar, model.spec.lags)),
        *_measure_mixture(),
    ]


def _row(method: str, model: FittedRGP, u: np.ndarray, peer: Callable[[], np.ndarray]) -> dict[str, Any]:
    own_seconds, peer_seconds = time_alternately(
        [lambda: time_median(lambda: model.simulate(u, method)), lambda: time_median(peer, repetitions=1)]
    )
    return {
        "name": f"Actuator simulated, {method}",
        "n": len(u),
        "seconds": own_seconds,
        "steps_per_second": len(u) / own_seconds,
        "peer_seconds": peer_seconds,
        "ratio": peer_seconds / own_seconds,
    }


def _measure_mixture() -> list[dict[str, Any]]:
    # Hardly trained: a run takes as long as that of a trained model.
    train = datasets.load("drive").train
    short = {"inducing": 50, "recipe": Recipe(stages=(Stage(("mu", "zeta"), 5),)), "calibrate": False}
    with_line = {"hidden": 1, "linear": True}
    kinds = [(10, with_line), (20, {"hidden": 1}), (5, {"hidden": 1}), (10, {"hidden": 2}), (2, with_line)]
    models = [RGP(lags, lags, **kind, **short).fit(train) for lags, kind in kinds]
    mixture, rows = Ensemble.from_candidates(models), []
    for method in ("mean", "moments", "samples"):
        timings = [
            lambda model=model, method=method: time_median(lambda: model.simulate(train.u, method), repetitions=3)
            for model in (mixture, *models)
        ]
        seconds, *alone = time_alternately(timings)
        row = {"name": f"mixture of five simulated, {method}", "n": len(train), "seconds": seconds}
        row |= {"steps_per_second": len(train) / seconds, "times_slowest": seconds / max(alone)}
        rows.append(row | {"times_member": seconds / float(np.mean(alone))})
    return rows


def _input_rows(model: FittedRGP, u: np.ndarray) -> np.ndarray:
    past = np.zeros((model.order.reach, u.shape[1]))
    return input_windows_after(past, model.scaling.inputs(u), model.order)


def _check_same_work(model: FittedRGP, u: np.ndarray, peer: np.ndarray) -> None:
    # revarb resets the states where the window of inputs is full, the peer does not: they agree after the transient.
    ours = model.simulate(u, "mean").mean[-100:]
    np.testing.assert_allclose(model.scaling.raw_outputs(peer[-100:, None]), ours, rtol=1e-3, atol=1e-3)


if __name__ == "__main__":
    print(json.dumps(measure()))
