"""The observer of a live run: the joint Gaussian of its states, conditioned on outputs as they are measured.

docs/theory/derivation.md, Eqs. 31 to 34, 43 and 55.
"""

from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from revarb.data.preprocessor import check_finite
from revarb.data.trajectory import Trajectory
from revarb.gp.posterior import Posterior, compute_known_part
from revarb.models.fitted_rgp import FittedRGP
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.filtering import make_update
from revarb.simulation.moments import JointState, Moments, advance_moments, observe_moments
from revarb.simulation.run import simulate_chain
from revarb.simulation.starts import Origin

LONG = 10**9  # steps since the last measured output of a run without any: more than any calibration distinguishes


Part = TypeVar("Part")


class ByNoise(NamedTuple, Generic[Part]):
    """The layers of a model, or the joint Gaussian of its states, with the noise of the fit and the calibrated noise.

    Corrections are made with the noise of the fit, predictions with the calibrated noise, as in `predict_ahead`. Right
    after a correction both Gaussians are the same.
    """

    fitted: Part
    calibrated: Part


class Observer:
    """Keeps the belief of a run, z-scored. It does not check what it is given, and `Live` calls it in float64."""

    def __init__(self, model: FittedRGP, origin: Origin):
        self._model, self._origin = model, origin
        # On the device once: copies of the layers in every step would take longer than the step.
        self.chains = jax.device_put(ByNoise(model.trained.chain, model.chain))
        self.stop()

    @property
    def active(self) -> bool:
        """Whether there is a belief."""
        return self._belief is not None

    @property
    def mean(self) -> Float64[np.ndarray, " S"]:
        """Mean of the states."""
        return np.asarray(self._known.calibrated.mean)

    @property
    def _known(self) -> ByNoise[JointState]:
        assert self._belief is not None
        return self._belief

    def stop(self) -> None:
        """Forget the belief."""
        self._belief: ByNoise[JointState] | None = None

    def begin(self, mean: Float[AnyArray, " S"]) -> None:
        """Begin at a mean with the covariance of the origin; `cold` says that no output was measured before it."""
        state = JointState(mean, np.asarray(self._origin.state.cov))
        self._belief, self.cold, self._age = ByNoise(state, state), self._origin.cold, self._origin.age

    def advance(self, inputs_now: Float[AnyArray, " Du"]) -> Moments:
        """Advance by one step; return the calibrated moments of y."""
        self._belief, y = _advance(self.chains, self._known, inputs_now)
        self._age += 1
        calibration = self._model.calibration
        width = 1.0 if calibration is None else calibration.width_factors(np.array([self._age]), self.cold)
        return Moments(np.asarray(y.mean), np.asarray(y.variance) * width**2)

    def correct(self, y: Float[AnyArray, " Dy"]) -> None:
        """Condition the states on the measured entries of y."""
        self._belief = _correct(self.chains.fitted, self._known, y)
        self.cold, self._age = False, 0
        check_finite("live", *(np.asarray(part) for part in self._known.fitted))

    def make_state(self, past_u: Float64[np.ndarray, "reach Du"]) -> StartState:
        """The state as the start of a simulation, with the inputs before it.

        A simulation has the calibrated noise, and so have the steps since the last correction. The band of a cold run
        is that of long runs.
        """
        mean, cov = self._known.calibrated
        return StartState(np.asarray(mean), np.asarray(cov), past_u, LONG if self.cold else self._age)

    def predict(self, u: Any, steps: int | None, past_u: Float64[np.ndarray, "reach Du"], name: str) -> Trajectory:
        """Predict the next steps; see `Live.predict`."""
        model, state = self._model, self.make_state(past_u)
        origin = Origin(replace(state, age=0), name)
        path = simulate_chain(model.preprocessor, model.chain, u, "moments", origin, steps, samples=2, seed=0)
        return model.calibrate_path(path, state.age + 1 + np.arange(len(path)), self.cold)


@jax.jit
def _advance(
    chains: ByNoise[Chain[Posterior]], belief: ByNoise[JointState], inputs_now: Float[AnyArray, " Du"]
) -> tuple[ByNoise[JointState], Moments]:
    known = jax.tree.map(lambda rows: rows[0], compute_known_part(chains.fitted.hidden[0], inputs_now[None]))
    states = [advance_moments(chain)(state, known) for chain, state in zip(chains, belief, strict=True)]
    y = observe_moments(chains.calibrated)(states[1])
    return ByNoise(*states), Moments(y.mean, jnp.diagonal(y.cov))


@jax.jit
def _correct(chain: Chain[Posterior], belief: ByNoise[JointState], y: Float[AnyArray, " Dy"]) -> ByNoise[JointState]:
    state = belief.fitted
    corrected = make_update(chain)(state, observe_moments(chain)(state), y)
    return ByNoise(corrected, corrected)
