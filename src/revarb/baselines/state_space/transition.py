"""Transition of a GP state-space model: one sparse GP per state around a linear mean, and its start values.

docs/theory/derivation.md, Eqs. 57 to 61.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Int, Key

from revarb.gp.collapsed import inducing_covariance
from revarb.gp.kmeans import find_centres
from revarb.gp.layer import Gaussians, Layer, Linear, inverse_softplus, rbf
from revarb.gp.posterior import compute_posterior
from revarb.runtime.numerics import AnyArray

JITTER = 1e-6  # on the diagonal of K_z, relative to the kernel variance
PROCESS_VARIANCE = 1e-3  # at the start; small: sampled states that wander at first hide what f could learn
OUTPUT_VARIANCE = 0.1  # at the start
V_STD = 0.05  # of the whitened inducing outputs at the start
RIDGE = 1e-2  # of the linear maps, relative to the number of rows
MIN_KERNEL_VARIANCE = 0.01


class Transition(eqx.Module):
    """q(f) and the noises. The layers are stacked along a first axis, one per state; σ² is that of the process noise.

    The inducing outputs are A v with K_z = A Aᵀ, and q(v) is Gaussian with a lower triangular root (Eq. 58).
    """

    layers: Layer
    v_mean: Float[AnyArray, "Dx M"]
    v_root: Float[AnyArray, "Dx M M"]  # its diagonal through exp
    linear: Linear  # the mean of f, from states and inputs; the identity at first
    raw_output_variance: Float[AnyArray, " Dy"]

    @property
    def process_variance(self) -> Float[AnyArray, " Dx"]:
        """Variances of the process noise."""
        return jax.nn.softplus(self.layers.raw_sigma2)

    @property
    def output_std(self) -> Float[AnyArray, " Dy"]:
        """Standard deviation of the noise of every output."""
        return jnp.sqrt(jax.nn.softplus(self.raw_output_variance))

    def draw(self, key: Key[jax.Array, ""], count: int) -> "DrawnTransition":
        """Draw the inducing outputs of `count` particles (Eq. 58)."""
        noise = jax.random.normal(key, (count, *self.v_mean.shape))
        return self._condition(self.v_mean + jnp.einsum("smn,ksn->ksm", _triangular(self.v_root), noise))

    def expect(self) -> "DrawnTransition":
        """The transition of one particle by the mean of the inducing outputs."""
        return self._condition(self.v_mean[None])

    def marginal(self, x_hat: Float[AnyArray, "T D"]) -> tuple[Float[AnyArray, "T Dx"], Float[AnyArray, "T Dx"]]:
        """Mean and variance of f at known states and inputs, the inducing outputs integrated out (Eq. 60)."""
        white, variance = _whiten(self.layers, _invert_roots(self.layers), x_hat)
        mean = jnp.einsum("stm,sm->ts", white, self.v_mean) + self.linear.mean(x_hat)
        return mean, variance + jnp.sum((white @ _triangular(self.v_root)) ** 2, axis=2).T

    def _condition(self, v: Float[AnyArray, "K Dx M"]) -> "DrawnTransition":
        inverse_A = _invert_roots(self.layers)
        return DrawnTransition(self.layers, inverse_A, v, self.linear, self.process_variance, self.output_std)


class DrawnTransition(eqx.Module):
    """Transitions of K particles given the inducing outputs of each (a `Dynamics`)."""

    layers: Layer
    inverse_A: Float[AnyArray, "Dx M M"]
    v: Float[AnyArray, "K Dx M"]  # the inducing outputs are A v
    linear: Linear
    process_variance: Float[AnyArray, " Dx"]
    output_std: Float[AnyArray, " Dy"]

    def predict(
        self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, "K Du"] | Float[AnyArray, " Du"]
    ) -> tuple[Float[AnyArray, "K Dx"], Float[AnyArray, "K Dx"]]:
        """Mean and variance of f at the states of the particles, given their inducing outputs (Eq. 59)."""
        x_hat = jnp.concatenate([x, jnp.broadcast_to(u_bar, (len(x), u_bar.shape[-1]))], axis=1)
        white, variance = _whiten(self.layers, self.inverse_A, x_hat)
        return jnp.einsum("skm,ksm->ks", white, self.v) + self.linear.mean(x_hat), variance

    def mean(self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, " Du"]) -> Float[AnyArray, "K Dx"]:
        """Expected next states."""
        return self.predict(x, u_bar)[0]

    def advance(
        self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, "..."], key: Key[jax.Array, ""]
    ) -> Float[AnyArray, "K Dx"]:
        """Sampled next states, process noise included."""
        mean, variance = self.predict(x, u_bar)
        return mean + jnp.sqrt(variance + self.process_variance) * jax.random.normal(key, x.shape)


def _invert_roots(layers: Layer) -> Float[AnyArray, "Dx M M"]:
    # A_d⁻¹ of every state.
    roots = jnp.linalg.cholesky(jax.vmap(lambda layer: inducing_covariance(layer, JITTER))(layers))
    return jax.scipy.linalg.solve_triangular(roots, jnp.broadcast_to(jnp.eye(roots.shape[1]), roots.shape), lower=True)


def _whiten(
    layers: Layer, inverse_A: Float[AnyArray, "Dx M M"], x_hat: Float[AnyArray, "N D"]
) -> tuple[Float[AnyArray, "Dx N M"], Float[AnyArray, "N Dx"]]:
    # a_d of every state, and the variance of f given its inducing outputs (Eq. 59).
    def whiten(layer: Layer, inverse_A: Float[AnyArray, "M M"]) -> tuple[AnyArray, AnyArray]:
        white = rbf(x_hat, layer.zeta, layer.w, layer.variance) @ inverse_A.T
        # The floor keeps the derivative of the square root finite where rounding makes the difference zero.
        return white, jnp.maximum(layer.variance - jnp.sum(white**2, axis=1), JITTER * layer.variance)

    white, variance = jax.vmap(whiten)(layers, inverse_A)
    return white, variance.T


def kl_divergence(transition: Transition) -> Float[AnyArray, ""]:
    """KL divergence of q(v) from its prior N(0, I), over all states (Eq. 61)."""
    root = _triangular(transition.v_root)
    log_diagonal = jnp.diagonal(transition.v_root, axis1=1, axis2=2)
    return 0.5 * (jnp.sum(root**2) + jnp.sum(transition.v_mean**2) - transition.v_mean.size) - jnp.sum(log_diagonal)


def _triangular(raw: Float[AnyArray, "Dx M M"]) -> Float[AnyArray, "Dx M M"]:
    return jnp.tril(raw, -1) + jnp.eye(raw.shape[1]) * jnp.exp(jnp.diagonal(raw, axis1=1, axis2=2))[:, None, :]


def start_transition(
    x: Float64[np.ndarray, "N Dx"],
    u_bar: Float64[np.ndarray, "N Du"],
    outputs: int,
    later: Int[np.ndarray, " R"],
    inducing: int,
    linear_mean: bool,
    rng: np.random.Generator,
) -> Transition:
    """Regress every state on the states and inputs before it; `later` are the samples that have one before them."""
    x_hat, states = np.concatenate([x[later - 1], u_bar[later]], axis=1), x.shape[1]
    identity = Linear(np.eye(x_hat.shape[1], states), np.zeros(states))
    linear = fit_linear_map(x_hat, x[later]) if linear_mean else identity
    residual = x[later] - np.asarray(linear.mean(x_hat))
    zeta = find_centres(x_hat, min(inducing, len(x_hat)), iterations=50, starts=1, rng=rng)
    parts = [_start_layer(x_hat, zeta, residual[:, [state]]) for state in range(states)]
    layers, v_means = (jax.tree.map(lambda *leaves: np.stack(leaves), *each) for each in zip(*parts, strict=True))
    root = np.log(V_STD) * np.eye(len(zeta))
    raw_output = np.full(outputs, inverse_softplus(OUTPUT_VARIANCE))
    return Transition(layers, v_means, np.stack([root] * states), linear, raw_output)


def _start_layer(
    x_hat: Float64[np.ndarray, "R D"], zeta: Float64[np.ndarray, "M D"], y: Float64[np.ndarray, "R 1"]
) -> tuple[Layer, Float64[np.ndarray, " M"]]:
    # The layer of one state, and the whitened inducing outputs of a GP regression: v = Aᵀ β.
    variance = max(4.0 * float(np.var(y)), MIN_KERNEL_VARIANCE)
    w = np.full(x_hat.shape[1], 1.0 / x_hat.shape[1])  # as GP-NARX starts
    noise = max(float(np.var(y)), MIN_KERNEL_VARIANCE)
    raw_w, raw_variance, raw_noise = (np.asarray(inverse_softplus(value)) for value in (w, variance, noise))
    layer = Layer(zeta, raw_w, raw_variance, raw_noise)
    beta = np.asarray(compute_posterior(layer, Gaussians(x_hat, None), y, JITTER).beta)[:, 0]
    root = np.linalg.cholesky(np.asarray(inducing_covariance(layer, JITTER)))
    return Layer(zeta, raw_w, raw_variance, np.asarray(inverse_softplus(PROCESS_VARIANCE))), root.T @ beta


def fit_linear_map(x_hat: Float64[np.ndarray, "R D"], y: Float64[np.ndarray, "R Dy"]) -> Linear:
    """Ridge regression with an offset."""
    centre, target = x_hat.mean(axis=0), y.mean(axis=0)
    centred = x_hat - centre
    normal = centred.T @ centred + RIDGE * len(x_hat) * np.eye(x_hat.shape[1])
    coefficients = np.linalg.solve(normal, centred.T @ (y - target))
    return Linear(coefficients, target - centre @ coefficients)
