"""The runs of the members of a live run: each has the state of one model, and the inputs are read by `Live`."""

from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Int, Key

from revarb.data.preprocessor import check_finite
from revarb.data.windows import input_windows
from revarb.gp.pathwise import DrawnFunctions
from revarb.gp.posterior import Posterior, compute_known_part
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.extrapolation import KnownRange, advance_apart, begin_apart, measure_doubt
from revarb.simulation.filtering import make_update
from revarb.simulation.mean import advance_mean
from revarb.simulation.moments import JointState, Moments, advance_moments, observe_moments
from revarb.simulation.narx_filtering import advance_narx, begin_narx, correct_narx
from revarb.simulation.samples import advance_samples, draw_chain
from revarb.simulation.starts import StartChoice


class LiveStep(NamedTuple):
    """One step of `Live`, raw units: the outputs of the run, and of the sampled trajectories without output noise.

    Attributes
    ----------
    mean : array [outputs]
        Output of the mean-only run; of a run that observes, the mean of the outputs before they are measured.
    samples : array [K, outputs]
        Outputs of the K sampled trajectories; K is the argument `samples` of `Live`. Beyond the training data they fan
        out as the band does. Those of a linear model keep their place in its band.
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


Part = TypeVar("Part")


class ByNoise(NamedTuple, Generic[Part]):
    """The layers of a model, or the joint Gaussian of its states, with the noise of the fit and the calibrated noise.

    Corrections are made with the noise of the fit, predictions with the calibrated noise, as in `predict_ahead`. Right
    after a correction both Gaussians are the same.
    """

    fitted: Part
    calibrated: Part


class RecurrentRun:
    """The run of a recurrent GP: of the mean until it observes, then of the belief, the joint Gaussian of its states.

    Sampled trajectories run beside it. Equations: docs/theory/derivation.md, Eqs. 31 to 34, 43 and 55.
    """

    def __init__(self, model: FittedRGP, start: StartChoice, samples: int, horizon: int, seed: int, observe: bool):
        self.model, self.origin = model, model.resolve_start(start)
        self._samples, self._horizon, self._observe = samples, horizon, observe
        # On the device once: copies of the layers in every step would take longer than the step.
        self._chains = jax.device_put(ByNoise(model.trained.chain, model.chain))
        self._known = jax.device_put(model.known_range)
        function_key, self._key = jax.random.split(jax.random.key(seed))
        self._drawn = draw_chain(self._chains.calibrated, function_key, samples)
        # One draw for the whole of a trajectory, as in `simulate`.
        self._doubts = np.random.default_rng(seed).standard_normal((samples, 1))
        self.reset()

    @property
    def observes(self) -> bool:
        """Whether it has the covariance of the states."""
        return self._belief is not None

    def reset(self) -> None:
        """Return to the first step."""
        self._steps = 0
        self._belief: Any = None
        self._state: Any = np.asarray(self.origin.state.mean)
        self._before = self._state, np.empty(0)  # the state before the last step of a mean-only run, and its inputs
        self._sampled_states: Any = np.tile(self._state, (self._samples, 1))
        self._apart: Any = self.origin.apart
        if self._observe:
            self._begin(self._state)

    def _begin(self, mean: Float[AnyArray, " S"]) -> None:
        # Observe from a mean with the covariance of the start; `_cold` says that no output was measured before it.
        state = JointState(mean, np.asarray(self.origin.state.cov))
        self._belief, self._cold, self._age = ByNoise(state, state), self.origin.cold, self.origin.age

    def step(self, recent_u: Float64[np.ndarray, "reach1 Du"]) -> LiveStep:
        """Advance by one step, with the z-scored inputs up to it, oldest first."""
        order = self.model.order
        if self._steps % self._horizon == 0:
            self._sampled_states = np.tile(np.asarray(self._state), (self._samples, 1))
        inputs_now = input_windows(recent_u[-order.reach - 1 :], order)[0]
        mean, variance, samples = None, None, np.empty((0, len(self.model.output_names)))
        self._before, doubt = (self._state, inputs_now), np.zeros(1)
        if self._samples or self.observes:
            self._apart, beyond = _advance_apart(self._chains.calibrated, self._apart, inputs_now, self._known)
            doubt = measure_doubt(beyond)
        if self._samples or not self.observes:
            self._state, self._sampled_states, mean, samples = _advance_samples(
                self._chains.calibrated, self._drawn, self._state, self._sampled_states, inputs_now, self._key,
                self._steps,
            )  # fmt: skip
            samples = np.asarray(samples) + doubt * self._doubts
        if self.observes:
            mean, variance = self._advance_belief(inputs_now)
            variance = variance + doubt**2
        self._steps += 1
        return self._to_raw(mean, variance, samples)

    def _advance_belief(self, inputs_now: Float64[np.ndarray, " D"]) -> Moments:
        # The calibrated moments of y, as they are inside the training data.
        self._belief, y = _advance_joint(self._chains, self._belief, inputs_now)
        self._state, self._age = np.asarray(self._belief.calibrated.mean), self._age + 1
        width = self.model.width_factors(np.array([self._age]), self._cold)[0]
        return Moments(np.asarray(y.mean), np.asarray(y.variance) * width**2)

    def _to_raw(self, mean: Any, variance: AnyArray | None, samples: AnyArray) -> LiveStep:
        scaling = self.model.scaling
        with np.errstate(over="ignore", invalid="ignore"):
            raw = scaling.raw_outputs(np.concatenate([np.asarray(mean)[None], np.asarray(samples)]))
            std = None if variance is None else scaling.raw_std(np.sqrt(variance))
        check_finite("live", raw, std)
        return LiveStep(raw[0], raw[1:], std)

    def correct(self, y: Float64[np.ndarray, "1 Dy"]) -> None:
        """Condition the states on measured outputs, raw units."""
        if not self.observes:
            state, inputs_now = self._before
            self._begin(state)
            self._advance_belief(inputs_now)
        self._belief = _correct_joint(self._chains.fitted, self._belief, self.model.scaling.outputs(y)[0])
        self._cold, self._age = False, 0
        check_finite("live", *(np.asarray(part) for part in self._belief.fitted))
        self._state = np.asarray(self._belief.calibrated.mean)
        self._apart = begin_apart(self._state)

    def make_state(self, past_u: Float64[np.ndarray, "_ Du"]) -> StartState:
        """The state as the start of a simulation, with the z-scored inputs before it.

        A simulation has the calibrated noise, and so have the steps since the last correction.
        """
        mean, cov = self._belief.calibrated
        past_u, apart = _cut(past_u, self.model), np.asarray(self._apart)
        return StartState(np.asarray(mean), np.asarray(cov), past_u, self._age, self._cold, apart)


class LinearRun:
    """The run of a linear model: its states are its last outputs, and measured ones take the place of the newest."""

    def __init__(self, model: FittedARX, start: StartChoice, samples: int, seed: int):
        self.model, self.origin = model, model.resolve_start(start)
        # One draw for the whole of a trajectory: errors of a free run do not change their sign at every step.
        self._errors = np.random.default_rng(seed).standard_normal((samples, len(model.output_names)))
        self.reset()

    @property
    def observes(self) -> bool:
        """Always: its band is that of its errors on held-out blocks."""
        return True

    def reset(self) -> None:
        """Return to the first step."""
        origin = self.origin
        self._state, self._apart = begin_narx(origin.state, origin.age, origin.cold), origin.apart

    def step(self, recent_u: Float64[np.ndarray, "reach1 Du"]) -> LiveStep:
        """Advance by one step, with the z-scored inputs up to it, oldest first."""
        model, scaling = self.model, self.model.scaling
        inputs = input_windows(recent_u[-model.order.reach - 1 :], model.order)[0]
        self._state = _advance_linear(model.chain, model.step_variances, self._state, inputs)
        self._apart, beyond = _advance_apart(model.chain, self._apart, inputs, model.known_range)
        outputs = len(model.output_names)
        with np.errstate(over="ignore", invalid="ignore"):
            spread = np.sqrt(np.diagonal(self._state.cov)[:outputs])
            known = np.hypot(model.band_std(int(self._state.age), bool(self._state.cold)), spread)
            std = scaling.raw_std(np.hypot(known, measure_doubt(beyond)))
            mean = scaling.raw_outputs(np.asarray(self._state.mean)[None, :outputs])[0]
        check_finite("live", mean)
        return LiveStep(mean, mean + std * self._errors, std)

    def correct(self, y: Float64[np.ndarray, "1 Dy"]) -> None:
        """Condition the states on measured outputs, raw units: they are known exactly."""
        self._state = _correct_linear(self._state, self.model.scaling.outputs(y)[0])
        self._apart = begin_apart(self._state.mean)

    def make_state(self, past_u: Float64[np.ndarray, "_ Du"]) -> StartState:
        """The state as a start, with the z-scored inputs before it."""
        mean, cov, apart = (np.asarray(part) for part in (self._state.mean, self._state.cov, self._apart))
        age, cold = int(self._state.age), bool(self._state.cold)
        return StartState(mean, cov, _cut(past_u, self.model), age, cold, apart)


def _cut(past_u: Float64[np.ndarray, "_ Du"], model: FittedRGP | FittedARX) -> Float64[np.ndarray, "reach Du"]:
    # Members look back differently far.
    return past_u[len(past_u) - model.order.reach :]


@jax.jit
def _advance_apart(
    chain: Chain, apart: Float[AnyArray, "3 S"], inputs_now: Float[AnyArray, " Du"], known: KnownRange
) -> tuple[Float[AnyArray, "3 S"], Float[AnyArray, " Dy"]]:
    apart, found = advance_apart(chain, apart, inputs_now, known)
    return apart, found.distance


_advance_linear, _correct_linear = jax.jit(advance_narx), jax.jit(correct_narx)


@jax.jit
def _advance_samples(
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


@jax.jit
def _advance_joint(
    chains: ByNoise[Chain[Posterior]], belief: ByNoise[JointState], inputs_now: Float[AnyArray, " Du"]
) -> tuple[ByNoise[JointState], Moments]:
    known = jax.tree.map(lambda rows: rows[0], compute_known_part(chains.fitted.hidden[0], inputs_now[None]))
    states = [advance_moments(chain)(state, known) for chain, state in zip(chains, belief, strict=True)]
    y = observe_moments(chains.calibrated)(states[1])
    return ByNoise(*states), Moments(y.mean, jnp.diagonal(y.cov))


@jax.jit
def _correct_joint(
    chain: Chain[Posterior], belief: ByNoise[JointState], y: Float[AnyArray, " Dy"]
) -> ByNoise[JointState]:
    state = belief.fitted
    corrected = make_update(chain)(state, observe_moments(chain)(state), y)
    return ByNoise(corrected, corrected)
