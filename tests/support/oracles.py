"""Slow reference computations by loops, quadrature and dense matrices."""

import itertools

import numpy as np


def rbf(a, b, w, variance):
    return variance * np.array([[np.exp(-0.5 * np.sum(w * (x - z) ** 2)) for z in b] for x in a])


def gaussian_expectation(function, mean, cov, points=50):
    """E[function(x)] for x ~ N(mean, cov) by a product Gauss–Hermite rule; `function` maps [D] to an array."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    weights = weights / weights.sum()
    root = np.linalg.cholesky(cov + 1e-300 * np.eye(len(mean)))
    total = 0.0
    for choice in itertools.product(range(points), repeat=len(mean)):
        total = total + np.prod(weights[list(choice)]) * function(mean + root @ nodes[list(choice)])
    return total


def expect_rows(function, mu, lam):
    """E[function(x)] of every row; `lam` has its variances or its covariance."""
    covs = [np.diag(v) if np.ndim(v) == 1 else v for v in lam]
    return np.array([gaussian_expectation(function, m, cov) for m, cov in zip(mu, covs, strict=True)])


def psi1(mu, lam, zeta, w, variance):
    return expect_rows(lambda x: rbf(x[None], zeta, w, variance)[0], mu, lam)


def psi2(mu, lam, zeta, w, variance):
    def outer(x):
        k = rbf(x[None], zeta, w, variance)
        return k.T @ k

    return expect_rows(outer, mu, lam).sum(axis=0)


def log_gaussian(y, cov):
    """log N(y | 0, cov), summed over the columns of y."""
    _, logdet = np.linalg.slogdet(2.0 * np.pi * cov)
    return sum(-0.5 * logdet - 0.5 * column @ np.linalg.solve(cov, column) for column in y.T)


def layer_windows(x, u, L, L_u, delay, first):
    """x̂ of the layers 1 … H+1 of one record, sample by sample. `x` covers the whole record here."""
    H, N = len(x), len(x[0])
    tables = [[] for _ in range(H + 1)]
    for i in range(first, N):
        for h in range(H):
            window = [x[h][i - age] for age in range(1, L + 1)]
            if h == 0:
                window += [u[i - delay - age] for age in range(L_u)]
            else:
                window += [x[h - 1][i - age] for age in range(L)]
            tables[h].append(np.concatenate(window))
        tables[H].append(np.concatenate([x[H - 1][i - age] for age in range(L)]))
    return [np.array(table) for table in tables]


def finite_difference(function, vector, index, step=1e-5):
    """Central difference of `function` along one coordinate, fourth order."""

    def at(offset):
        moved = vector.copy()
        moved[index] += offset * step
        return function(moved)

    return (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * step)
