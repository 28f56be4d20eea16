"""The observer of a live run: the joint Gaussian of its states, conditioned on outputs as they are measured.

docs/theory/derivation.md, Eqs. 31 to 34, 43 and 55.
"""

from dataclasses import replace
from typing import Any, NamedTuple

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


class Belief(NamedTuple):
    """What is known of the states: two joint Gaussians, equal right after a correction.

    Corrections are made with the noise of the fit, predictions with the calibrated noise, as in `predict_ahead`.
    """

    fitted: JointState
    calibrated: JointState


class ObserverChains(NamedTuple):
    """The layers of a model with the noise of the fit, and with the calibrated noise."""

    fitted: Chain[Posterior]
    calibrated: Chain[Posterior]


class Observer:
    """Keeps the belief of a run, z-scored. It does not check what it is given, and `Live` calls it in float64."""

    def __init__(self, model: FittedRGP):
        self._model = model
        # On the device once: copies of the layers in every step would take longer than the step.
        self.chains = jax.device_put(ObserverChains(model.trained.chain, model.chain))
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
    def _known(self) -> Belief:
        assert self._belief is not None
        return self._belief

    def stop(self) -> None:
        """Forget the belief."""
        self._belief: Belief | None = None

    def begin(self, mean: Float[AnyArray, " S"], cov: Float[AnyArray, "S S"], cold: bool, age: int) -> None:
        """Begin at a state, `age` steps after the last measured output; `cold` says that there was none."""
        self._belief = Belief(JointState(mean, cov), JointState(mean, cov))
        self.cold, self._age = cold, age

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
def _advance(chains: ObserverChains, belief: Belief, inputs_now: Float[AnyArray, " Du"]) -> tuple[Belief, Moments]:
    known = jax.tree.map(lambda rows: rows[0], compute_known_part(chains.fitted.hidden[0], inputs_now[None]))
    states = [advance_moments(chain)(state, known) for chain, state in zip(chains, belief, strict=True)]
    y = observe_moments(chains.calibrated)(states[1])
    return Belief(*states), Moments(y.mean, jnp.diagonal(y.cov))


@jax.jit
def _correct(chain: Chain[Posterior], belief: Belief, y: Float[AnyArray, " Dy"]) -> Belief:
    state = belief.fitted
    corrected = make_update(chain)(state, observe_moments(chain)(state), y)
    return Belief(corrected, corrected)
