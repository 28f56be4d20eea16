"""GP state-space models with variational inference, after Doerr (2018), Ialongo (2019) and Frigola (2014)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, Float64, Int, Key

from revarb.baselines.state_space import variational
from revarb.baselines.state_space.fitted_state_space import (
    FittedStateSpace,
    check_states,
    make_blank_starts,
    make_cold_state,
    read_starts,
    write_starts,
)
from revarb.baselines.state_space.transition import DrawnTransition, Transition, fit_linear_map, start_transition
from revarb.baselines.training_rows import DelayedRecords, Subsequences, Training, cut_subsequences, run_adam
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, as_records
from revarb.errors import ComputationError, InputError, check_integer, check_number, check_seed
from revarb.fitting.initial_values import fill_gaps
from revarb.gp.layer import Layer, Linear, inverse_softplus
from revarb.models import model_file
from revarb.models.configuration import Configuration, check_word
from revarb.models.recipe import Status
from revarb.models.summary import SummaryTable
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.runtime.progress import progress_bar

Structure = Literal["prior", "mean-field", "markov"]
START_VARIANCE = 0.01  # of the recognised first state at the start
UPDATES_PER_CALL = 50  # updates per compiled call; an interrupt is noticed after each
ESTIMATES = 50  # estimates of the bound that the end of a training averages over


@dataclass(frozen=True)
class GPSSM(Configuration):
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
        counts = ("states", "inducing", "window", "batch", "samples", "updates")
        self._check(counts, check_integer, least=1)
        self._check(("input_delay",), check_integer, least=0)
        self._check(("subsequence",), check_integer, least=2)
        self._check(("learning_rate",), check_number, above=0.0)
        self._check(("structure",), check_word, tuple(variational.STRUCTURES))
        self._check(("mean",), check_word, ("identity", "linear"))

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
        records, seed = as_records(train), check_seed(seed)
        check_states(self.states, records[0])
        delayed = DelayedRecords.from_records(records, self.input_delay)
        prep, data = delayed.prep, _prepare(self, delayed)
        parameters, status = _train(self, data, seed, progress)
        with capture_interrupts() as pressed:  # an exception here would lose the result
            keys = jax.random.split(jax.random.key(0), ESTIMATES)
            average = jnp.mean(_draw_bounds(parameters, self, data.arrays, data.length, keys))
            bound = float(average) * int(data.arrays.rows)
            recognised = np.asarray(parameters.start.weights.mean(data.all_windows))
            cold = make_cold_state(recognised, np.asarray(parameters.start.variance), prep)
            model = FittedGPSSM(prep, status, seed, cold, (), self, parameters.transition, bound)
            model = model._filter_ends(records)
            if not np.isfinite(bound) or not all(np.isfinite(end.mean).all() for end in model.final_states):
                raise _diverged()
        return replace(model, status=Status.INTERRUPTED) if pressed else model

    @property
    def _calls(self) -> int:
        return -(-self.updates // UPDATES_PER_CALL)


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

    def _filter_ends(self, records: Sequence[Series]) -> "FittedGPSSM":
        # The model with the states at the ends of its training records.
        return replace(self, final_states=tuple(self._infer_state(record) for record in records))

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
    rows: int | Int[AnyArray, ""]  # samples of the records without padding


class _Data(NamedTuple):
    arrays: _Arrays
    length: int  # of a sub-trajectory
    guess: Float64[np.ndarray, "N Dx"]
    later: Int[np.ndarray, " R"]  # samples with another one before them in their record
    all_windows: Float64[np.ndarray, "_ W"]  # at all samples of the records that have a full one


def _prepare(spec: GPSSM, delayed: DelayedRecords) -> _Data:
    lengths = [len(y) for y in delayed.ys]
    length = min(spec.subsequence, max(lengths))
    u_bars = [_pad(u_bar, length, 0.0) for u_bar in delayed.u_bars]
    ys = [_pad(y, length, np.nan) for y in delayed.ys]
    cuts = Subsequences.from_records(u_bars, ys, [len(y) for y in ys], length)
    known = np.concatenate([cuts.u_bar, np.concatenate([fill_gaps(y) for y in ys])], axis=1)
    firsts, window = np.cumsum([0, *(len(y) for y in ys[:-1])]), min(spec.window, length)
    records = list(zip(firsts, lengths, strict=True))
    later = np.concatenate([first + np.arange(1, count) for first, count in records])
    full = np.concatenate([first + np.arange(max(count - window + 1, 1)) for first, count in records])
    arrays = _Arrays(cuts.u_bar, cuts.y, cuts.starts, _cut_windows(known, cuts.starts, window), sum(lengths))
    return _Data(arrays, length, variational.guess_states(ys, spec.states), later, _cut_windows(known, full, window))


def _pad(values: Float64[np.ndarray, "N D"], length: int, value: float) -> Float64[np.ndarray, "_ D"]:
    # A record that is shorter than a sub-trajectory is one of its own, with missing outputs at its end.
    return np.pad(values, ((0, max(length - len(values), 0)), (0, 0)), constant_values=value)


def _cut_windows(
    known: Float64[np.ndarray, "N D"], starts: Int[np.ndarray, " C"], window: int
) -> Float64[np.ndarray, "C W"]:
    return known[starts[:, None] + np.arange(window)].reshape(len(starts), -1)


def _start(spec: GPSSM, data: _Data, rng: np.random.Generator) -> variational.SSMParameters:
    arrays, guess = data.arrays, data.guess
    outputs, linear_mean = arrays.y.shape[1], spec.mean == "linear"
    transition = start_transition(guess, np.asarray(arrays.u_bar), outputs, data.later, spec.inducing, linear_mean, rng)
    recognition = fit_linear_map(np.asarray(arrays.windows), guess[arrays.starts])
    start = variational.RecognisedStart(recognition, np.full(spec.states, inverse_softplus(START_VARIANCE)))
    return variational.SSMParameters(transition, start, variational.start_corrections(spec.structure, guess))


def _train(spec: GPSSM, data: _Data, seed: int, progress: bool) -> tuple[variational.SSMParameters, Status]:
    # Adam in compiled calls of several updates each.
    key, parameters = jax.random.key(seed), _start(spec, data, np.random.default_rng(seed))
    now = parameters, _make_rule(spec).init(parameters)  # pyright: ignore[reportArgumentType] (a tree)
    pressed: list[int] = []
    with progress_bar("fitting GP-SSM", spec._calls * UPDATES_PER_CALL, progress) as update:
        for done in range(1, spec._calls + 1):
            key, round_key = jax.random.split(key)
            with capture_interrupts() as pressed:
                now, average = _run_updates(now, data.arrays, round_key, spec, data.length)
                bound = float(average)  # waits for the result, so that Ctrl-C is captured meanwhile
            if not np.isfinite(bound):
                raise _diverged()
            update(done * UPDATES_PER_CALL, f"bound {bound:.1f}")
            if pressed:
                break
    return jax.tree.map(np.asarray, now[0]), Status.INTERRUPTED if pressed else Status.ITERATION_LIMIT


def _diverged() -> ComputationError:
    return ComputationError("the training of the GP-SSM diverged; use a smaller learning_rate")


@partial(jax.jit, static_argnames=("spec", "length"))
def _run_updates(
    start: Training, arrays: _Arrays, key: Key[jax.Array, ""], spec: GPSSM, length: int
) -> tuple[Training, Float[AnyArray, ""]]:
    def loss(parameters: variational.SSMParameters, now: Key[jax.Array, ""]) -> Float[AnyArray, ""]:
        return -_draw_bound(parameters, spec, arrays, length, now)

    now, losses = run_adam(_make_rule(spec), loss, start, jax.random.split(key, UPDATES_PER_CALL))
    return now, -jnp.mean(losses) * arrays.rows


@partial(jax.jit, static_argnames=("spec", "length"))
def _draw_bounds(
    parameters: variational.SSMParameters, spec: GPSSM, arrays: _Arrays, length: int, keys: Key[jax.Array, " E"]
) -> Float[AnyArray, " E"]:
    return jax.lax.map(lambda key: _draw_bound(parameters, spec, arrays, length, key), keys)


def _draw_bound(
    parameters: variational.SSMParameters, spec: GPSSM, arrays: _Arrays, length: int, key: Key[jax.Array, ""]
) -> Float[AnyArray, ""]:
    # The bound per sample of the records, estimated on random sub-trajectories.
    u_bar, y, starts, windows, rows = arrays
    if spec.mean == "identity":
        parameters = eqx.tree_at(lambda tree: tree.transition.linear, parameters, replace_fn=jax.lax.stop_gradient)
    choice_key, elbo_key = jax.random.split(key)
    chosen = jax.random.choice(choice_key, len(starts), (spec.batch,))
    first = starts[chosen]
    corrections = jax.tree.map(lambda leaf: cut_subsequences(leaf, first, length), parameters.corrections)
    segments = variational.Segments(
        cut_subsequences(u_bar, first, length), cut_subsequences(y, first, length), windows[chosen], corrections
    )
    follow = variational.STRUCTURES[spec.structure]
    return variational.estimate_elbo(parameters, segments, rows, follow, spec.samples, elbo_key) / rows


def _make_rule(spec: GPSSM) -> optax.GradientTransformation:
    rate = optax.cosine_decay_schedule(spec.learning_rate, spec._calls * UPDATES_PER_CALL, alpha=0.01)
    return optax.chain(optax.clip_by_global_norm(10.0), optax.adam(rate))


def _write_gpssm(model: FittedGPSSM) -> tuple[dict[str, Any], Any]:
    header, starts = write_starts(model)
    about = {"configuration": model.spec.to_dict(), "inducing": model.transition.v_mean.shape[1], "bound": model.bound}
    return {**header, **about}, {**starts, "transition": model.transition}


def _read_gpssm(header: model_file.Header, arrays: model_file.Arrays) -> FittedGPSSM:
    fields, spec = model_file.common_fields(header), GPSSM.from_dict(header["configuration"])
    prep = fields.preprocessor
    template = make_blank_starts(header, prep)
    if spec.states != header["states"] or spec.input_delay != prep.order.input_delay:
        raise InputError("its configuration has other states or another input delay than the model")
    inducing = check_integer("inducing", header["inducing"], 1, spec.inducing)
    trained = model_file.fill_template(
        {**template, "transition": _make_blank_transition(spec.states, inducing, prep)}, arrays
    )
    bound = check_number("bound", header["bound"])
    return FittedGPSSM(*fields, *read_starts(trained["starts"]), spec, trained["transition"], bound)


def _make_blank_transition(states: int, inducing: int, prep: Preprocessor) -> Transition:
    size, blank = states + prep.order.input_lags * len(prep.input_names), model_file.blank_array
    # One layer per state, stacked along a first axis.
    layers = Layer(blank(states, inducing, size), blank(states, size), blank(states), blank(states))
    v_mean, v_root = blank(states, inducing), blank(states, inducing, inducing)
    linear = Linear(blank(size, states), blank(states))
    return Transition(layers, v_mean, v_root, linear, blank(len(prep.output_names)))


model_file.register_format(model_file.ModelFormat("GP-SSM", FittedGPSSM, _write_gpssm, _read_gpssm))
