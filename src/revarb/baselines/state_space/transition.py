"""Transition of a GP state-space model: one sparse GP per state around a linear mean.

docs/theory/derivation.md, Eqs. 57 to 61.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from revarb.gp.collapsed import inducing_covariance
from revarb.gp.layer import Layer, Linear, rbf
from revarb.runtime.numerics import AnyArray

JITTER = 1e-6  # on the diagonal of K_z, relative to the kernel variance


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
        mean, variance = jax.vmap(_predict_marginal, (0, 0, 0, None))(
            self.layers, self.v_mean, _triangular(self.v_root), x_hat
        )
        return mean.T + self.linear.mean(x_hat), variance.T

    def _condition(self, v: Float[AnyArray, "K Dx M"]) -> "DrawnTransition":
        inverse_A = jax.vmap(_invert_root)(self.layers)
        beta = jnp.einsum("snm,ksn->skm", inverse_A, v)
        return DrawnTransition(self.layers, inverse_A, beta, self.linear, self.process_variance, self.output_std)


class DrawnTransition(eqx.Module):
    """Transitions of K particles given the inducing outputs of each (a `Dynamics`)."""

    layers: Layer
    inverse_A: Float[AnyArray, "Dx M M"]
    beta: Float[AnyArray, "Dx K M"]  # K_z⁻¹ times the inducing outputs
    linear: Linear
    process_variance: Float[AnyArray, " Dx"]
    output_std: Float[AnyArray, " Dy"]

    def predict(
        self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, "K Du"] | Float[AnyArray, " Du"]
    ) -> tuple[Float[AnyArray, "K Dx"], Float[AnyArray, "K Dx"]]:
        """Mean and variance of f at the states of the particles, given their inducing outputs (Eq. 59)."""
        x_hat = jnp.concatenate([x, jnp.broadcast_to(u_bar, (len(x), u_bar.shape[-1]))], axis=1)
        mean, variance = jax.vmap(_predict_one, (0, 0, 0, None))(self.layers, self.inverse_A, self.beta, x_hat)
        return mean.T + self.linear.mean(x_hat), variance.T

    def mean(self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, " Du"]) -> Float[AnyArray, "K Dx"]:
        """Expected next states."""
        return self.predict(x, u_bar)[0]

    def advance(
        self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, "..."], key: Key[jax.Array, ""]
    ) -> Float[AnyArray, "K Dx"]:
        """Sampled next states, process noise included."""
        mean, variance = self.predict(x, u_bar)
        return mean + jnp.sqrt(variance + self.process_variance) * jax.random.normal(key, x.shape)


def _predict_marginal(
    layer: Layer, v_mean: Float[AnyArray, " M"], v_root: Float[AnyArray, "M M"], x_hat: Float[AnyArray, "T D"]
) -> tuple[Float[AnyArray, " T"], Float[AnyArray, " T"]]:
    white = rbf(x_hat, layer.zeta, layer.w, layer.variance) @ _invert_root(layer).T
    variance = layer.variance - jnp.sum(white**2, axis=1) + jnp.sum((white @ v_root) ** 2, axis=1)
    return white @ v_mean, jnp.maximum(variance, 0.0)


def kl_divergence(transition: Transition) -> Float[AnyArray, ""]:
    """KL divergence of q(v) from its prior N(0, I), over all states (Eq. 61)."""
    root = _triangular(transition.v_root)
    log_diagonal = jnp.diagonal(transition.v_root, axis1=1, axis2=2)
    return 0.5 * (jnp.sum(root**2) + jnp.sum(transition.v_mean**2) - transition.v_mean.size) - jnp.sum(log_diagonal)


def _triangular(raw: Float[AnyArray, "Dx M M"]) -> Float[AnyArray, "Dx M M"]:
    return jnp.tril(raw, -1) + jnp.eye(raw.shape[1]) * jnp.exp(jnp.diagonal(raw, axis1=1, axis2=2))[:, None, :]


def _invert_root(layer: Layer) -> Float[AnyArray, "M M"]:
    root = jnp.linalg.cholesky(inducing_covariance(layer, JITTER))
    return jax.scipy.linalg.solve_triangular(root, jnp.eye(len(root)), lower=True)


def _predict_one(
    layer: Layer, inverse_A: Float[AnyArray, "M M"], beta: Float[AnyArray, "K M"], x_hat: Float[AnyArray, "K D"]
) -> tuple[Float[AnyArray, " K"], Float[AnyArray, " K"]]:
    cross = rbf(x_hat, layer.zeta, layer.w, layer.variance)
    explained = jnp.sum((cross @ inverse_A.T) ** 2, axis=1)
    # The floor keeps the derivative of the square root finite where rounding makes the difference zero.
    variance = jnp.maximum(layer.variance - explained, JITTER * layer.variance)
    return jnp.sum(cross * beta, axis=1), variance
