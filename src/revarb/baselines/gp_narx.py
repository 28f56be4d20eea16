"""GP-NARX: a Gaussian process from measured past outputs and inputs to the next output."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from revarb.baselines.training_rows import build_complete_rows
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, as_records
from revarb.data.trajectory import Trajectory
from revarb.data.windows import regressor_sizes
from revarb.errors import check_integer, check_number, check_seed
from revarb.export.exportable import Exportable
from revarb.export.step_model import MemberParts
from revarb.fitting.arx import NarxRows
from revarb.fitting.lbfgs import Optimum, maximise_tree
from revarb.gp.collapsed import collapsed_bound
from revarb.gp.kmeans import find_centres
from revarb.gp.layer import Gaussians, Layer, Targets, inverse_softplus
from revarb.gp.posterior import Posterior, compute_posterior, exact_posterior, log_evidence
from revarb.models import model_file
from revarb.models.configuration import Lagged
from revarb.models.prediction import ChainPredictor, align_record, check_prediction, name_horizon, read_record_inputs
from revarb.models.recipe import Status
from revarb.models.summary import SummaryTable
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.runtime.progress import progress_bar
from revarb.simulation.chain import Chain
from revarb.simulation.narx_filtering import filter_narx, predict_gp_narx
from revarb.simulation.run import Method, simulate_chain, widen_path
from revarb.simulation.settling import find_row
from revarb.simulation.starts import Origin, StartChoice, resolve_start

EXACT_ROWS = 1000  # the exact GP is used up to this number of rows; its time grows with the cube
INDUCING = 200  # number of inducing inputs for more rows
JITTER = 1e-6  # on the diagonal of K_z, relative to the kernel variance
START_NOISE = 0.1  # variance, z-scored
# Smallest noise variances. A free run adds the noise at every step: with too much of it the band of an oversampled
# output grows to the width of the data and its mean to zero; with too little, rounding dominates its moments.
MIN_NOISE = 1e-4  # of the exact GP, whose inverse has 1 / noise as entries
MIN_NOISE_SPARSE = 1e-5


@dataclass(frozen=True)
class GPNARX(Lagged):
    """A Gaussian process from measured past outputs and inputs to the next output, with an RBF-ARD kernel.

    Several outputs share the kernel, and the lags of all of them are regressors; `PerOutput(GPNARX(…))` fits one model
    per output.

    Parameters
    ----------
    lags : int
        Number of past outputs among the regressors.
    input_lags : int
        Number of past inputs among the regressors.
    input_delay : int
        Age of the newest input: 1 by default, 0 for direct feedthrough, k for a dead time of k samples.
    inducing : int, optional
        Number of inducing inputs, at most one per row. By default the GP is exact up to 1000 rows and has 200 inducing
        inputs beyond that.
    iterations : int
        Largest number of iterations of L-BFGS-B.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> model = revarb.GPNARX(lags=1, input_lags=2, iterations=20).fit(revarb.Series(u, y))
    >>> path = model.simulate(u)
    >>> path.mean.shape, path.std.shape
    ((60, 1), (60, 1))
    """

    inducing: int | None = None
    iterations: int = 300

    def __post_init__(self):
        super().__post_init__()
        self._check(("iterations",) if self.inducing is None else ("inducing", "iterations"), check_integer, least=1)

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedGPNARX":
        """Maximise the evidence of the training rows, or its collapsed bound, over kernel and noise.

        Parameters
        ----------
        train : Series or list of Series
            The training records. Rows with a missing output, as target or as regressor, are left out.
        seed : int
            Seed of the k-means start of the inducing inputs; the exact GP does not use it.
        progress : bool
            Show a progress bar, or where the output is not a terminal, a line now and then.

        Returns
        -------
        FittedGPNARX

        Raises
        ------
        InputError
            If the records are too short, or too few rows are complete.
        """
        records = as_records(train)
        prep = Preprocessor.from_records(records, self.order_for(records[0].u.shape[1]))
        rows, _ = build_complete_rows(prep, records, "GP-NARX")
        seed, inducing = check_seed(seed), self.inducing
        if inducing is None and len(rows.y) > EXACT_ROWS:
            inducing = INDUCING
        zeta = None
        if inducing is not None:
            rng = np.random.default_rng(seed)
            zeta = find_centres(rows.x_hat, min(inducing, len(rows.y)), iterations=50, starts=1, rng=rng)
        found, optimum = _maximise_evidence(rows, zeta, self.iterations, progress)
        with capture_interrupts() as pressed:  # an exception here would lose the result
            posterior = jax.tree.map(np.asarray, _compute_posterior(found, rows))
        status = Status.INTERRUPTED if pressed else optimum.status  # `PerOutput` stops when it sees this
        return FittedGPNARX(prep, status, seed, Chain((posterior,), None, self.lags), optimum.bound)


@dataclass(frozen=True, eq=False, repr=False)
class FittedGPNARX(ChainPredictor, Exportable):
    """A trained GP-NARX.

    Attributes
    ----------
    chain : Chain
        The posterior as a chain of one layer without an output layer.
    evidence : float
        log p(y) of the z-scored training rows, or its bound with inducing inputs.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> model = revarb.GPNARX(lags=1, input_lags=2, iterations=20).fit(revarb.Series(u, y))
    >>> model.simulate(u)
    Trajectory(60 rows, outputs ('y',), method='moments', start='cold')
    """

    chain: Chain[Posterior]
    evidence: float

    methods = ("mean", "moments")

    def _own_tables(self) -> tuple[SummaryTable, ...]:
        [layer] = self.chain.hidden
        rows = (
            ("rows or inducing inputs", str(len(layer.zeta))),
            ("log evidence or its bound", f"{self.evidence:.2f}"),
            ("noise, z-scored", f"{float(np.sqrt(layer.sigma2)):.3g}"),
        )
        return (SummaryTable("fit", ("", ""), rows),)

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
        """Simulate freely from a cold start.

        Parameters
        ----------
        u : array-like [T, inputs] or data frame
            Inputs, raw units; None for a system without inputs.
        method : "moments", "mean" or "samples"
            "moments" has the moments of Girard (2003), with the full covariance of the lag window. See
            `FittedRGP.simulate`.
        steps : int, optional
            Number of steps of a system without inputs, instead of `u`.
        samples : int
            Number of trajectories of the method "samples".
        seed : int
            Seed of the method "samples".

        Returns
        -------
        Trajectory
            T rows, raw units.

        Raises
        ------
        InputError
            If the inputs do not fit the model.
        ComputationError
            If the simulation diverges.
        """
        origin = Origin(self.cold_start, "cold", cold=True)
        path = simulate_chain(self.preprocessor, self.chain, u, method, origin, steps, samples, seed, self.skip)
        return widen_path(path, self._widths(len(path)))

    def _widths(self, rows: int) -> Float64[np.ndarray, "T Dy"]:
        # Of the rows of a cold run.
        widths = self.settling.widths
        return widths[find_row(1 + np.arange(rows), len(widths))]

    def step_parts(self) -> tuple[MemberParts, ...]:
        """What an export of one step needs; see `Exportable`."""

        def find_origin(start: StartChoice) -> Origin:
            noise = np.full((2, len(self.output_names)), self.chain.last_layer.sigma2)
            infer = partial(filter_narx, variances=noise)
            return resolve_start(start, self.preprocessor, self.chain, self.cold_start, (), infer)

        part = MemberParts(type(self).__name__, self.preprocessor, self.chain, find_origin)
        return (part._replace(cold_widths=self._widths(len(self.settling.shares))),)

    @with_numerics
    def predict(self, record: Series, horizon: int = 1) -> Trajectory:
        """Predict every sample of a measured record from the samples up to `horizon` before it, raw units.

        Parameters
        ----------
        record : Series
            Measured inputs and outputs. Missing outputs (NaN) are replaced by the model's predictions, with their
            uncertainty.
        horizon : int
            Number of samples ahead. The first rows are predicted from a cold start.

        Returns
        -------
        Trajectory
            One row per sample of the record, with the propagated moments.

        Raises
        ------
        InputError
            If the record does not fit the model.
        ComputationError
            If the prediction diverges.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(60.0) ** 1.5)
        >>> record = revarb.Series(u, np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60]))
        >>> model = revarb.GPNARX(lags=1, input_lags=2, iterations=20).fit(record)
        >>> model.predict(record, horizon=3)
        Trajectory(60 rows, outputs ('y',), method='moments', start='3 steps ahead')
        """
        horizon = check_prediction(record, horizon)
        rows = align_record(self.preprocessor, self.cold_start, record)
        moments = predict_gp_narx(self.chain, *rows, min(horizon, len(rows.y)))
        inputs = read_record_inputs(self.preprocessor, record)
        prep = self.preprocessor
        path = prep.to_trajectory("moments", prep.skip, *moments, start=name_horizon(horizon), inputs=inputs)
        cold = np.arange(len(path)) < horizon
        return widen_path(path, np.where(cold[:, None], self._widths(len(path)), 1.0))


class _Free(NamedTuple):
    """What is maximised over: inducing inputs, or None of the exact GP, and kernel and noise, unconstrained."""

    zeta: Float[AnyArray, "M D"] | None
    raw_w: Float[AnyArray, " D"]
    raw_variance: Float[AnyArray, ""]
    raw_noise: Float[AnyArray, ""]  # of the noise above its smallest value

    def make_layer(self, rows: NarxRows) -> Layer:
        """The layer, whose inducing inputs are the rows if the GP is exact."""
        least = MIN_NOISE if self.zeta is None else MIN_NOISE_SPARSE
        sigma2 = least + jax.nn.softplus(self.raw_noise)
        zeta = rows.x_hat if self.zeta is None else self.zeta
        return Layer(zeta, self.raw_w, self.raw_variance, inverse_softplus(sigma2))


def _maximise_evidence(
    rows: NarxRows, zeta: Float64[np.ndarray, "M D"] | None, iterations: int, progress: bool
) -> tuple[_Free, Optimum]:
    # The squared distance of two z-scored rows is about 2 D: with w = 1 / D typical kernel values are neither 0 nor 1.
    size = rows.x_hat.shape[1]
    raw = (np.asarray(inverse_softplus(value)) for value in (np.full(size, 1.0 / size), 1.0, START_NOISE))
    with progress_bar("fitting GP-NARX", iterations, progress) as update:
        return maximise_tree(
            lambda free: _compute_evidence(free, rows), _Free(zeta, *raw), iterations,
            lambda step: update(step.iteration, f"evidence {step.bound:.1f}"),
        )  # fmt: skip


# Rows are arguments, not constants, so that all fits of one shape share one compiled program.


@jax.jit
@jax.value_and_grad
def _compute_evidence(free: _Free, rows: NarxRows) -> Float[AnyArray, ""]:
    # That of the exact GP, or its bound.
    layer = free.make_layer(rows)
    if free.zeta is None:
        return log_evidence(layer, rows.y)
    return collapsed_bound(layer, Gaussians(rows.x_hat, None), Targets(rows.y, 0.0), JITTER)


@jax.jit
def _compute_posterior(free: _Free, rows: NarxRows) -> Posterior:
    layer = free.make_layer(rows)
    if free.zeta is None:
        return exact_posterior(layer, rows.y)
    return compute_posterior(layer, Gaussians(rows.x_hat, None), rows.y, JITTER)


def _write_gp_narx(model: FittedGPNARX) -> tuple[dict[str, Any], Any]:
    [layer] = model.chain.hidden
    return {"inducing": len(layer.zeta), "evidence": model.evidence}, {"layer": layer}


def _read_gp_narx(header: model_file.Header, arrays: model_file.Arrays) -> FittedGPNARX:
    fields, inducing = model_file.common_fields(header), check_integer("inducing", header["inducing"], least=1)
    prep, blank = fields.preprocessor, model_file.blank_array
    outputs = len(prep.output_names)
    [size, _] = regressor_sizes(prep.order, (outputs,), len(prep.input_names))
    beta, reduction = blank(inducing, outputs), blank(inducing, inducing)
    layer = Posterior(blank(inducing, size), blank(size), blank(), blank(), beta, reduction)
    chain = Chain((model_file.fill_template({"layer": layer}, arrays)["layer"],), None, prep.order.lags)
    model_file.check_chain(chain)
    return FittedGPNARX(*fields, chain, check_number("evidence", header["evidence"]))


model_file.register_format(model_file.ModelFormat("GP-NARX", FittedGPNARX, _write_gp_narx, _read_gp_narx))
