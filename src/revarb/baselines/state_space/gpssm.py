"""GP state-space models with variational inference, after Doerr (2018), Ialongo (2019) and Frigola (2014)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, Float64, Int, Key

from revarb.baselines.state_space.elbo import Segments, SSMParameters, estimate_elbo
from revarb.baselines.state_space.fitted_state_space import FittedStateSpace, infer_final_state, make_cold_state
from revarb.baselines.state_space.gpssm_start import (
    guess_states,
    start_corrections,
    start_recognition,
    start_transition,
)
from revarb.baselines.state_space.structures import STRUCTURES
from revarb.baselines.state_space.transition import DrawnTransition, Transition
from revarb.baselines.subsequences import Subsequences, cut_rows, delay_inputs
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, as_records
from revarb.data.windows import Order
from revarb.errors import ComputationError, InputError, check_integer, check_number, check_seed
from revarb.models.summary import SummaryTable
from revarb.optim.status import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.runtime.progress import progress_bar
from revarb.simulation.chain import StartState
from revarb.training.initial_values import fill_gaps

Structure = Literal["prior", "mean-field", "markov"]
UPDATES_PER_CALL = 50  # updates per compiled call; an interrupt is noticed after each
DIVERGED = "the training of the GP-SSM diverged; use a smaller learning_rate"
ESTIMATES = 50  # estimates of the bound that the end of a training averages over


@dataclass(frozen=True)
class GPSSM:
    """A GP state-space model x_t = x_{t−1} + f(x_{t−1}, u) + noise, whose first states are the outputs.

    f has one sparse GP per state. Trained by Adam on a stochastic bound, on random sub-trajectories whose first state
    is recognised from their first samples.

    Parameters
    ----------
    states : int
        Number of states, at least one per output.
    structure : "prior", "mean-field" or "markov"
        How the variational states follow f. "prior": by the model's own transition (PR-SSM, Doerr et al. 2018).
        "markov": by the transition with a linear correction at every sample (VCDT, Ialongo et al. 2019).
        "mean-field": by a linear chain that does not depend on f (after Frigola et al. 2014).
    mean : "identity" or "linear"
        Mean of the next state: the state itself, or a linear function of states and inputs that is trained too.
    inducing : int
        Number of inducing inputs of every GP.
    input_delay : int
        Age of the newest input: 1 by default, 0 for direct feedthrough, k for a dead time of k samples.
    subsequence : int
        Length of a sub-trajectory; less if the records are shorter.
    window : int
        Number of samples that recognise the first state of a sub-trajectory.
    batch : int
        Number of sub-trajectories per update.
    samples : int
        Number of sampled paths per sub-trajectory.
    learning_rate : float
        Of Adam at the start; it falls to a hundredth.
    updates : int
        Number of updates, in rounds of 50.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> spec = revarb.GPSSM(states=2, inducing=8, subsequence=20, window=4, batch=2, samples=2, updates=50)
    >>> model = spec.fit(revarb.Series(u, y))
    >>> path = model.simulate(u)
    >>> path.mean.shape, path.std.shape
    ((60, 1), (60, 1))
    """

    states: int = 4
    structure: Structure = "prior"
    mean: Literal["identity", "linear"] = "identity"
    inducing: int = 20
    input_delay: int = 1
    subsequence: int = 50
    window: int = 10
    batch: int = 10
    samples: int = 10
    learning_rate: float = 0.02
    updates: int = 600

    def __post_init__(self):
        for name, least in (("states", 1), ("inducing", 1), ("input_delay", 0), ("subsequence", 2), ("window", 1),
                            ("batch", 1), ("samples", 1), ("updates", 1)):  # fmt: skip
            object.__setattr__(self, name, check_integer(name, getattr(self, name), least))
        object.__setattr__(self, "learning_rate", check_number("learning_rate", self.learning_rate, above=0.0))
        if not isinstance(self.structure, str) or self.structure not in STRUCTURES:
            raise InputError(f"structure must be one of {', '.join(STRUCTURES)}; received {self.structure!r}")
        if not isinstance(self.mean, str) or self.mean not in ("identity", "linear"):
            raise InputError(f"mean must be 'identity' or 'linear', received {self.mean!r}")

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedGPSSM":
        """Train the model on one record or several.

        Ctrl-C returns the model as it is then.

        Parameters
        ----------
        train : Series or list of Series
            The training records; outputs may be missing.
        seed : int
            Seed of the inducing inputs, the sub-trajectories and the sampled states.
        progress : bool
            Show a progress bar, or where the output is not a terminal, a line now and then.

        Returns
        -------
        FittedGPSSM

        Raises
        ------
        InputError
            If the records do not fit the settings.
        ComputationError
            If the training diverges.
        """
        records, number = as_records(train), check_seed(seed)
        prep = Preprocessor.from_records(records, Order(0, 1 if records[0].input_names else 0, self.input_delay))
        data = _prepare(self, prep, records)
        parameters, status = _train(self, data, number, progress)
        with capture_interrupts() as pressed:  # an exception here would lose the result
            bound = _average_bound(self, parameters, data)
            cold = make_cold_state(_recognise(parameters, data), np.asarray(parameters.start.variance), prep)
            ends = tuple(_end_states(prep, parameters.transition, cold, records))
            _check_finite_fit(bound, ends)
        status = Status.INTERRUPTED if pressed else status
        return FittedGPSSM(prep, status, number, cold, ends, self, parameters.transition, bound)


@dataclass(frozen=True, eq=False, repr=False)
class FittedGPSSM(FittedStateSpace):
    """A trained GP state-space model.

    Attributes
    ----------
    spec : GPSSM
        Its configuration.
    transition : Transition
        Posterior of f, and the noises, z-scored.
    bound : float
        Estimate of the evidence lower bound at the end.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> spec = revarb.GPSSM(states=2, inducing=8, subsequence=20, window=4, batch=2, samples=2, updates=50)
    >>> spec.fit(revarb.Series(u, y)).simulate(u, start="continue")
    Trajectory(60 rows, outputs ('y',), method='samples', start='continued')
    """

    spec: GPSSM
    transition: Transition
    bound: float

    def mean_dynamics(self) -> DrawnTransition:
        """The transition of one particle by the mean of the inducing outputs.

        Returns
        -------
        DrawnTransition
        """
        return self.transition.expect()

    def draw_dynamics(self, key: Key[jax.Array, ""], count: int) -> DrawnTransition:
        """The transitions of particles, each with inducing outputs drawn from their posterior.

        Parameters
        ----------
        key : key
            Random key.
        count : int
            Number of particles.

        Returns
        -------
        DrawnTransition
        """
        return self.transition.draw(key, count)

    def _own_tables(self) -> tuple[SummaryTable, ...]:
        process = ", ".join(f"{std:.3g}" for std in np.sqrt(np.asarray(self.transition.process_variance)))
        rows = (
            ("states", str(self.states)),
            ("structure of q(x)", self.spec.structure),
            ("estimate of the bound", f"{self.bound:.2f}"),
            ("process noise, z-scored", process),
            ("output noise, z-scored", ", ".join(f"{std:.3g}" for std in np.asarray(self.transition.output_std))),
        )
        return (SummaryTable("fit", ("", ""), rows),)


class _Arrays(NamedTuple):
    # The training records, z-scored and stacked; where sub-trajectories can start, and what recognises their states.
    u_bar: Float[AnyArray, "N Du"]
    y: Float[AnyArray, "N Dy"]
    starts: Int[AnyArray, " C"]
    windows: Float[AnyArray, "C W"]
    rows: int  # samples of the records without padding


class _Data(NamedTuple):
    cuts: Subsequences
    arrays: _Arrays
    guess: Float64[np.ndarray, "N Dx"]
    later: Int[np.ndarray, " R"]  # samples with another one before them in their record
    all_windows: Float64[np.ndarray, "_ W"]  # at all samples of the records that have a full one


def _prepare(spec: GPSSM, prep: Preprocessor, records: Sequence[Series]) -> _Data:
    outputs = len(prep.output_names)
    if spec.states < outputs:
        raise InputError(f"states={spec.states} are fewer than the {outputs} outputs, which are states; use more")
    lengths = [len(record) for record in records]
    length = min(spec.subsequence, max(lengths))
    u_bars = [_pad(delay_inputs(prep, prep.scaling.inputs(record.u)), length, 0.0) for record in records]
    ys = [_pad(prep.scaling.outputs(record.y), length, np.nan) for record in records]
    cuts = Subsequences.from_records(u_bars, ys, [len(y) for y in ys], length)
    known = np.concatenate([cuts.u_bar, np.concatenate([fill_gaps(y) for y in ys])], axis=1)
    firsts, window = np.cumsum([0, *(len(y) for y in ys[:-1])]), min(spec.window, length)
    later = np.concatenate([first + np.arange(1, count) for first, count in zip(firsts, lengths, strict=True)])
    ends = zip(firsts, lengths, strict=True)
    full = np.concatenate([first + np.arange(max(count - window + 1, 1)) for first, count in ends])
    arrays = _Arrays(cuts.u_bar, cuts.y, cuts.starts, _cut_windows(known, cuts.starts, window), sum(lengths))
    return _Data(cuts, arrays, guess_states(ys, spec.states), later, _cut_windows(known, full, window))


def _pad(values: Float64[np.ndarray, "N D"], length: int, value: float) -> Float64[np.ndarray, "_ D"]:
    # A record that is shorter than a sub-trajectory is one of its own, with missing outputs at its end.
    return np.pad(values, ((0, max(length - len(values), 0)), (0, 0)), constant_values=value)


def _cut_windows(
    known: Float64[np.ndarray, "N D"], starts: Int[np.ndarray, " C"], window: int
) -> Float64[np.ndarray, "C W"]:
    return known[starts[:, None] + np.arange(window)].reshape(len(starts), -1)


def _start(spec: GPSSM, data: _Data, rng: np.random.Generator) -> SSMParameters:
    cuts, guess = data.cuts, data.guess
    outputs, linear_mean = cuts.y.shape[1], spec.mean == "linear"
    transition = start_transition(guess, cuts.u_bar, outputs, data.later, spec.inducing, linear_mean, rng)
    start = start_recognition(np.asarray(data.arrays.windows), guess[cuts.starts])
    return SSMParameters(transition, start, start_corrections(spec.structure, guess))


def _train(spec: GPSSM, data: _Data, seed: int, progress: bool) -> tuple[SSMParameters, Status]:
    # Adam in compiled calls of several updates each.
    calls, key, status = -(-spec.updates // UPDATES_PER_CALL), jax.random.key(seed), Status.ITERATION_LIMIT
    parameters = _start(spec, data, np.random.default_rng(seed))
    state = _make_optimiser(spec, calls).init(parameters)  # pyright: ignore[reportArgumentType] (a tree)
    with progress_bar("fitting GP-SSM", calls * UPDATES_PER_CALL, progress) as update:
        for done in range(1, calls + 1):
            key, now = jax.random.split(key)
            with capture_interrupts() as pressed:
                parameters, state, average = _run_updates(
                    parameters, state, data.arrays, now, spec, data.cuts.length, calls
                )
                bound = float(average)  # waits for the result, so that Ctrl-C is captured meanwhile
            if not np.isfinite(bound):
                raise ComputationError(DIVERGED)
            update(done * UPDATES_PER_CALL, f"bound {bound:.1f}")
            if pressed:
                status = Status.INTERRUPTED
                break
    return jax.tree.map(np.asarray, parameters), status


@partial(jax.jit, static_argnames=("spec", "length", "calls"))
def _run_updates(
    parameters: SSMParameters,
    state: optax.OptState,
    arrays: _Arrays,
    key: Key[jax.Array, ""],
    spec: GPSSM,
    length: int,
    calls: int,
) -> tuple[SSMParameters, optax.OptState, Float[AnyArray, ""]]:
    optimiser = _make_optimiser(spec, calls)

    def update(carry, now):
        parameters, state = carry
        bound, slope = jax.value_and_grad(_draw_bound)(parameters, spec, arrays, length, now)
        changes, state = optimiser.update(jax.tree.map(jnp.negative, slope), state, parameters)
        return (eqx.apply_updates(parameters, changes), state), bound

    keys = jax.random.split(key, UPDATES_PER_CALL)
    (parameters, state), bounds = jax.lax.scan(update, (parameters, state), keys)
    return parameters, state, jnp.mean(bounds) * arrays.rows


def _draw_bound(
    parameters: SSMParameters,
    spec: GPSSM,
    arrays: _Arrays,
    length: int,
    key: Key[jax.Array, ""],
) -> Float[AnyArray, ""]:
    # The bound per sample of the records, estimated on random sub-trajectories.
    u_bar, y, starts, windows, rows = arrays
    if spec.mean == "identity":
        parameters = eqx.tree_at(lambda tree: tree.transition.linear, parameters, replace_fn=jax.lax.stop_gradient)
    choice_key, elbo_key = jax.random.split(key)
    chosen = jax.random.choice(choice_key, len(starts), (spec.batch,))
    first = starts[chosen]
    corrections = jax.tree.map(lambda leaf: cut_rows(leaf, first, length), parameters.corrections)
    segments = Segments(cut_rows(u_bar, first, length), cut_rows(y, first, length), windows[chosen], corrections)
    return estimate_elbo(parameters, segments, rows, STRUCTURES[spec.structure], spec.samples, elbo_key) / rows


def _make_optimiser(spec: GPSSM, calls: int) -> optax.GradientTransformation:
    rate = optax.cosine_decay_schedule(spec.learning_rate, calls * UPDATES_PER_CALL, alpha=0.01)
    return optax.chain(optax.clip_by_global_norm(10.0), optax.adam(rate))


@partial(jax.jit, static_argnames=("spec", "length"))
def _draw_bounds(
    parameters: SSMParameters, spec: GPSSM, arrays: _Arrays, length: int, keys: Key[jax.Array, " E"]
) -> Float[AnyArray, " E"]:
    return jax.lax.map(lambda key: _draw_bound(parameters, spec, arrays, length, key), keys)


def _average_bound(spec: GPSSM, parameters: SSMParameters, data: _Data) -> float:
    keys = jax.random.split(jax.random.key(0), ESTIMATES)
    bounds = _draw_bounds(parameters, spec, data.arrays, data.cuts.length, keys)
    return float(jnp.mean(bounds)) * data.arrays.rows


def _recognise(parameters: SSMParameters, data: _Data) -> Float64[np.ndarray, "_ Dx"]:
    # The recognised states along the records.
    return np.asarray(parameters.start.weights.mean(data.all_windows))


def _check_finite_fit(bound: float, ends: Sequence[StartState]) -> None:
    if not np.isfinite(bound) or not all(np.isfinite(end.mean).all() for end in ends):
        raise ComputationError(DIVERGED)


def _end_states(
    prep: Preprocessor, transition: Transition, cold: StartState, records: Sequence[Series]
) -> Iterator[StartState]:
    for record in records:
        z, y = prep.scaling.inputs(record.u), prep.scaling.outputs(record.y)
        yield infer_final_state(transition.draw, cold, prep.order, z, y)
