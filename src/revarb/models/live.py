"""A trained model one step at a time, for control loops and interactive use."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from revarb.data.dataframes import as_matrix
from revarb.data.scaling import half_width, safe_rms, safe_std
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, check_integer, check_seed
from revarb.models.configuration import check_flag
from revarb.models.ensemble import Ensemble, list_starts
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.live_runs import LinearRun, LiveStep, RecurrentRun
from revarb.runtime.interrupts import defer_interrupts
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import StartState
from revarb.simulation.run import widen_path
from revarb.simulation.starts import StartChoice

ADAPTATION = 0.1  # of the logarithm of a factor, for a measurement outside of the band
FACTORS = (0.1, 1e3)  # smallest and largest


class Live:
    """A run that takes its inputs one step at a time, and corrects its states by measured outputs.

    Without corrections it is a free run of the mean. A run that observes keeps the joint Gaussian of all states: its
    steps have a mean with a standard deviation, `correct` conditions the states on what was measured, and `predict`
    looks ahead from there. A run observes from its beginning with `observe=True`, else from its first `correct` on.

    What a step needs is compiled when the run is made.

    Parameters
    ----------
    model : FittedRGP, FittedARX or Ensemble
        A trained model. The members of a mixture run side by side, each with an observer of its own: a step has the
        mean of their means, and the standard deviation of the mixture.
    start : str, Window, StartState or list of StartState
        Where the run starts, as in `FittedRGP.simulate`; of a mixture also a state for each member.
    samples : int
        Number of sampled trajectories that run beside the run, each with functions of its own; those of a mixture are
        divided among the members.
    horizon : int
        Number of steps after which the sampled trajectories restart at the mean of the run.
    seed : int
        Seed of the sampled trajectories.
    observe : bool
        Keep the joint Gaussian from the first step on, and compile `correct` now. Without it a run that is corrected
        takes the covariance of the start for that of the states before its last step: exact if that step is its first.
    adapt : bool
        Let the band follow what is measured: `factors` on the standard deviations become larger after every measurement
        outside of the 95 % band of its step, and a little smaller after every other one. In the long run 95 % are
        inside, also where the plant drifts (adaptive conformal inference). It observes from its beginning.

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
        model: FittedRGP | FittedARX | Ensemble,
        start: StartChoice | Sequence[StartState] = "cold",
        samples: int = 0,
        horizon: int = 30,
        seed: int = 0,
        observe: bool = False,
        adapt: bool = False,
    ):
        if not isinstance(model, Ensemble | FittedRGP | FittedARX):
            raise InputError(
                f"a live run takes an RGP, an ARX model or their mixture, fitted; received a {type(model).__name__}"
            )
        self._adapt = check_flag("adapt", adapt)
        self._model, self._observe = model, check_flag("observe", observe) or self._adapt
        samples, seed = check_integer("samples", samples, least=0), check_seed(seed)
        horizon = check_integer("horizon", horizon, least=1)
        members, starts = list_starts(model, start)
        # One step, and one correction of a run that observes: no step of a control loop waits for the compiler.
        with defer_interrupts():
            self._runs = []
            for number, (member, own) in enumerate(zip(members, starts, strict=True)):
                count = samples // len(members) + (number < samples % len(members))
                if isinstance(member, FittedRGP):
                    self._runs.append(RecurrentRun(member, own, count, horizon, seed + number, self._observe))
                else:
                    self._runs.append(LinearRun(member, own, count, seed + number))
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
        self._steps, self._factors = 0, np.ones(len(self._model.output_names))
        # Inputs up to the last step, z-scored and oldest first: NaN while those of the last step are open.
        longest = max((run.origin.state.past_u for run in self._runs), key=len)
        self._recent_u = np.insert(np.asarray(longest), 0, 0.0, axis=0)
        self._open = False  # whether the last step was made without inputs
        for run in self._runs:
            run.reset()

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
        recent = np.concatenate([self._recent_u[1:], self._read_inputs(u)])
        steps = [run.step(recent) for run in self._runs]
        self._recent_u, self._steps = recent, self._steps + 1
        self._open = u is None and bool(self._model.input_names)
        step = steps[0] if len(steps) == 1 else _mix_steps(steps)
        self._last = step if step.std is None else step._replace(std=step.std * self._factors)
        return self._last

    @property
    def factors(self) -> Float64[np.ndarray, " Dy"]:
        """The factors on the standard deviations of steps and predictions; 1 unless the run adapts."""
        return self._factors.copy()

    def _read_inputs(self, u: ArrayLike | None) -> Float64[np.ndarray, "1 Du"]:
        # NaN where they are left open.
        prep = self._model.preprocessor
        if u is not None:
            one_row = _read_numbers(u, len(prep.input_names))
            return prep.read_inputs([u], None).z if one_row is None else prep.scaling.inputs(one_row)
        if prep.input_names and any(run.model.order.input_delay == 0 for run in self._runs):
            raise InputError("pass the inputs of the step: with input_delay=0 its outputs depend on them")
        return np.full((1, len(prep.input_names)), np.nan)

    def _check_applied(self) -> None:
        if np.isnan(self._recent_u[-1]).any():
            raise InputError("the inputs of the last step are open: pass them to apply(u) first")

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
        if self._adapt:
            self._adapt_factors(measured[0])
        for run in self._runs:
            run.correct(measured)

    def _adapt_factors(self, measured: Float64[np.ndarray, " Dy"]) -> None:
        # At 5 % outside they stay as they are, on average.
        assert self._last.std is not None  # a run that adapts observes
        outside = np.abs(measured - self._last.mean) > half_width(0.95) * self._last.std
        change = np.where(np.isnan(measured), 0.0, ADAPTATION * (outside - 0.05))
        self._factors = np.clip(self._factors * np.exp(change), *FACTORS)

    def _read_outputs(self, y: ArrayLike) -> Float64[np.ndarray, "1 Dy"]:
        names = list(self._model.output_names)
        one_row = _read_numbers(y, len(names))
        values = as_matrix("y", [y], gaps=True) if one_row is None else one_row
        if values.shape != (1, len(names)):
            raise InputError(f"y has {values.size} value(s), but the model has {len(names)} output(s): {names}")
        return values

    @property
    def state(self) -> StartState | tuple[StartState, ...]:
        """The joint Gaussian of the states after the last step, and the last inputs, z-scored: a start for `simulate`.

        That of a mixture is a tuple with the state of each member; the states of a linear one are its last outputs.

        `model.simulate(u, start=live.state)` is `live.predict(len(u), u)`, also between corrections, unless the run
        adapts: the covariance has the calibrated noise of the steps since the last one, and `age` is their number. The
        last inputs are NaN while those of the last step are open.
        """
        self._check_observing("state")
        states = tuple(run.make_state(self._recent_u[1:]) for run in self._runs)
        return states if isinstance(self._model, Ensemble) else states[0]

    def _check_observing(self, name: str) -> None:
        if not all(run.observes for run in self._runs):
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
        state: Any = self.state
        path = self._model.simulate(u, start=state, steps=None if names else steps)
        if len(path) != steps:
            raise InputError(f"u has {len(path)} row(s), but k={steps}; pass the inputs of the next {steps} step(s)")
        path = widen_path(path, np.tile(self._factors, (steps, 1)))
        return replace(path, start=f"live run, step {self._steps}")

    def _hold(self, steps: int) -> Float64[np.ndarray, "T Du"]:
        if not self._steps:
            raise InputError("pass u, the inputs of the next k steps: there was no step whose inputs could be held")
        scaling = self._model.scaling
        return np.tile(self._recent_u[-1] * scaling.u_std + scaling.u_mean, (steps, 1))


def _mix_steps(steps: Sequence[LiveStep]) -> LiveStep:
    # By the law of total variance, as `mix_paths`; without a standard deviation while one of them has none.
    means, stds = np.stack([step.mean for step in steps]), [step.std for step in steps if step.std is not None]
    std = np.hypot(safe_rms(np.stack(stds)), safe_std(means)) if len(stds) == len(steps) else None
    return LiveStep(means.mean(axis=0), np.concatenate([step.samples for step in steps]), std)


def _read_numbers(values: object, count: int) -> Float64[np.ndarray, "1 D"] | None:
    # One row, in a fraction of the time of all checks that a table needs; None: these are needed.
    if type(values) not in (float, np.float64, np.ndarray):
        return None
    array = np.asarray(values)
    plain = array.dtype == np.float64 and array.size == count and array.ndim <= 1 and np.isfinite(array).all()
    return array.reshape(1, count) if plain else None
