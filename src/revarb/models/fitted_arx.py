"""A trained ARX model: simulation, prediction, summary, and its file format."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from jaxtyping import Complex128, Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import current_windows, regressor_sizes
from revarb.errors import InputError, check_integer
from revarb.gp.layer import Linear
from revarb.models.model_file import (
    MAX_ORDER,
    Arrays,
    Header,
    ModelFormat,
    blank_array,
    check_covariance,
    common_fields,
    fill_template,
    register_format,
)
from revarb.models.recipe import Status
from revarb.models.residual_band import FittedNarx, ResidualMethod, check_method, check_residual_std
from revarb.models.rgp import refit_linear
from revarb.models.summary import SummaryTable
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import StartState
from revarb.simulation.narx_filtering import filter_narx
from revarb.simulation.starts import StartChoice, begin_measured, infer_state, make_start

_NO_ROWS: Any = None  # becomes an array without rows, whose columns are the outputs


@dataclass(frozen=True, eq=False, repr=False)
class FittedARX(FittedNarx[Linear]):
    """A trained ARX model of z-scored values; `order` is the chosen one.

    Attributes
    ----------
    residual_std : array [outputs]
        Standard deviation of the free run's held-out errors, z-scored: the band of long runs. That of a cold run also
        has what its start adds.
    model : Linear
        Coefficients [regressors, outputs] and offset, z-scored.
    final_states : tuple of StartState
        The state at the end of each training record, for `simulate(u, start=model.final_states[0])`. Empty where it
        is not known: files written before version 0.2 do not have it.
    horizon_std : array [K, outputs]
        Standard deviation of the held-out errors 1 … K steps after a measured start, z-scored; it goes over into
        `residual_std` in as many steps more. Without rows the band is that of `residual_std` at every step.
    output_cov : array [states, states] or None
        Covariance of the windows of past outputs over the training records, z-scored: the state before a cold run.
        Where it is not known, in files written before version 0.3, the outputs are at an unknown level.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> model = revarb.ARX(lags=2, input_lags=2).fit(revarb.Series(u, y))
    >>> model
    FittedARX(inputs ('u',), outputs ('y',), status='converged')
    >>> model.simulate(u)
    Trajectory(60 rows, outputs ('y',), method='residuals', start='cold')
    """

    final_states: tuple[StartState, ...] = ()
    horizon_std: Float64[np.ndarray, "K Dy"] = _NO_ROWS
    output_cov: Float64[np.ndarray, "S S"] | None = None

    def __post_init__(self):
        std, outputs = self.horizon_std, len(self.residual_std)
        std = np.empty((0, outputs)) if std is None else np.asarray(std, dtype=np.float64)
        if std.ndim != 2 or std.shape[1] != outputs or not (np.isfinite(std) & (std > 0.0)).all():
            raise InputError(
                f"horizon_std must have a row of {outputs} positive number(s) per step, received shape {std.shape}"
            )
        object.__setattr__(self, "horizon_std", std)

    @classmethod
    @with_numerics
    def from_records(
        cls,
        records: Sequence[Series],
        preprocessor: Preprocessor,
        model: Linear,
        residual_std: Float64[np.ndarray, " Dy"],
        seed: int = 0,
    ) -> "FittedARX":
        """The trained model of these records, which remembers how they ended.

        Parameters
        ----------
        records : list of Series
            The training records.
        preprocessor : Preprocessor
            Names, scaling and order.
        model : Linear
            Coefficients and offset, z-scored.
        residual_std : array [outputs]
            Standard deviation of the held-out errors, z-scored.
        seed : int
            Seed of the training; nothing depends on it.

        Returns
        -------
        FittedARX
            Without `final_states` where those diverge: after a gap at the end of a record, by an unstable model.
        """
        cov = _measure_windows(preprocessor, records)
        fitted = cls(preprocessor, Status.CONVERGED, seed, residual_std, model, output_cov=cov)
        filter_record = partial(filter_narx, variances=np.tile(residual_std**2, (2, 1)))
        states = (infer_state(each, preprocessor, fitted.chain, fitted.cold_start, filter_record) for each in records)
        # Model files have no covariance of them.
        states = tuple(StartState(state.mean, np.zeros_like(state.cov), state.past_u) for state in states)
        finite = all(np.isfinite(state.mean).all() for state in states)
        return replace(fitted, final_states=states) if finite else fitted

    @with_numerics
    def simulate(
        self,
        u: Any = None,
        method: ResidualMethod = "residuals",
        *,
        start: StartChoice = "cold",
        steps: int | None = None,
    ) -> Trajectory:
        """Free simulation on new inputs, raw units in and out; the band is that of the held-out errors.

        Parameters
        ----------
        u : array-like [T, inputs], data frame or Series
            Inputs, or a record with these inputs; None for a system without inputs.
        method : "residuals"
            The only method of this model.
        start : str, Window or StartState
            "cold": nothing is known. Past outputs are distributed as over the training records (`output_cov`), past
            inputs are at their training mean.
            "continue": the end of the (last) training record; or one of `final_states`.
            `Window(u, y)`: after these measured samples. Missing outputs are predicted, and stay uncertain.
        steps : int, optional
            Number of steps for a system without inputs.

        Returns
        -------
        Trajectory
            One row per row of `u`. Row k after a measured start has the band of `horizon_std[k - 1]`, later rows and
            cold runs that of `residual_std`, and what is not known of the start adds to it.

        Raises
        ------
        InputError
            If the inputs or the start do not fit the model.
        ComputationError
            If the simulation diverges.

        Examples
        --------
        A cold start, and the continuation of the training record:

        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(90.0) ** 1.5)
        >>> y = np.convolve(u, 0.8 ** np.arange(30))[:90]
        >>> model = revarb.ARX(lags=2, input_lags=2, input_delay=0).fit(revarb.Series(u[:60], y[:60]))
        >>> model.simulate(u[60:])
        Trajectory(30 rows, outputs ('y',), method='residuals', start='cold')
        >>> path = model.simulate(u[60:], start="continue")
        >>> bool(np.allclose(path.mean[:, 0], y[60:], atol=0.01))
        True
        """
        check_method(method)
        u, start = begin_measured(self.preprocessor, u, start)
        origin = self.resolve_start(start)
        return self._run_from(origin, self.preprocessor.read_inputs(u, steps))

    def refit(self, records: Series | Sequence[Series], progress: bool = False) -> "FittedARX":
        """Fit the same order again by least squares. The scaling, and with it the band, stay as they were.

        The new model is fitted to the given records only: pass old and new ones together.

        Parameters
        ----------
        records : Series or list of Series
            All records to fit, with the columns of the model. Rows with a missing output, as target or as regressor,
            are left out.
        progress : bool
            Not used.

        Returns
        -------
        FittedARX
            A new model; this one is not changed.

        Raises
        ------
        InputError
            If the records do not fit the model, or no row is complete.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(90.0) ** 1.5)
        >>> record = revarb.Series(u, np.convolve(u, 0.8 ** np.arange(30))[:90])
        >>> model = revarb.ARX(lags=1, input_lags=1, input_delay=0).fit(record[:60])
        >>> better = model.refit(record)
        >>> better.order == model.order, bool(better.residual_std == model.residual_std)
        (True, True)
        """
        return refit_linear(self, records)

    @property
    def poles(self) -> Complex128[np.ndarray, " S"]:
        """Poles of the model, the largest magnitude first: below 1 the model is stable."""
        outputs = len(self.output_names)
        companion = np.eye(self.order.lags * outputs, k=-outputs)  # the window of past outputs moves by one sample
        companion[:outputs] = np.asarray(self.model.coefficients)[: len(companion)].T
        poles = np.linalg.eigvals(companion).astype(np.complex128)
        return poles[np.argsort(-np.abs(poles), kind="stable")]

    def _own_tables(self) -> tuple[SummaryTable, ...]:
        largest = float(np.abs(self.poles[0]))
        rows = (
            ("coefficients, offsets", f"{self.model.coefficients.size}, {self.model.offset.size}"),
            ("largest pole magnitude", f"{largest:.4g} ({'stable' if largest < 1.0 else 'unstable'})"),
        )
        return (SummaryTable("linear model", ("", ""), rows), *super()._own_tables())

    @cached_property
    def cold_start(self) -> StartState:
        """The state before a cold run: past outputs as they were over the training records."""
        cov = self.output_cov
        return super().cold_start if cov is None else make_start(self.preprocessor, np.zeros(len(cov)), cov)

    def band_std(self, step: int, cold: bool) -> Float64[np.ndarray, " Dy"]:
        """The band of a step after the last measured output, or of a cold run, without its start, z-scored.

        Parameters
        ----------
        step : int
            Number of steps since the last measured output.
        cold : bool
            Whether none was measured.

        Returns
        -------
        array [outputs]
        """
        return np.sqrt(self._variances(np.array([step]), np.array([cold]))[0])

    @property
    def _final_states(self) -> tuple[StartState, ...]:
        return self.final_states

    @property
    def _stds(self) -> Float64[np.ndarray, "K1 Dy"]:
        known, steps = len(self.horizon_std), np.arange(1.0, len(self.horizon_std) + 1.0)[:, None]
        if not known:
            return self.residual_std[None]
        after = self.horizon_std[-1] + (self.residual_std - self.horizon_std[-1]) * steps / known
        return np.concatenate([self.horizon_std, after])


def _measure_windows(prep: Preprocessor, records: Sequence[Series]) -> Float64[np.ndarray, "S S"] | None:
    # Of complete windows, about the training mean.
    windows = np.concatenate([current_windows(block.y, prep.order.lags) for block in prep.scale_records(records)])
    complete = windows[np.isfinite(windows).all(axis=1)]
    cov = complete.T @ complete / max(len(complete), 1)
    return 0.5 * (cov + cov.T) if len(complete) else None


def _write_arx(model: FittedARX) -> tuple[dict[str, Any], dict[str, Any]]:
    horizons, ends, cov = len(model.horizon_std), model.final_states, model.output_cov
    arrays = {"residual_std": model.residual_std, "model": model.model}
    if horizons:
        arrays["horizon_std"] = model.horizon_std
    if ends:  # covariances are zero
        arrays["final_means"] = np.stack([end.mean for end in ends])
        arrays["final_inputs"] = np.stack([end.past_u for end in ends])
    if cov is not None:
        arrays["output_cov"] = cov
    return {"horizons": horizons, "final_states": len(ends), "output_cov": cov is not None}, arrays


def _read_arx(header: Header, arrays: Arrays) -> FittedARX:
    fields, blank = common_fields(header), blank_array
    prep = fields.preprocessor
    # The first files have neither, and those before version 0.3 no covariance.
    horizons, ends = (check_integer(name, header.get(name, 0), 0, MAX_ORDER) for name in ("horizons", "final_states"))
    inputs, outputs = len(prep.input_names), len(prep.output_names)
    [regressors, states] = regressor_sizes(prep.order, (outputs,), inputs)
    template = {"residual_std": blank(outputs), "model": Linear(blank(regressors, outputs), blank(outputs))}
    if horizons:
        template["horizon_std"] = blank(horizons, outputs)
    if ends:
        template |= {"final_means": blank(ends, states), "final_inputs": blank(ends, prep.order.reach, inputs)}
    if header.get("output_cov") is True:
        template["output_cov"] = blank(states, states)
    trained = fill_template(template, arrays)
    cov = trained.get("output_cov")
    if cov is not None:
        check_covariance("its window of outputs", cov)
    pairs = zip(trained["final_means"], trained["final_inputs"], strict=True) if ends else ()
    final_states = tuple(StartState(mean, blank(states, states), past_u) for mean, past_u in pairs)
    std = check_residual_std(trained["residual_std"])
    horizon_std = trained.get("horizon_std", np.empty((0, outputs)))
    return FittedARX(*fields, std, trained["model"], final_states, horizon_std, cov)


register_format(ModelFormat("ARX", FittedARX, _write_arx, _read_arx))
