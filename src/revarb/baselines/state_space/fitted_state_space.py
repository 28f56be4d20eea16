"""Trained state-space models: simulation and filtering by particles.

The model is x_t = f(x_{t−1}, ū_t) + v_t, y_t = (the first entries of x_t) + e_t (docs/theory/derivation.md, Eq. 56).
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Key

from revarb.data.preprocessor import Preprocessor, RunInputs
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import input_windows_after
from revarb.errors import InputError, check_integer, check_seed
from revarb.models.base import Fitted
from revarb.models.model_file import MAX_ORDER, Arrays, Header, blank_array, check_starts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.simulation.chain import StartState
from revarb.simulation.starts import Origin, StartChoice, choose_origin

MAX_STATES = 1000  # of a model file
StateSpaceMethod = Literal["mean", "samples"]
PARTICLES = 500  # of the filter that infers the state after a measured window
SETTLING = 20  # first rows of a cold run that scores leave out: the unknown first state is forgotten


@runtime_checkable
class Dynamics(Protocol):
    """The transitions of K particles, each with its own function, and the noise of the outputs. A tree of arrays."""

    @property
    def output_std(self) -> Float[AnyArray, " Dy"]:
        """Standard deviation of the noise of every output."""
        ...

    def mean(self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, " Du"]) -> Float[AnyArray, "K Dx"]:
        """Expected next states."""
        ...

    def advance(
        self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, " Du"], key: Key[jax.Array, ""]
    ) -> Float[AnyArray, "K Dx"]:
        """Sampled next states, process noise included."""
        ...


@jax.jit
def run_mean_states(
    dynamics: Dynamics, first: Float[AnyArray, " Dx"], u_bar: Float[AnyArray, "T Du"]
) -> Float[AnyArray, "T Dx"]:
    """Run one particle by the expected next state, without noise."""

    def step(x, inputs_now):
        x = dynamics.mean(x, inputs_now)
        return x, x[0]

    return jax.lax.scan(step, first[None], u_bar)[1]


@jax.jit
def run_particles(
    dynamics: Dynamics, first: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, "T Du"], key: Key[jax.Array, ""]
) -> Float[AnyArray, "T K Dx"]:
    """Run sampled particles."""

    def step(x, now):
        x = dynamics.advance(x, *now)
        return x, x

    return jax.lax.scan(step, first, (u_bar, jax.random.split(key, len(u_bar))))[1]


@jax.jit
def filter_particles(
    dynamics: Dynamics,
    first: Float[AnyArray, "K Dx"],
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    key: Key[jax.Array, ""],
) -> tuple[Float[AnyArray, "K Dx"], Float[AnyArray, ""]]:
    """Filter measured outputs (NaN where missing) by the bootstrap filter; return the last particles and log p(y).

    States are resampled, functions stay where they are: a short window tells much of the state and little of f.
    """

    def step(x, now):
        inputs_now, measured, step_key = now
        move_key, resample_key = jax.random.split(step_key)
        x = dynamics.advance(x, inputs_now, move_key)
        log_weights = log_likelihoods(x, measured, dynamics.output_std)
        evidence = jax.nn.logsumexp(log_weights) - jnp.log(len(x))
        return x[resample(jax.nn.softmax(log_weights), resample_key)], evidence

    keys = jax.random.split(key, len(u_bar))
    last, evidence = jax.lax.scan(step, first, (u_bar, y, keys))
    return last, jnp.sum(evidence)


def log_likelihoods(
    x: Float[AnyArray, "K Dx"], y: Float[AnyArray, " Dy"], output_std: Float[AnyArray, " Dy"]
) -> Float[AnyArray, " K"]:
    """log p(y | x) of every particle; a missing output (NaN) says nothing."""
    measured = jnp.isfinite(y)
    errors = jnp.where(measured, jnp.where(measured, y, 0.0) - x[:, : len(y)], 0.0)
    constant = jnp.where(measured, jnp.log(output_std) + 0.5 * jnp.log(2.0 * jnp.pi), 0.0)
    return -jnp.sum(0.5 * (errors / output_std) ** 2 + constant, axis=1)


def resample(weights: Float[AnyArray, " K"], key: Key[jax.Array, ""]) -> AnyArray:
    """Systematic resampling: the particles to keep, each about K times its weight often."""
    count = len(weights)
    points = (jnp.arange(count) + jax.random.uniform(key)) / count
    return jnp.searchsorted(jnp.cumsum(weights), points).clip(max=count - 1)


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
        origin = choose_origin(start, self.cold, self.final_states, self._infer_state)
        inputs = self.preprocessor.read_inputs(u, steps)
        samples, seed = check_integer("samples", samples, least=2), check_seed(seed)
        return self._run_mean(inputs, origin) if method == "mean" else self._run_samples(inputs, origin, samples, seed)

    def _run_mean(self, inputs: RunInputs, origin: Origin) -> Trajectory:
        u_bar = input_windows_after(origin.state.past_u, inputs.z, self.order)
        states = run_mean_states(self.mean_dynamics(), origin.state.mean, u_bar)
        mean = states[:, : len(self.output_names)]
        return self.preprocessor.to_trajectory("mean", self.skip, mean, None, start=origin.name, inputs=inputs)

    def _run_samples(self, inputs: RunInputs, origin: Origin, samples: int, seed: int) -> Trajectory:
        u_bar = input_windows_after(origin.state.past_u, inputs.z, self.order)
        keys = jax.random.split(jax.random.key(seed), 4)
        dynamics = self.draw_dynamics(keys[0], samples)
        states = run_particles(dynamics, _draw_states(origin.state, keys[1], samples), u_bar, keys[2])
        f = np.swapaxes(np.asarray(states)[..., : len(self.output_names)], 0, 1)
        output_std = np.asarray(dynamics.output_std)
        y = f + output_std * np.asarray(jax.random.normal(keys[3], f.shape))
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverged is refused below
            mean, variance = f.mean(axis=0), f.var(axis=0) + output_std**2
        prep = self.preprocessor
        return prep.to_trajectory("samples", self.skip, mean, variance, samples=y, start=origin.name, inputs=inputs)

    def _infer_state(self, record: Series) -> StartState:
        # The state after the last sample of a measured record, by a particle filter from a cold start.
        z, y = self.preprocessor.check_window(record)
        keys = jax.random.split(jax.random.key(0), 3)
        u_bar = input_windows_after(self.cold.past_u, z, self.order)
        dynamics, first = self.draw_dynamics(keys[0], PARTICLES), _draw_states(self.cold, keys[1], PARTICLES)
        particles, _ = filter_particles(dynamics, first, u_bar, y, keys[2])
        return summarise_states(np.asarray(particles), self.cold, z)


def summarise_states(
    states: Float64[np.ndarray, "S Dx"], cold: StartState, z: Float64[np.ndarray, "N Du"], bias: bool = False
) -> StartState:
    """Mean and covariance of states after the last sample of a record with inputs z, and its last inputs."""
    past_u = np.concatenate([cold.past_u, z])[len(z) :]  # the last `reach` inputs
    return StartState(states.mean(axis=0), np.cov(states.T, bias=bias).reshape(cold.cov.shape), past_u)


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


def check_states(states: int, record: Series) -> None:
    """Raise `InputError` where a record has more outputs than there are states."""
    if states < (outputs := len(record.output_names)):
        raise InputError(f"states={states} are fewer than the {outputs} outputs, which need a state each; use more")


def write_starts(model: FittedStateSpace) -> tuple[dict[str, int], dict[str, Any]]:
    """The start states of a model, as header and arrays: `cold`, then the ends of the records, stacked."""
    starts = (model.cold, *model.final_states)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *starts)
    return {"states": model.states, "starts": len(starts)}, {"starts": stacked}


def make_blank_starts(header: Header, prep: Preprocessor) -> dict[str, Any]:
    """The template of what `write_starts` wrote."""
    states = check_integer("states", header["states"], len(prep.output_names), MAX_STATES)
    starts = check_integer("starts", header["starts"], 2, MAX_ORDER)
    past_u = blank_array(starts, prep.order.reach, len(prep.input_names))
    return {
        "starts": {"mean": blank_array(starts, states), "cov": blank_array(starts, states, states), "past_u": past_u}
    }


def read_starts(stacked: Arrays) -> tuple[StartState, tuple[StartState, ...]]:
    """`cold` and `final_states` from the arrays of `write_starts`, validated."""
    cold, *final_states = map(StartState, stacked["mean"], stacked["cov"], stacked["past_u"])
    check_starts((cold, *final_states))
    return cold, tuple(final_states)
