"""GP-NARX: a Gaussian process from measured past outputs and inputs to the next output."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from revarb.baselines.narx import NarxRows, narx_rows, require_complete
from revarb.config.lagged import Lagged
from revarb.data.dataframes import row_index
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.errors import check_integer, check_seed
from revarb.gp.collapsed import collapsed_bound
from revarb.gp.exact import exact_posterior, log_evidence
from revarb.gp.kmeans import find_centres
from revarb.gp.layer import Gaussians, Layer, Targets, inverse_softplus
from revarb.gp.posterior import Posterior, compute_posterior
from revarb.models.base import Fitted
from revarb.optim.lbfgs import Optimum, maximise_tree
from revarb.optim.status import Status, Step
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.runtime.progress import progress_bar
from revarb.simulation.chain import Chain
from revarb.simulation.run import Method, simulate_chain
from revarb.simulation.starts import make_cold_origin

EXACT_ROWS = 1000


INDUCING = 200


JITTER = 1e-6


START_NOISE = 0.1


MIN_NOISE = 1e-4  # a hundredth of the output's spread; below it the moments of the free run drown in rounding


@dataclass(frozen=True)
class GPNARX(Lagged):
    """A GP with RBF-ARD kernel on measured lags, its kernel and noise by evidence (L-BFGS-B).

    Several outputs share the kernel, and each sees the lags of all; `PerOutput(GPNARX(…))` fits separate models.

    inducing     None: exact up to 1000 rows, and 200 inducing inputs beyond that; a number: so many, or all rows
    iterations   at most so many of the optimiser
    """

    inducing: int | None = None
    iterations: int = 300

    def __post_init__(self):
        super().__post_init__()
        if self.inducing is not None:
            object.__setattr__(self, "inducing", check_integer("inducing", self.inducing, least=1))
        object.__setattr__(self, "iterations", check_integer("iterations", self.iterations, least=1))

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedGPNARX":
        """Maximise the evidence, or its collapsed bound. `seed` only moves the k-means start of inducing inputs."""
        records = require_complete(train, "GP-NARX")
        prep = Preprocessor.from_records(records, self.order_for(records[0].u.shape[1]))
        rows = narx_rows(prep, records)
        inducing = INDUCING if self.inducing is None and len(rows.y) > EXACT_ROWS else self.inducing
        if inducing is None:
            layer, optimum = _fit_exact(rows, self.iterations, progress)
            posterior_of = _exact_posterior
        else:
            rng = np.random.default_rng(check_seed(seed))
            layer, optimum = _fit_sparse(rows, min(inducing, len(rows.y)), self.iterations, rng, progress)
            posterior_of = _sparse_posterior
        with capture_interrupts() as pressed:  # what was found is not lost in the last second
            known = jax.tree.map(np.asarray, posterior_of(layer, rows))
        status = Status.INTERRUPTED if pressed else optimum.status  # who fits several models must hear of it
        return FittedGPNARX(prep, status, check_seed(seed), Chain((known,), None, self.lags), optimum.bound)


@dataclass(frozen=True, eq=False, repr=False)
class FittedGPNARX(Fitted):
    """A trained GP-NARX. `evidence` is log p(y) of the training rows, z-scored, or its bound with inducing inputs."""

    chain: Chain[Posterior]
    evidence: float

    methods = ("mean", "moments")

    @with_numerics
    def simulate(
        self,
        u: ArrayLike | None = None,
        method: Method = "moments",
        *,
        steps: int | None = None,
        samples: int = 200,
        seed: int = 0,
    ) -> Trajectory:
        """Free simulation, cold start, by the methods of `FittedRGP.simulate`.

        The moments are Girard's (2003), with the full covariance of the lag window.
        """
        origin = make_cold_origin(self.preprocessor, self.chain)
        path = simulate_chain(self.preprocessor, self.chain, u, method, origin, steps, samples, seed)
        return replace(path, index=row_index(u))


def _start(x_hat: np.ndarray, zeta: np.ndarray) -> Layer:
    # Two z-scored rows are about 2 D apart in square, so 1/D makes them neither strangers nor twins.
    w = np.full(x_hat.shape[1], 1.0 / x_hat.shape[1])
    return Layer(zeta, *(np.asarray(inverse_softplus(value)) for value in (w, 1.0, START_NOISE)))


def _fit_exact(rows: NarxRows, iterations: int, progress: bool) -> tuple[Layer, Optimum]:
    start = _start(rows.x_hat, rows.x_hat)
    kernel = (start.raw_w, start.raw_variance, start.raw_sigma2)
    with _bar(iterations, progress) as report:
        kernel, optimum = maximise_tree(lambda kernel: _evidence(kernel, rows), kernel, iterations, report)
    return _with_noise_floor(Layer(rows.x_hat, *kernel)), optimum


def _fit_sparse(
    rows: NarxRows, inducing: int, iterations: int, rng: np.random.Generator, progress: bool
) -> tuple[Layer, Optimum]:
    start = _start(rows.x_hat, find_centres(rows.x_hat, inducing, iterations=50, starts=1, rng=rng))
    with _bar(iterations, progress) as report:
        layer, optimum = maximise_tree(lambda layer: _bound(layer, rows), start, iterations, report)
    return _with_noise_floor(layer), optimum


# Rows are arguments, not constants: many fits of one shape compile once.


@jax.jit
@jax.value_and_grad
def _evidence(kernel: tuple[AnyArray, AnyArray, AnyArray], rows: NarxRows) -> Float[AnyArray, ""]:
    return log_evidence(_with_noise_floor(Layer(rows.x_hat, *kernel)), rows.y)


@jax.jit
@jax.value_and_grad
def _bound(layer: Layer, rows: NarxRows) -> Float[AnyArray, ""]:
    return collapsed_bound(_with_noise_floor(layer), Gaussians(rows.x_hat, None), Targets(rows.y, 0.0), JITTER)


@jax.jit
def _exact_posterior(layer: Layer, rows: NarxRows) -> Posterior:
    return exact_posterior(layer, rows.y)


@jax.jit
def _sparse_posterior(layer: Layer, rows: NarxRows) -> Posterior:
    return compute_posterior(layer, Gaussians(rows.x_hat, None), rows.y, JITTER)


def _with_noise_floor(layer: Layer) -> Layer:
    # The parameter counts from the least noise on.
    return Layer(layer.zeta, layer.raw_w, layer.raw_variance, inverse_softplus(MIN_NOISE + layer.sigma2))


@contextmanager
def _bar(iterations: int, progress: bool) -> Iterator[Callable[[Step], None]]:
    with progress_bar("fitting GP-NARX", iterations, progress) as update:
        yield lambda step: update(step.iteration, f"evidence {step.bound:.1f}")
