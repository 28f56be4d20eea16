"""GPy's psi statistics with their gradients, for the same layers."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import GPy
import numpy as np
from GPy.core.parameterization.variational import NormalPosterior

from bench.problems import SEED
from revarb.gp import psi
from revarb.gp.layer import Gaussians, Layer
from revarb.runtime.numerics import with_numerics


class PeerLayer(NamedTuple):
    """One layer in GPy's objects, and incoming gradients of Ψ0, Ψ1 and Ψ2."""

    kernel: GPy.kern.RBF
    zeta: GPy.Param
    x_hat: NormalPosterior
    incoming: tuple[np.ndarray, np.ndarray, np.ndarray]


def make_gpy_evaluation(regressions: Sequence[tuple[Layer, Gaussians]]) -> Callable[[], object]:
    """Make a function that evaluates the statistics of all layers with gradients; no Cholesky factors, no bound."""
    rng = np.random.default_rng(SEED)
    layers = [_peer_layer(layer, x_hat, rng) for layer, x_hat in regressions]
    for (layer, x_hat), peer in zip(regressions, layers, strict=True):
        _check_same_work(layer, x_hat, peer)

    def evaluate() -> None:
        for layer in layers:
            _evaluate_layer(layer)

    return evaluate


@with_numerics
def _peer_layer(layer: Layer, x_hat: Gaussians, rng: np.random.Generator) -> PeerLayer:
    rows, size = x_hat.mean.shape
    inducing = len(layer.zeta)
    known = size - x_hat.variance.shape[1]  # in GPy all regressors are uncertain
    variance = np.pad(x_hat.variance, ((0, 0), (0, known)), constant_values=1e-12)
    lengthscales = 1.0 / np.sqrt(np.asarray(layer.w))
    return PeerLayer(
        GPy.kern.RBF(size, variance=float(layer.variance), lengthscale=lengthscales, ARD=True),
        # A Param, as in GPy's own models: for a plain array GPy does not cache, and computes Ψ2 six times.
        GPy.Param("zeta", np.array(layer.zeta)),
        NormalPosterior(np.array(x_hat.mean), variance),
        (rng.standard_normal(rows), rng.standard_normal((rows, inducing)), rng.standard_normal((inducing, inducing))),
    )


def _evaluate_layer(layer: PeerLayer) -> None:
    kernel, zeta, x_hat, incoming = layer
    # GPy caches its results until a parameter is set. Setting one, as a step of an optimiser does, empties the cache;
    # within one evaluation the gradients still reuse the statistics.
    kernel.lengthscale[:] = kernel.lengthscale.values
    kernel.psi0(zeta, x_hat)
    kernel.psi1(zeta, x_hat)
    kernel.psi2(zeta, x_hat)
    kernel.update_gradients_expectations(*incoming, zeta, x_hat)
    kernel.gradients_Z_expectations(*incoming, zeta, x_hat)
    kernel.gradients_qX_expectations(*incoming, zeta, x_hat)


@with_numerics
def _check_same_work(layer: Layer, x_hat: Gaussians, peer: PeerLayer) -> None:
    ours = psi.psi2(x_hat.mean, x_hat.variance, layer.zeta, layer.w, layer.variance)
    np.testing.assert_allclose(peer.kernel.psi2(peer.zeta, peer.x_hat), ours, rtol=1e-8)
