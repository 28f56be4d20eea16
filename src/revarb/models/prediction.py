"""What models that predict share: residual analysis, responses, checks of the arguments, the name of a horizon."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from revarb.data.preprocessor import Preprocessor, RunInputs
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import input_windows_after
from revarb.errors import InputError, check_integer
from revarb.models.base import Fitted
from revarb.models.linearisation import Linearisation, linearise_model
from revarb.models.residuals import Residuals, analyse_residuals
from revarb.models.responses import (
    FrequencyResponse,
    StaticGainCurve,
    StepResponse,
    compute_frequency_response,
    compute_static_gain_curve,
    compute_step_response,
)
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.run import simulate_chain
from revarb.simulation.settling import Settling, measure_settling
from revarb.simulation.starts import Origin, StepCount, count_steps_since, make_level_start

MAX_HORIZON = 10**9  # steps ahead; more than any record has


@dataclass(frozen=True, eq=False, repr=False)
class Predictor(Fitted):
    """A trained model that predicts along measured records, and so has residuals."""

    @abstractmethod
    def predict(self, record: Series, horizon: int = 1) -> Trajectory:
        """Predict every sample of a measured record from the samples up to `horizon` before it, raw units.

        Parameters
        ----------
        record : Series
            Measured inputs and outputs; missing outputs are NaN.
        horizon : int
            Number of samples ahead.

        Returns
        -------
        Trajectory
            One row per sample of the record.
        """

    def residuals(self, record: Series, max_lag: int | None = None) -> Residuals:
        """Errors one step ahead along a measured record, and what is left in them: residual analysis.

        Parameters
        ----------
        record : Series
            Measured inputs and outputs, best those of a record that the model was not trained on. Missing outputs, the
            values right after them and the first `skip` rows are left out.
        max_lag : int, optional
            Largest lag of the correlations; default: 25, or ten more than the oldest input of the model, but at most
            a quarter of the rows.

        Returns
        -------
        Residuals
            Errors, correlations with their bands, and `sentence`, which says what was found and what to do.

        Raises
        ------
        InputError
            If the record does not fit the model, or has too few measured outputs.
        ComputationError
            If the prediction diverges.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> rng = np.random.default_rng(0)
        >>> u, noise = rng.normal(size=400), 0.1 * rng.normal(size=400)
        >>> record = revarb.Series(u, np.convolve(u, [0.0, 1.0, 0.5])[:400] + noise)
        >>> model = revarb.ARX(lags=1, input_lags=2).fit(record[:300])
        >>> model.residuals(record[300:]).sentence
        'nothing is left in the residuals'
        """
        return analyse_residuals(record, self.predict(record), self.order, max_lag, self.choice is not None)

    @with_numerics
    def linearise(self, at: Any = None) -> Linearisation:
        """Linearise the mean-only run at the equilibrium of constant inputs.

        Parameters
        ----------
        at : float, array-like [inputs] or dict of str to float, optional
            The constant inputs, raw units; in a dict by their names. Inputs without a value have their training mean.
            The run starts near the training mean of all states, and continues until it is at rest.

        Returns
        -------
        Linearisation
            A, B, C, D of the deviations from the equilibrium in raw units, with `poles`, `static_gain` and
            `to_control`. The members of an ensemble are side by side, each at its own equilibrium.

        Raises
        ------
        InputError
            If the model has no inputs, or does not come to rest at these.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(90.0) ** 1.5)
        >>> y = np.convolve(u, 0.8 ** np.arange(30))[:90]
        >>> model = revarb.ARX(lags=1, input_lags=1).fit(revarb.Series(u[:-1], y[1:]))
        >>> bool(np.abs(model.linearise(at=0.2).poles[0]) < 1.0)
        True
        """
        return linearise_model(self, at)

    @with_numerics
    def step_response(
        self, size: float | None = None, *, at: Any = None, steps: int | None = None, input: str | None = None
    ) -> StepResponse:
        """Simulate the response to a step of one input, from the equilibrium of constant inputs.

        Parameters
        ----------
        size : float, optional
            Height of the step, raw units; default: a standard deviation of the input in training.
        at : float, array-like [inputs] or dict of str to float, optional
            The constant inputs before the step, as in `linearise`.
        steps : int, optional
            Number of rows; default: until the outputs have settled.
        input : str, optional
            Name of the input that steps; a model with a single input needs none.

        Returns
        -------
        StepResponse
            The outputs with a band where the model has one, `gain`, `rise_time`, `settling_time` and `overshoot`.

        Raises
        ------
        InputError
            If the model has no inputs, or does not come to rest before the step.
        ComputationError
            If the simulation diverges.
        """
        return compute_step_response(self, size, at, steps, input)

    @abstractmethod
    def _simulate_from(self, states: Sequence[StartState], u: Float64[np.ndarray, "T Du"]) -> Trajectory:
        # The run that a step response shows, from a known state; an ensemble has a state for each of its members.
        ...

    @with_numerics
    def frequency_response(
        self, *, at: Any = None, frequencies: ArrayLike | None = None, input: str | None = None
    ) -> FrequencyResponse:
        """Compute the frequency response of the linearisation at an operating point.

        Parameters
        ----------
        at : float, array-like [inputs] or dict of str to float, optional
            The operating point, as in `linearise`.
        frequencies : array-like [F], optional
            Cycles per unit of the sampling interval, in Hz where that is in seconds; default: from below the slowest
            pole to the Nyquist frequency.
        input : str, optional
            Name of an input; default: all of them.

        Returns
        -------
        FrequencyResponse
            Complex gains, `magnitude` and `phase`.

        Raises
        ------
        InputError
            If the model has no inputs, does not come to rest, or a frequency is above that of Nyquist.
        """
        return compute_frequency_response(self, at, frequencies, input)

    @with_numerics
    def static_gain_curve(
        self, inputs: ArrayLike | None = None, *, input: str | None = None, at: Any = None
    ) -> StaticGainCurve:
        """Compute the outputs at rest over the range of one input.

        Parameters
        ----------
        inputs : array-like [N], optional
            Values of the input, raw units; default: its range in training.
        input : str, optional
            Name of the input that varies; a model with a single input needs none.
        at : float, array-like [inputs] or dict of str to float, optional
            The constant values of the other inputs, as in `linearise`.

        Returns
        -------
        StaticGainCurve
            Outputs and static gains at rest; NaN where the model does not come to rest.

        Raises
        ------
        InputError
            If the model has no inputs, or comes to rest at none of the values.
        """
        return compute_static_gain_curve(self, inputs, input, at)


@dataclass(frozen=True, eq=False, repr=False)
class ChainPredictor(Predictor):
    """A trained model that is one chain of layers, with a distribution of its states before a cold run."""

    @cached_property
    def cold_start(self) -> StartState:
        """The state before a cold run: past outputs at an unknown level."""
        return make_level_start(self.preprocessor)

    @cached_property
    @with_numerics
    def settling(self) -> Settling:
        """How a cold run settles."""
        return measure_settling(self._chain, self.cold_start, self.order)

    @property
    def skip(self) -> int:
        """Number of first rows in which a cold run settles; scores leave them out."""
        return self.settling.rows

    def _simulate_from(self, states: Sequence[StartState], u: Float64[np.ndarray, "T Du"]) -> Trajectory:
        [state] = states
        return simulate_chain(self.preprocessor, self._chain, u, "moments", Origin(state, "equilibrium"), None, 0, 0)

    @property
    def _chain(self) -> Chain[Any]:
        return self.chain  # pyright: ignore[reportAttributeAccessIssue] (a field of some, a property of others)


def check_prediction(record: Any, horizon: Any) -> int:
    """Check the arguments of `predict`; return the horizon as an int."""
    steps = check_integer("horizon", horizon, least=1, most=MAX_HORIZON)
    if not isinstance(record, Series):
        raise InputError(f"predict takes a measured revarb.Series(u, y), received a {type(record).__name__}")
    return steps


class MeasuredRows(NamedTuple):
    """A measured record as a prediction needs it, z-scored, and the cold start before it."""

    start: StartState
    u_bar: Float[AnyArray, "T Du"]
    y: Float[AnyArray, "T Dy"]


def align_record(prep: Preprocessor, cold: StartState, record: Series) -> MeasuredRows:
    """The rows of a record that has the model's columns, with the inputs before it at their training mean."""
    z, y = prep.check_window(record)
    return MeasuredRows(cold, input_windows_after(cold.past_u, z, prep.order), y)


def read_record_inputs(prep: Preprocessor, record: Series) -> RunInputs:
    """The inputs of a measured record, for the trajectory of its prediction."""
    return RunInputs(record.u, prep.scaling.inputs(record.u), record.index)


def count_steps_ahead(y: AnyArray, horizon: int) -> StepCount:
    """How far every row of a record is predicted from the outputs up to `horizon` rows before it."""
    ahead = min(horizon, len(y))
    known = count_steps_since(np.asarray(y)[: len(y) - ahead])
    return StepCount(
        np.concatenate([np.arange(ahead) + 1, known.steps + ahead]), np.concatenate([np.full(ahead, True), known.cold])
    )


def name_horizon(horizon: int) -> str:
    """The name that `Trajectory.start` has for a prediction."""
    return f"{horizon} step{'s' * (horizon > 1)} ahead"
