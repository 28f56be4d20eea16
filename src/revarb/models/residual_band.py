"""Trained models with a mean, and a band from their free-run errors on held-out blocks of the training records."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, Literal

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from revarb.data.preprocessor import RunInputs
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import input_windows_after
from revarb.errors import InputError
from revarb.export.exportable import Exportable
from revarb.export.step_model import MemberParts
from revarb.models.base import Fitted
from revarb.models.prediction import (
    ChainPredictor,
    align_record,
    check_prediction,
    count_steps_ahead,
    name_horizon,
    read_record_inputs,
)
from revarb.models.summary import SummaryTable
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.simulation.chain import AnyLayer, Chain, StartState
from revarb.simulation.extrapolation import KnownRange, find_known_range
from revarb.simulation.mean import run_mean, run_mean_spread
from revarb.simulation.narx_filtering import filter_narx, predict_narx
from revarb.simulation.run import add_doubt, limit_skip, widen_beyond
from revarb.simulation.settling import Settling, find_row, measure_narx_settling
from revarb.simulation.starts import Origin, StartChoice, resolve_start

ResidualMethod = Literal["residuals"]


@dataclass(frozen=True, eq=False, repr=False)
class FittedByResiduals(Fitted):
    """A trained model whose `std` is that of its free-run errors on held-out blocks of the training records.

    Attributes
    ----------
    residual_std : array [outputs]
        That standard deviation, z-scored.
    """

    residual_std: Float64[np.ndarray, " Dy"]

    methods = ("residuals",)

    @with_numerics
    def simulate(self, u: Any = None, method: ResidualMethod = "residuals", *, steps: int | None = None) -> Trajectory:
        """Simulate freely from a cold start; the band is that of the held-out errors, the same at every step.

        Parameters
        ----------
        u : array-like [T, inputs] or data frame
            Inputs, raw units; None for a system without inputs.
        method : "residuals"
            The only method of this model.
        steps : int, optional
            Number of steps of a system without inputs, instead of `u`.

        Returns
        -------
        Trajectory
            T rows, raw units.

        Raises
        ------
        InputError
            If the inputs do not fit the model.
        """
        check_method(method)
        return self._run_cold(self.preprocessor.read_inputs(u, steps))

    def _run_cold(self, inputs: RunInputs) -> Trajectory:
        mean = np.asarray(self.run_mean(inputs.z))
        variance = np.broadcast_to(self.residual_std**2, mean.shape)
        return self.preprocessor.to_trajectory("residuals", self.skip, mean, variance, inputs=inputs)

    def _own_tables(self) -> tuple[SummaryTable, ...]:
        stds = self.scaling.raw_std(self.residual_std)
        rows = [(name, f"{std:.3g}") for name, std in zip(self.output_names, stds, strict=True)]
        return (SummaryTable("held-out residuals", ("output", "standard deviation"), rows),)

    @abstractmethod
    def run_mean(self, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
        """Simulate the mean freely from a cold start.

        Parameters
        ----------
        z : array [T, inputs]
            Inputs, z-scored.

        Returns
        -------
        array [T, outputs]
            Outputs, z-scored.
        """


@dataclass(frozen=True, eq=False, repr=False)
class FittedNarx(FittedByResiduals, ChainPredictor, Exportable, Generic[AnyLayer]):
    """A trained NARX model with a mean only: its states are the outputs."""

    model: AnyLayer

    @cached_property
    def chain(self) -> Chain[AnyLayer]:
        """The regression as a chain of one layer, whose states are the outputs."""
        return Chain((self.model,), None, self.order.lags)

    def run_mean(self, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
        """Simulate the model on its own past outputs.

        Parameters
        ----------
        z : array [T, inputs]
            Inputs, z-scored.

        Returns
        -------
        array [T, outputs]
            Outputs, z-scored.
        """
        return run_mean(self.chain, self.cold_start, input_windows_after(self.cold_start.past_u, z, self.order))

    def _run_cold(self, inputs: RunInputs) -> Trajectory:
        return self._run_from(Origin(self.cold_start, "cold", cold=True), inputs)

    @cached_property
    @with_numerics
    def settling(self) -> Settling:
        """How a cold run settles."""
        return measure_narx_settling(self.chain, self.cold_start, self.order, self.residual_std)

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
            One row per sample of the record. The band is that of the held-out errors of free runs, unless the model
            knows those so many steps after a measured start (`FittedARX.horizon_std`): `horizon`, and in a gap more.

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
        >>> record = revarb.Series(u, np.convolve(u, 0.8 ** np.arange(30))[:60])
        >>> revarb.ARX(lags=2, input_lags=2).fit(record).predict(record, horizon=3)
        Trajectory(60 rows, outputs ('y',), method='residuals', start='3 steps ahead')
        """
        horizon = check_prediction(record, horizon)
        prep, rows = self.preprocessor, align_record(self.preprocessor, self.cold_start, record)
        ahead = min(horizon, len(rows.y))
        moments, beyond = predict_narx(self.chain, *rows, ahead, self.known_range, self.step_variances)
        first = run_mean_spread(self.chain, rows.start, rows.u_bar[:ahead])[1]
        variance = self._variances(*count_steps_ahead(rows.y, horizon)) + np.concatenate([first, moments.variance])
        inputs = read_record_inputs(prep, record)
        path = prep.to_trajectory(
            "residuals", prep.skip, moments.mean, variance, start=name_horizon(horizon), inputs=inputs
        )
        return add_doubt(path, prep, beyond)

    def _simulate_from(self, states: Sequence[StartState], u: Float64[np.ndarray, "T Du"]) -> Trajectory:
        [state] = states
        return self._run_from(Origin(state, "equilibrium"), self.preprocessor.read_inputs(u, None))

    def _run_from(self, origin: Origin, inputs: RunInputs) -> Trajectory:
        u_bar = input_windows_after(np.asarray(origin.state.past_u), inputs.z, self.order)
        skip = limit_skip(self.skip - origin.age, len(u_bar)) if origin.cold else 0
        mean, spread = run_mean_spread(self.chain, origin.state, u_bar)
        variance = self._variances(origin.age + 1 + np.arange(len(u_bar)), np.full(len(u_bar), origin.cold)) + spread
        prep = self.preprocessor
        path = prep.to_trajectory("residuals", skip, mean, variance, start=origin.name, inputs=inputs)
        return widen_beyond(path, prep, self.chain, origin, self.known_range)

    @cached_property
    def known_range(self) -> KnownRange:
        """The ranges of outputs and inputs over the training records; beyond them bands become wider."""
        prep, known = self.preprocessor, self.preprocessor.output_range
        ends = np.full((2, len(prep.output_names)), np.inf) * [[-1.0], [1.0]]
        return find_known_range(prep, [ends if known is None else prep.scaling.outputs(np.stack(known))])

    def resolve_start(self, start: StartChoice) -> Origin:
        """The state that a run starts from; see `FittedRGP.resolve_start`.

        Parameters
        ----------
        start : str, Window or StartState
            "cold", a measured window, or a state.

        Returns
        -------
        Origin
            `state`, the state before the first step, and `name`, the name that `Trajectory.start` has.
        """
        infer = partial(filter_narx, variances=self.step_variances)
        return resolve_start(start, self.preprocessor, self.chain, self.cold_start, self._final_states, infer)

    def step_parts(self) -> tuple[MemberParts, ...]:
        """What an export of one step needs; see `Exportable`."""
        std, cold_std = self.scaling.raw_std(self._stds), self.scaling.raw_std(self._cold_stds)
        part = MemberParts(type(self).__name__, self.preprocessor, self.chain, self.resolve_start)
        return (part._replace(residual_std=std, cold_std=cold_std, known_range=self.known_range),)

    @property
    def _final_states(self) -> tuple[StartState, ...]:
        return ()

    @cached_property
    def step_variances(self) -> Float64[np.ndarray, "K1 Dy"]:
        """Variances by the number of steps since a measured output, z-scored, and at the end that of a cold run."""
        return np.concatenate([self._stds, self._cold_stds[:1]]) ** 2

    @property
    def _stds(self) -> Float64[np.ndarray, "K1 Dy"]:
        # The band 1 … K steps after a measured output, the last one also of later steps.
        return self.residual_std[None]

    @property
    def _cold_stds(self) -> Float64[np.ndarray, "K Dy"]:
        # The band in the first rows of a cold run, with what unseen inputs add; the last one also of later rows.
        return np.sqrt(self.residual_std**2 + self.settling.unseen)

    def _variances(self, steps: Int[np.ndarray, " T"], cold: Bool[np.ndarray, " T"]) -> Float64[np.ndarray, "T Dy"]:
        # By the number of steps since the last measured output; of `cold` rows, which have none, since the start.
        warm = self._stds[find_row(steps, len(self._stds))]
        with np.errstate(over="ignore"):  # a variance that is not finite is refused with the simulation
            if not cold.any():
                return warm**2
            return np.where(cold[:, None], self._cold_stds[find_row(steps, len(self._cold_stds))], warm) ** 2


def check_residual_std(std: Float64[np.ndarray, " Dy"]) -> Float64[np.ndarray, " Dy"]:
    """Return the band of a model file; raise `InputError` where it is not positive."""
    if not (std > 0.0).all():
        raise InputError("a residual standard deviation is not positive")
    return std


def check_method(method: object) -> None:
    """Raise `InputError` for any method of `simulate` but "residuals"."""
    if method != "residuals":
        raise InputError(
            f"method must be 'residuals', received {method!r}: this model has a mean, and a band from its errors on "
            "held-out training data"
        )
