"""A trained model one step at a time, for control loops and interactive use."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Float64, Int, Key
from numpy.typing import ArrayLike

from revarb.data.dataframes import as_matrix
from revarb.data.preprocessor import check_finite
from revarb.data.trajectory import Trajectory
from revarb.data.windows import input_windows
from revarb.errors import InputError, check_integer, check_seed
from revarb.gp.pathwise import DrawnFunctions
from revarb.gp.posterior import Posterior
from revarb.models.configuration import check_flag
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.observer import Observer
from revarb.runtime.interrupts import defer_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.mean import advance_mean
from revarb.simulation.samples import advance_samples, draw_chain
from revarb.simulation.starts import StartChoice


class LiveStep(NamedTuple):
    """One step of `Live`, raw units: the outputs of the run, and of the sampled trajectories without output noise.

    Attributes
    ----------
    mean : array [outputs]
        Output of the mean-only run; of a run that observes, the mean of the outputs before they are measured.
    samples : array [K, outputs]
        Outputs of the K sampled trajectories; K is the argument `samples` of `Live`.
    std : array [outputs] or None
        Calibrated standard deviation of the outputs, noise included; None in a mean-only run.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0))
    >>> recipe = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta"), 5),))
    >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, recipe=recipe)
    >>> live = revarb.Live(spec.fit(revarb.Series(u, np.cumsum(u))), samples=3)
    >>> step = live.step(0.3)
    >>> step.mean.shape, step.samples.shape
    ((1,), (3, 1))
    """

    mean: Float64[np.ndarray, " Dy"]
    samples: Float64[np.ndarray, "K Dy"]
    std: Float64[np.ndarray, " Dy"] | None = None


class Live:
    """A run that takes its inputs one step at a time, and corrects its states by measured outputs.

    Without corrections it is a free run of the mean. A run that observes keeps the joint Gaussian of all states: its
    steps have a mean with a standard deviation, `correct` conditions the states on what was measured, and `predict`
    looks ahead from there. A run observes from its beginning with `observe=True`, else from its first `correct` on.

    What a step needs is compiled when the run is made.

    Parameters
    ----------
    model : FittedRGP
        A single trained model.
    start : str, Window or StartState
        Where the run starts, as in `FittedRGP.simulate`.
    samples : int
        Number of sampled trajectories that run beside the run, each with functions of its own.
    horizon : int
        Number of steps after which the sampled trajectories restart at the mean of the run.
    seed : int
        Seed of the sampled trajectories.
    observe : bool
        Keep the joint Gaussian from the first step on, and compile `correct` now. Without it a run that is corrected
        takes the covariance of the start for that of the states before its last step: exact if that step is its first.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0))
    >>> recipe = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta"), 5),))
    >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, recipe=recipe)
    >>> live = revarb.Live(spec.fit(revarb.Series(u, np.cumsum(u))), start="continue", observe=True)
    >>> live.step(0.3).mean.shape
    (1,)
    >>> live.correct(1.9)
    >>> live.predict(5, u=[0.4, 0.5, 0.4, 0.3, 0.2])
    Trajectory(5 rows, outputs ('y',), method='moments', start='live run, step 1')
    """

    @with_numerics
    def __init__(
        self,
        model: FittedRGP,
        start: StartChoice = "cold",
        samples: int = 0,
        horizon: int = 30,
        seed: int = 0,
        observe: bool = False,
    ):
        if not isinstance(model, FittedRGP):
            raise InputError(f"a live run takes one fitted RGP, received a {type(model).__name__}")
        self._model, self._observe = model, check_flag("observe", observe)
        self._origin = model.resolve_start(start)
        self._samples = check_integer("samples", samples, least=0)
        self._horizon = check_integer("horizon", horizon, least=1)
        function_key, self._key = jax.random.split(jax.random.key(check_seed(seed)))
        # One step, and one correction of a run that observes: no step of a control loop waits for the compiler.
        with defer_interrupts():
            self._observer = Observer(model, self._origin)
            self._drawn = draw_chain(self._observer.chains.calibrated, function_key, self._samples)
            self.reset()
            self.step(model.scaling.u_mean if model.input_names else None)
            if self._observe:
                self.correct(model.scaling.y_mean)
            self.reset()

    def __repr__(self) -> str:
        return f"Live({self._model!r}, {self._steps} steps done)"

    @with_numerics
    def reset(self) -> None:
        """Return to the first step."""
        self._steps = 0
        # Inputs up to the last step, z-scored and oldest first: NaN while those of the last step are open.
        self._recent_u = np.insert(np.asarray(self._origin.state.past_u), 0, 0.0, axis=0)
        self._open = False  # whether the last step was made without inputs
        self._state: Any = np.asarray(self._origin.state.mean)
        self._before = self._state, np.empty(0)  # the state before the last step of a mean-only run, and its inputs
        self._sampled_states: Any = np.tile(self._state, (self._samples, 1))
        self._observer.stop()
        if self._observe:
            self._observer.begin(self._state)

    @with_numerics
    def step(self, u: ArrayLike | None = None) -> LiveStep:
        """Advance by one step.

        Parameters
        ----------
        u : array-like [inputs], optional
            Inputs of this step, raw units. Where inputs act after a delay of one sample or more, they can be left out
            and given by `apply` before the next step: a controller sees the outputs before it sets the inputs.

        Returns
        -------
        LiveStep
            The outputs of this step, before they are measured.

        Raises
        ------
        InputError
            If the inputs do not fit the model.
        ComputationError
            If the run diverges.
        """
        self._check_applied()
        order = self._model.order
        recent = np.concatenate([self._recent_u[1:], self._read_inputs(u)])
        if self._origin.cold and self._steps == order.reach:
            self._restart()
        if self._steps % self._horizon == 0:
            self._sampled_states = np.tile(np.asarray(self._state), (self._samples, 1))
        step = self._advance(input_windows(recent, order)[0])
        self._recent_u, self._steps = recent, self._steps + 1
        self._open = u is None and bool(self._model.input_names)
        return step

    def _read_inputs(self, u: ArrayLike | None) -> Float64[np.ndarray, "1 Du"]:
        # NaN where they are left open.
        prep = self._model.preprocessor
        if u is not None:
            one_row = _read_numbers(u, len(prep.input_names))
            return prep.read_inputs([u], None, warm=True).z if one_row is None else prep.scaling.inputs(one_row)
        if prep.input_names and prep.order.input_delay == 0:
            raise InputError("pass the inputs of the step: with input_delay=0 its outputs depend on them")
        return np.full((1, len(prep.input_names)), np.nan)

    def _check_applied(self) -> None:
        if np.isnan(self._recent_u[-1]).any():
            raise InputError("the inputs of the last step are open: pass them to apply(u) first")

    def _restart(self) -> None:
        # As in `simulate`: a cold run starts where the input window is full, unless its states were corrected before.
        mean = np.asarray(self._origin.state.mean)
        if not self._observer.active:
            self._state = mean
        elif self._observer.cold:
            self._observer.begin(mean)

    def _advance(self, inputs_now: Float64[np.ndarray, " D"]) -> LiveStep:
        mean, variance, samples = None, None, np.empty((0, len(self._model.output_names)))
        self._before = self._state, inputs_now
        if self._samples or not self._observer.active:
            self._state, self._sampled_states, mean, samples = _advance(
                self._observer.chains.calibrated, self._drawn, self._state, self._sampled_states, inputs_now, self._key,
                self._steps,
            )  # fmt: skip
        if self._observer.active:
            mean, variance = self._observer.advance(inputs_now)
            self._state = self._observer.mean
        return self._to_raw(mean, variance, samples)

    def _to_raw(self, mean: Any, variance: AnyArray | None, samples: AnyArray) -> LiveStep:
        scaling = self._model.scaling
        with np.errstate(over="ignore", invalid="ignore"):
            raw = scaling.raw_outputs(np.concatenate([np.asarray(mean)[None], np.asarray(samples)]))
            std = None if variance is None else scaling.raw_std(np.sqrt(variance))
        check_finite("live", raw, std)
        return LiveStep(raw[0], raw[1:], std)

    @with_numerics
    def apply(self, u: ArrayLike) -> None:
        """Give the inputs of the last step, where it was made without them.

        Parameters
        ----------
        u : array-like [inputs]
            Inputs, raw units. Until the next step they can be replaced.

        Raises
        ------
        InputError
            If the last step had its inputs, or they do not fit the model.
        """
        if not self._open:
            raise InputError("apply(u) is for a step that was made without inputs: step() first")
        self._recent_u = np.concatenate([self._recent_u[:-1], self._read_inputs(u)])

    @with_numerics
    def correct(self, y: ArrayLike) -> None:
        """Condition the states on the measured outputs of the last step, with the noise of the fit.

        With Student-t noise an outlier has little weight. What follows is a run of the moments from the corrected
        states; each output of a step should be passed once.

        Parameters
        ----------
        y : array-like [outputs]
            Measured outputs, raw units. NaN is missing; if all are missing, nothing is corrected.

        Raises
        ------
        InputError
            If no step was made, or the outputs do not fit the model.
        ComputationError
            If the corrected states are not finite.
        """
        if not self._steps:
            raise InputError("correct takes the measured outputs of the last step, and none was made: step(u) first")
        measured = self._read_outputs(y)
        if np.isnan(measured).all():
            return
        if not self._observer.active:
            state, inputs_now = self._before
            self._observer.begin(state)
            self._observer.advance(inputs_now)
        self._observer.correct(measured)
        self._state = self._observer.mean

    def _read_outputs(self, y: ArrayLike) -> Float64[np.ndarray, " Dy"]:
        names = list(self._model.output_names)
        one_row = _read_numbers(y, len(names))
        values = as_matrix("y", [y], gaps=True) if one_row is None else one_row
        if values.shape != (1, len(names)):
            raise InputError(f"y has {values.size} value(s), but the model has {len(names)} output(s): {names}")
        return self._model.scaling.outputs(values)[0]

    @property
    def state(self) -> StartState:
        """The joint Gaussian of the states after the last step, and the last inputs, z-scored: a start for `simulate`.

        `model.simulate(u, start=live.state)` is `live.predict(len(u), u)`, also between corrections: the covariance has
        the calibrated noise of the steps since the last one, and `age` is their number. The last inputs are NaN while
        those of the last step are open.
        """
        self._check_observing("state")
        return self._observer.make_state(self._recent_u[1:])

    def _check_observing(self, name: str) -> None:
        if not self._observer.active:
            raise InputError(f"{name} needs the covariance of the states: correct(y) first, or Live(…, observe=True)")

    @with_numerics
    def predict(self, k: int, u: Any = None) -> Trajectory:
        """Predict the next k steps from the states as they are; the run does not move.

        The first call with a k compiles: make it once before a control loop.

        Parameters
        ----------
        k : int
            Number of steps.
        u : array-like [k, inputs] or data frame, optional
            Inputs of these steps, raw units; left out, those of the last step are held.

        Returns
        -------
        Trajectory
            k rows with a calibrated band, raw units.

        Raises
        ------
        InputError
            If the run does not observe, or the inputs do not fit.
        ComputationError
            If the prediction diverges.
        """
        self._check_observing("predict")
        self._check_applied()
        steps, names = check_integer("k", k, least=1), self._model.input_names
        if names and u is None:
            u = self._hold(steps)
        path = self._observer.predict(u, None if names else steps, self._recent_u[1:], f"live run, step {self._steps}")
        if len(path) != steps:
            raise InputError(f"u has {len(path)} row(s), but k={steps}; pass the inputs of the next {steps} step(s)")
        return path

    def _hold(self, steps: int) -> Float64[np.ndarray, "T Du"]:
        if not self._steps:
            raise InputError("pass u, the inputs of the next k steps: there was no step whose inputs could be held")
        scaling = self._model.scaling
        return np.tile(self._recent_u[-1] * scaling.u_std + scaling.u_mean, (steps, 1))


def _read_numbers(values: object, count: int) -> Float64[np.ndarray, "1 D"] | None:
    # One row, in a fraction of the time of all checks that a table needs; None: these are needed.
    if type(values) not in (float, np.float64, np.ndarray):
        return None
    array = np.asarray(values)
    plain = array.dtype == np.float64 and array.size == count and array.ndim <= 1 and np.isfinite(array).all()
    return array.reshape(1, count) if plain else None


@jax.jit
def _advance(
    chain: Chain[Posterior],
    drawn: Chain[DrawnFunctions],
    state: Float[AnyArray, " S"],
    samples: Float[AnyArray, "K S"],
    inputs_now: Float[AnyArray, " Du"],
    key: Key[jax.Array, ""],
    steps: int | Int[AnyArray, ""],
) -> tuple[Float[AnyArray, " S"], Float[AnyArray, "K S"], Float[AnyArray, " Dy"], Float[AnyArray, "K Dy"]]:
    state, mean = advance_mean(chain, state, inputs_now)
    samples, (f, _) = advance_samples(drawn, samples, inputs_now, jax.random.fold_in(key, steps))
    return state, samples, mean, f
