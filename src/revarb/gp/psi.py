"""Psi statistics: expectations of the kernel under Gaussian regressors (docs/theory/derivation.md, Eqs. 10 to 16).

Training has many rows of regressors with independent entries (`psi1`, `psi2`); free simulation has one regressor with a
full covariance (`psi1_full`, `psi2_full`). Where `lam` has fewer columns (U) than `mu`, the last regressors are known
exactly. Every row has a weight: 0 where there is no target (Eq. 42), and of Student-t outputs that of Eq. 51.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from revarb.gp.layer import squared_distances
from revarb.runtime.numerics import AnyArray

VANISHING = -1e4  # an exponent whose exponential is zero


def psi1(
    mu: Float[AnyArray, "R D"],
    lam: Float[AnyArray, "R U"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
    weights: Float[AnyArray, " R"] | None = None,
) -> Float[AnyArray, "R M"]:
    """Ψ1 = ⟨k(x̂, ζ)⟩ for x̂ ~ N(mu, diag lam), row by row, times the weight of the row (Eq. 12)."""
    known_precision = 0.5 * w[lam.shape[1] :]
    return variance * _exponentials(_expand_rows(mu, lam, 0.5 * w, weights), _expand_points(zeta, known_precision))


def psi2(
    mu: Float[AnyArray, "R D"],
    lam: Float[AnyArray, "R U"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
    weights: Float[AnyArray, " R"] | None = None,
) -> Float[AnyArray, "M M"]:
    """Ψ2 = Σ_rows weight · ⟨k(ζ, x̂) k(x̂, ζ')⟩, computed once for every pair of inducing inputs (Eqs. 13, 14)."""
    middle = 0.5 * (zeta + _list_partners(zeta))
    points = _expand_points(middle.reshape(-1, zeta.shape[1]), w[lam.shape[1] :])
    pairs = sum_of_exponentials(*_expand_rows(mu, lam, w, weights), points).reshape(middle.shape[:2])
    return variance**2 * jnp.exp(pair_exponents(zeta, w)) * _fill_matrix(pairs)


def _list_partners(zeta: Float[AnyArray, "M D"]) -> Float[AnyArray, "K M D"]:
    # ζ_{m+k} for k = 0 … ⌊M/2⌋, indices modulo M: with ζ_m every pair once, and for even M those of the last k twice.
    # Tiles, each cut one row later than the one before, avoid a gather, whose derivative would be a slow scatter.
    M, D = zeta.shape
    shifts = M // 2 + 1
    tiles = jnp.tile(zeta, (shifts + 1, 1))[: shifts * (M + 1)]
    return tiles.reshape(shifts, M + 1, D)[:, :M]


def _fill_matrix(pairs: Float[AnyArray, "K M"]) -> Float[AnyArray, "M M"]:
    # From values for (m, m + k), in the order of `_list_partners`, to the symmetric matrix: rows are cut one column
    # later each, as above.
    shifts, M = pairs.shape
    weights = np.ones((shifts, 1))
    weights[0] = 0.5  # the diagonal, and for even M the last shift, are added twice below
    weights[-1] *= 0.5 if M % 2 == 0 and M > 1 else 1.0
    rows = jnp.pad((weights * pairs).T, ((0, 0), (0, 2 * M - shifts)))
    slanted = rows.reshape(-1)[: M * (2 * M - 1)].reshape(M, 2 * M - 1)
    upper = slanted[:, :M] + jnp.pad(slanted[:, M:], ((0, 0), (0, 1)))
    return upper + upper.T


@jax.custom_vjp
def sum_of_exponentials(
    a: Float[AnyArray, "R K"], c: Float[AnyArray, " R"], b: Float[AnyArray, "P K"]
) -> Float[AnyArray, " P"]:
    """Σ_r exp(a_r · b_p + c_r), in blocks; a fit spends nearly all of its time here (Eq. 14).

    Blocks of rows and points fit in the processor's cache. The derivative is written by hand and computes the
    exponentials again instead of storing R × P of them: one product forward, three backward, memory for one block.
    """
    return _sum_forward(a, c, b)[0]


def _sum_forward(a, c, b):
    blocks = _cut_blocks(a, c, b)

    def add(total, rows):
        sums = jax.lax.map(lambda points: jnp.sum(_exponentials(rows, points), axis=0), blocks.points)
        return total + sums, None

    total = jax.lax.scan(add, jnp.zeros(blocks.points.shape[:2]), (blocks.rows, blocks.constants))[0]
    return total.reshape(-1)[: b.shape[0]], (a, c, b)


def _sum_backward(stored, gradient):
    a, c, b = stored
    blocks = _cut_blocks(a, c, b)
    slopes = jnp.pad(gradient, (0, blocks.points.shape[0] * blocks.points.shape[1] - b.shape[0]))
    slopes = slopes.reshape(blocks.points.shape[:2])

    def row_block(b_part, rows):
        def point_block(a_part, now):
            points, slope = now
            exponentials = _exponentials(rows[:2], points)
            block_part = (exponentials @ (slope[:, None] * points), exponentials @ slope)
            return jax.tree.map(jnp.add, a_part, block_part), rows[2] @ exponentials

        zeros = jax.tree.map(jnp.zeros_like, rows[:2])
        a_part, b_share = jax.lax.scan(point_block, zeros, (blocks.points, slopes))
        return b_part + b_share, a_part

    start = jnp.zeros((blocks.points.shape[0], a.shape[1], blocks.points.shape[1]))
    transposed = jnp.swapaxes(blocks.rows, 1, 2)  # once, not in every block
    b_part, (a_part, c_part) = jax.lax.scan(row_block, start, (blocks.rows, blocks.constants, transposed))
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
    """Rows and points cut into blocks of equal size."""

    rows: Float[AnyArray, "X B K"]
    constants: Float[AnyArray, "X B"]
    points: Float[AnyArray, "Y C K"]


class BlockSize(NamedTuple):
    """The largest number of rows, and of exponentials, in one block."""

    rows: int
    values: int


BLOCK_SIZES = {"cpu": BlockSize(1024, 2**19)}  # 4 MiB: fits in a shared cache, and is enough work for several threads
ACCELERATOR_BLOCK_SIZE = BlockSize(8192, 2**24)  # 128 MiB: enough work for thousands of cores


def _cut_blocks(a: AnyArray, c: AnyArray, b: AnyArray) -> _Blocks:
    # Padded with rows whose exponentials are zero, and with points that the caller cuts off again.
    largest = BLOCK_SIZES.get(jax.default_backend(), ACCELERATOR_BLOCK_SIZE)
    row_blocks = -(-a.shape[0] // largest.rows)
    rows = -(-a.shape[0] // row_blocks)
    point_blocks = -(-b.shape[0] * rows // largest.values)
    points = -(-b.shape[0] // point_blocks)
    extra_rows, extra_points = row_blocks * rows - a.shape[0], point_blocks * points - b.shape[0]
    return _Blocks(
        jnp.pad(a, ((0, extra_rows), (0, 0))).reshape(row_blocks, rows, -1),
        jnp.pad(c, (0, extra_rows), constant_values=VANISHING).reshape(row_blocks, rows),
        jnp.pad(b, ((0, extra_points), (0, 0))).reshape(point_blocks, points, -1),
    )


def psi1_full(
    mu: Float[AnyArray, " D"],
    cov: Float[AnyArray, "D D"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
) -> tuple[Float[AnyArray, " M"], Float[AnyArray, "D M"]]:
    """Ψ1 for one x̂ ~ N(mu, cov), and (W⁻¹ + cov)⁻¹ (ζ − mu), the gradient of log Ψ1 with respect to mu (Eq. 15)."""
    inverse, half_log_det = _whiten(cov, w, 1.0)
    white = inverse @ (jnp.sqrt(w)[:, None] * (zeta - mu).T)
    statistic = variance * jnp.exp(-0.5 * jnp.sum(white**2, axis=0) - half_log_det)
    slopes = jnp.sqrt(w)[:, None] * (inverse.T @ white)
    return statistic, slopes


def psi2_full(
    mu: Float[AnyArray, " D"],
    cov: Float[AnyArray, "D D"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
    pair_exponent: Float[AnyArray, "M M"],
) -> Float[AnyArray, "M M"]:
    """Ψ2 for one x̂ ~ N(mu, cov) (Eq. 16); `pair_exponent` = `pair_exponents(zeta, w)` is the same at every step."""
    inverse, half_log_det = _whiten(cov, w, 2.0)
    white = inverse @ (jnp.sqrt(w)[:, None] * (zeta - mu).T)
    norms = jnp.sum(white**2, axis=0)
    # |v_m + v_m'|² / 4 is the squared distance of mu from the middle of the pair
    middle = 0.25 * (norms[:, None] + norms[None, :] + 2.0 * white.T @ white)
    return variance**2 * jnp.exp(pair_exponent - middle - half_log_det)


def pair_exponents(zeta: Float[AnyArray, "M D"], w: Float[AnyArray, " D"]) -> Float[AnyArray, "M M"]:
    """−¼ Σ_d w_d (ζ_d − ζ'_d)²: the part of log Ψ2 that does not depend on x̂."""
    return -0.25 * squared_distances(zeta, zeta, w)


def _expand_rows(
    mu: AnyArray, lam: AnyArray, precision: AnyArray, weights: AnyArray | None
) -> tuple[AnyArray, AnyArray]:
    # exp(−Σ p (x − ζ)²) under x ~ N(mu, lam) is Π (1 + 2pλ)^-½ exp(−a (mu − ζ)²) with a = p / (1 + 2pλ).
    # The square is expanded: the exponents of all rows and points are one matrix product with `_expand_points`, plus a
    # constant for every row. Known regressors have the same a in all rows, so their squares share a column (Eq. 14).
    uncertain = lam.shape[1]
    widened = 1.0 + 2.0 * precision[:uncertain] * lam
    a = precision[:uncertain] / widened
    every_a = jnp.concatenate([a, jnp.broadcast_to(precision[uncertain:], mu[:, uncertain:].shape)], axis=1)
    constant = -jnp.sum(every_a * mu**2, axis=1) - 0.5 * jnp.sum(jnp.log(widened), axis=1)
    if weights is not None:
        counted = weights > 0.0
        constant += jnp.where(counted, jnp.log(jnp.where(counted, weights, 1.0)), VANISHING)
    shared = [-jnp.ones((mu.shape[0], 1))] if uncertain < mu.shape[1] else []
    return jnp.concatenate([2.0 * every_a * mu, -a, *shared], axis=1), constant


def _expand_points(points: AnyArray, known_precision: AnyArray) -> AnyArray:
    uncertain = points.shape[1] - len(known_precision)
    shared = [points[:, uncertain:] ** 2 @ known_precision[:, None]] if len(known_precision) else []
    return jnp.concatenate([points, points[:, :uncertain] ** 2, *shared], axis=1)


def _whiten(cov: AnyArray, w: AnyArray, factor: float) -> tuple[AnyArray, AnyArray]:
    # F⁻¹ for the Cholesky factor F of I + factor · W½ cov W½, and log|F|, half the log-determinant of that matrix. This
    # is stable for w → 0, where W⁻¹ does not exist. F has one row per regressor but is applied to all ζ: a product with
    # its inverse takes half the time of a solve.
    root, identity = jnp.sqrt(w), jnp.eye(len(w))
    chol = jnp.linalg.cholesky(identity + factor * root[:, None] * cov * root[None, :])
    return solve_triangular(chol, identity, lower=True), jnp.sum(jnp.log(jnp.diagonal(chol)))
