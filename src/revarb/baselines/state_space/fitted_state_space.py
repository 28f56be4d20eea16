"""Trained state-space models: sampled and mean-only runs from cold, continued and measured starts."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Float, Float64, Key

from revarb.baselines.state_space.particles import Dynamics, filter_particles, run_mean_states, run_particles
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order, input_windows_after
from revarb.errors import InputError, check_integer, check_seed
from revarb.models.base import Fitted
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.simulation.chain import StartState
from revarb.simulation.starts import Origin, StartChoice, choose_origin

StateSpaceMethod = Literal["mean", "samples"]
PARTICLES = 500  # of the filter that infers the state after a measured window
SETTLING = 20  # first rows of a cold run that scores leave out: the unknown first state is forgotten


@dataclass(frozen=True, eq=False, repr=False)
class FittedStateSpace(Fitted):
    """A trained model x_t = f(x_{t−1}, u) + noise whose first states are the outputs.

    Attributes
    ----------
    cold : StartState
        Mean and covariance of the states along the training records, from which a cold run starts.
    final_states : tuple of StartState
        The state at the end of each training record.
    """

    cold: StartState
    final_states: tuple[StartState, ...]

    methods = ("mean", "samples")

    @property
    def skip(self) -> int:
        """Number of first rows of a cold run that scores leave out."""
        return max(SETTLING, self.preprocessor.skip)

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.cold.mean)

    @abstractmethod
    def mean_dynamics(self) -> Dynamics:
        """The transition of one particle by the mean of the posterior."""

    @abstractmethod
    def draw_dynamics(self, key: Key[jax.Array, ""], count: int) -> Dynamics:
        """The transitions of `count` particles, each by a function drawn from the posterior."""

    @with_numerics
    def simulate(
        self,
        u: Any = None,
        method: StateSpaceMethod = "samples",
        *,
        start: StartChoice = "cold",
        steps: int | None = None,
        samples: int = 200,
        seed: int = 0,
    ) -> Trajectory:
        """Free simulation on new inputs: one row out per row in, raw units in and out.

        Parameters
        ----------
        u : array-like [T, inputs] or data frame
            Inputs; None for a system without inputs.
        method : "samples" or "mean"
            "samples": sampled trajectories with process noise, each of which keeps one draw of what was learnt of f;
            mean and standard deviation are theirs. "mean": the expected next state at every step, no uncertainty.
        start : str, Window or StartState
            "cold": the state is drawn from those along the training records. "continue": the end of the (last)
            training record; or one of `final_states`. `Window(u, y)`: after these measured samples, by a particle
            filter, whose random numbers are always the same.
        steps : int, optional
            Number of steps for a system without inputs.
        samples, seed : int
            Number of trajectories of method "samples", and the seed that draws them.

        Returns
        -------
        Trajectory
            One row per row of `u`.

        Raises
        ------
        InputError
            If the inputs or the start do not fit the model.
        ComputationError
            If the simulation diverges.
        """
        if method not in self.methods:
            raise InputError(f"method must be 'samples' or 'mean', received {method!r}")
        origin = choose_origin(start, Origin(self.cold, "cold"), self.final_states, self._infer_state)
        z = self.preprocessor.check_inputs(u, steps, warm=not origin.cold)
        u_bar = input_windows_after(origin.state.past_u, z, self.order)
        run = self._run_samples if method == "samples" else self._run_mean
        path = run(u_bar, origin, check_integer("samples", samples, least=2), check_seed(seed))
        return self.preprocessor.add_inputs(path, u)

    def _run_mean(self, u_bar: Float64[np.ndarray, "T Du"], origin: Origin, _samples: int, _seed: int) -> Trajectory:
        states = run_mean_states(self.mean_dynamics(), origin.state.mean, u_bar)
        mean = states[:, : len(self.output_names)]
        return self.preprocessor.to_trajectory("mean", self.skip, mean, None, start=origin.name)

    def _run_samples(self, u_bar: Float64[np.ndarray, "T Du"], origin: Origin, samples: int, seed: int) -> Trajectory:
        keys = jax.random.split(jax.random.key(seed), 4)
        dynamics = self.draw_dynamics(keys[0], samples)
        states = run_particles(dynamics, _draw_states(origin.state, keys[1], samples), u_bar, keys[2])
        f = np.swapaxes(np.asarray(states)[..., : len(self.output_names)], 0, 1)
        output_std = np.asarray(dynamics.output_std)
        y = f + output_std * np.asarray(jax.random.normal(keys[3], f.shape))
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverged is refused below
            mean, variance = f.mean(axis=0), f.var(axis=0) + output_std**2
        prep = self.preprocessor
        return prep.to_trajectory("samples", self.skip, mean, variance, samples=y, start=origin.name)

    def _infer_state(self, window: Series) -> StartState:
        z, y = self.preprocessor.check_window(window)
        return infer_final_state(self.draw_dynamics, self.cold, self.order, z, y)


def infer_final_state(
    draw_dynamics: Any, cold: StartState, order: Order, z: Float64[np.ndarray, "N Du"], y: Float64[np.ndarray, "N Dy"]
) -> StartState:
    """Infer the state after the last sample of a measured record, z-scored, by a particle filter from a cold start."""
    keys = jax.random.split(jax.random.key(0), 3)
    u_bar = input_windows_after(cold.past_u, z, order)
    dynamics = draw_dynamics(keys[0], PARTICLES)
    particles = np.asarray(filter_particles(dynamics, _draw_states(cold, keys[1], PARTICLES), u_bar, y, keys[2])[0])
    past_u = np.concatenate([cold.past_u, z])[len(z) :]  # the last `reach` inputs
    return StartState(particles.mean(axis=0), np.cov(particles.T).reshape(cold.cov.shape), past_u)


def make_cold_state(
    states: Float64[np.ndarray, "N Dx"], variance: Float64[np.ndarray, " Dx"], prep: Preprocessor
) -> StartState:
    """The start state of a cold run: mean and covariance of states along the records, inputs at their mean.

    `variance` is the uncertainty of each of these states.
    """
    spread = np.cov(states.T, bias=True).reshape(states.shape[1], states.shape[1])
    past_u = np.zeros((prep.order.reach, len(prep.input_names)))
    return StartState(states.mean(axis=0), spread + np.diag(variance), past_u)


def _draw_states(start: StartState, key: Key[jax.Array, ""], count: int) -> Float[AnyArray, "K Dx"]:
    return jax.random.multivariate_normal(key, start.mean, start.cov, (count,), method="svd")
