"""Psi statistics: the kernel's expectations under Gaussian regressors (docs/derivation.md, Eqs. 10 to 16).

Two kinds of Gaussian: training has many rows with independent entries (`psi1`, `psi2`), the free simulation has
one regressor with a full covariance (`psi1_full`, `psi2_full`). Where `lam` has fewer columns (U) than `mu`, the last
regressors are known exactly. Rows that are not `measured` count for nothing: their exponentials vanish.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Bool, Float

from revarb.gp.kernel import squared_distances
from revarb.runtime.numerics import AnyArray

VANISHING = -1e4  # an exponent whose exponential is zero


def psi1(
    mu: Float[AnyArray, "R D"],
    lam: Float[AnyArray, "R U"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
    measured: Bool[AnyArray, " R"] | None = None,
) -> Float[AnyArray, "R M"]:
    """Ψ1 = ⟨k(x̂, ζ)⟩ for x̂ ~ N(mu, diag lam), row by row."""
    known = 0.5 * w[lam.shape[1] :]
    return variance * _exponentials(_row_side(mu, lam, 0.5 * w, measured), _point_side(zeta, known))


def psi2(
    mu: Float[AnyArray, "R D"],
    lam: Float[AnyArray, "R U"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
    measured: Bool[AnyArray, " R"] | None = None,
) -> Float[AnyArray, "M M"]:
    """Ψ2 = Σ_rows ⟨k(ζ, x̂) k(x̂, ζ')⟩, computed once for every pair of inducing inputs."""
    middle = 0.5 * (zeta + _partners(zeta))
    points = _point_side(middle.reshape(-1, zeta.shape[1]), w[lam.shape[1] :])
    pairs = sum_of_exponentials(*_row_side(mu, lam, w, measured), points).reshape(middle.shape[:2])
    return variance**2 * jnp.exp(pair_distances(zeta, w)) * _symmetric(pairs)


def _partners(zeta: Float[AnyArray, "M D"]) -> Float[AnyArray, "K M D"]:
    # ζ_{m+k} for k = 0 … ⌊M/2⌋, counted around: with ζ_m every pair once, and for even M the last ones twice. Tiles,
    # each cut one row later than the one before, do it without a gather, whose derivative would be a slow scatter.
    M, D = zeta.shape
    shifts = M // 2 + 1
    tiles = jnp.tile(zeta, (shifts + 1, 1))[: shifts * (M + 1)]
    return tiles.reshape(shifts, M + 1, D)[:, :M]


def _symmetric(pairs: Float[AnyArray, "K M"]) -> Float[AnyArray, "M M"]:
    # From values for (m, m + k), in the order of `_partners`, to the matrix, by cutting rows one column later each.
    shifts, M = pairs.shape
    once = np.ones((shifts, 1))
    once[0] = 0.5  # the diagonal, and for even M the last shift, would be counted twice below
    once[-1] *= 0.5 if M % 2 == 0 and M > 1 else 1.0
    rows = jnp.pad((once * pairs).T, ((0, 0), (0, 2 * M - shifts)))
    slanted = rows.reshape(-1)[: M * (2 * M - 1)].reshape(M, 2 * M - 1)
    upper = slanted[:, :M] + jnp.pad(slanted[:, M:], ((0, 0), (0, 1)))
    return upper + upper.T


@jax.custom_vjp
def sum_of_exponentials(
    a: Float[AnyArray, "R K"], c: Float[AnyArray, " R"], b: Float[AnyArray, "P K"]
) -> Float[AnyArray, " P"]:
    """Σ_r exp(a_r · b_p + c_r): nearly all of the time of a fit is spent here.

    In blocks of rows and points that stay in the cache, and with a derivative by hand that computes the exponentials
    again instead of keeping R × P of them: one product forward, three backward, and memory for one block.
    """
    return _sum_forward(a, c, b)[0]


def _sum_forward(a, c, b):
    blocks = _blocks(a, c, b)

    def add(total, rows):
        sums = jax.lax.map(lambda points: jnp.sum(_exponentials(rows, points), axis=0), blocks.points)
        return total + sums, None

    total = jax.lax.scan(add, jnp.zeros(blocks.points.shape[:2]), (blocks.rows, blocks.constants))[0]
    return total.reshape(-1)[: b.shape[0]], (a, c, b)


def _sum_backward(stored, gradient):
    a, c, b = stored
    blocks = _blocks(a, c, b)
    slopes = jnp.pad(gradient, (0, blocks.points.shape[0] * blocks.points.shape[1] - b.shape[0]))
    slopes = slopes.reshape(blocks.points.shape[:2])

    def row_block(b_part, rows):
        def point_block(a_part, now):
            points, slope = now
            exponentials = _exponentials(rows[:2], points)
            here = (exponentials @ (slope[:, None] * points), exponentials @ slope)
            return jax.tree.map(jnp.add, a_part, here), rows[2] @ exponentials

        nothing = jax.tree.map(jnp.zeros_like, rows[:2])
        a_part, more = jax.lax.scan(point_block, nothing, (blocks.points, slopes))
        return b_part + more, a_part

    start = jnp.zeros((blocks.points.shape[0], a.shape[1], blocks.points.shape[1]))
    turned = jnp.swapaxes(blocks.rows, 1, 2)  # once, not in every block
    b_part, (a_part, c_part) = jax.lax.scan(row_block, start, (blocks.rows, blocks.constants, turned))
    b_gradient = slopes[:, :, None] * jnp.swapaxes(b_part, 1, 2)
    return (
        a_part.reshape(-1, a.shape[1])[: a.shape[0]],
        c_part.reshape(-1)[: a.shape[0]],
        b_gradient.reshape(-1, b.shape[1])[: b.shape[0]],
    )


sum_of_exponentials.defvjp(_sum_forward, _sum_backward)


def _exponentials(rows, points):
    a, c = rows
    return jnp.exp(a @ points.T + c[:, None])


class _Blocks(NamedTuple):
    """Rows and points in equal blocks."""

    rows: Float[AnyArray, "X B K"]
    constants: Float[AnyArray, "X B"]
    points: Float[AnyArray, "Y C K"]


class BlockSize(NamedTuple):
    """The most rows, and the most exponentials, that are worked on at a time."""

    rows: int
    values: int


BLOCK_SIZES = {"cpu": BlockSize(1024, 2**19)}  # 4 MiB: in a shared cache, and enough work for several threads


ACCELERATOR_BLOCK_SIZE = BlockSize(8192, 2**24)  # 128 MiB: enough for thousands of cores


def _blocks(a: AnyArray, c: AnyArray, b: AnyArray) -> _Blocks:
    # Filled up with rows whose exponentials vanish, and with points that the caller cuts off again.
    most = BLOCK_SIZES.get(jax.default_backend(), ACCELERATOR_BLOCK_SIZE)
    row_blocks = -(-a.shape[0] // most.rows)
    rows = -(-a.shape[0] // row_blocks)
    point_blocks = -(-b.shape[0] * rows // most.values)
    points = -(-b.shape[0] // point_blocks)
    more_rows, more_points = row_blocks * rows - a.shape[0], point_blocks * points - b.shape[0]
    return _Blocks(
        jnp.pad(a, ((0, more_rows), (0, 0))).reshape(row_blocks, rows, -1),
        jnp.pad(c, (0, more_rows), constant_values=VANISHING).reshape(row_blocks, rows),
        jnp.pad(b, ((0, more_points), (0, 0))).reshape(point_blocks, points, -1),
    )


def psi1_full(
    mu: Float[AnyArray, " D"],
    cov: Float[AnyArray, "D D"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
) -> tuple[Float[AnyArray, " M"], Float[AnyArray, "D M"]]:
    """Ψ1 for one x̂ ~ N(mu, cov), and (W⁻¹ + cov)⁻¹ (ζ − mu), which carries the covariance with x̂ onwards."""
    inverse, spread = _whitening(cov, w, 1.0)
    white = inverse @ (jnp.sqrt(w)[:, None] * (zeta - mu).T)
    statistic = variance * jnp.exp(-0.5 * jnp.sum(white**2, axis=0) - spread)
    pull = jnp.sqrt(w)[:, None] * (inverse.T @ white)
    return statistic, pull


def psi2_full(
    mu: Float[AnyArray, " D"],
    cov: Float[AnyArray, "D D"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
    pair_exponent: Float[AnyArray, "M M"],
) -> Float[AnyArray, "M M"]:
    """Ψ2 for one x̂ ~ N(mu, cov); `pair_exponent` = `pair_distances(zeta, w)` does not change from step to step."""
    inverse, spread = _whitening(cov, w, 2.0)
    white = inverse @ (jnp.sqrt(w)[:, None] * (zeta - mu).T)
    norms = jnp.sum(white**2, axis=0)
    # |v_m + v_m'|² / 4 is the distance of mu from the middle of the pair
    middle = 0.25 * (norms[:, None] + norms[None, :] + 2.0 * white.T @ white)
    return variance**2 * jnp.exp(pair_exponent - middle - spread)


def pair_distances(zeta: Float[AnyArray, "M D"], w: Float[AnyArray, " D"]) -> Float[AnyArray, "M M"]:
    """−¼ Σ_d w_d (ζ_d − ζ'_d)²: the part of log Ψ2 that does not depend on x̂."""
    return -0.25 * squared_distances(zeta, zeta, w)


def _row_side(mu: AnyArray, lam: AnyArray, precision: AnyArray, measured: AnyArray | None) -> tuple[AnyArray, AnyArray]:
    # exp(−Σ p (x − ζ)²) under x ~ N(mu, lam) is Π (1 + 2pλ)^-½ exp(−a (mu − ζ)²) with a = p / (1 + 2pλ).
    # The square is expanded, so that all rows and points together are one product of this with `_point_side`, and a
    # constant for every row. Regressors that are known have one a for all rows: their squares share a column.
    uncertain = lam.shape[1]
    widened = 1.0 + 2.0 * precision[:uncertain] * lam
    a = precision[:uncertain] / widened
    every_a = jnp.concatenate([a, jnp.broadcast_to(precision[uncertain:], mu[:, uncertain:].shape)], axis=1)
    constant = -jnp.sum(every_a * mu**2, axis=1) - 0.5 * jnp.sum(jnp.log(widened), axis=1)
    if measured is not None:
        constant += jnp.where(measured, 0.0, VANISHING)
    shared = [-jnp.ones((mu.shape[0], 1))] if uncertain < mu.shape[1] else []
    return jnp.concatenate([2.0 * every_a * mu, -a, *shared], axis=1), constant


def _point_side(points: AnyArray, known_precision: AnyArray) -> AnyArray:
    uncertain = points.shape[1] - len(known_precision)
    shared = [points[:, uncertain:] ** 2 @ known_precision[:, None]] if len(known_precision) else []
    return jnp.concatenate([points, points[:, :uncertain] ** 2, *shared], axis=1)


def _whitening(cov: AnyArray, w: AnyArray, factor: float) -> tuple[AnyArray, AnyArray]:
    # F⁻¹ for the Cholesky factor F of I + factor · W½ cov W½, and log|F|: safe for w → 0, where W⁻¹ is not. F has as
    # many rows as there are lags, but is used on all ζ: a product with its inverse takes half the time of a solve.
    root, identity = jnp.sqrt(w), jnp.eye(len(w))
    chol = jnp.linalg.cholesky(identity + factor * root[:, None] * cov * root[None, :])
    return solve_triangular(chol, identity, lower=True), jnp.sum(jnp.log(jnp.diagonal(chol)))
