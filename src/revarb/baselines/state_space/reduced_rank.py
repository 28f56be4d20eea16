"""Reduced-rank GP state-space model: f in a basis of sines, learnt by particle Gibbs (Svensson & Schön 2017)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float64, Key

from revarb.baselines.state_space.fitted_state_space import FittedStateSpace, make_cold_state
from revarb.baselines.state_space.gibbs_chain import (
    LOG_LENGTH_MEAN,
    LOG_SIGNAL_MEAN,
    ChainState,
    Draw,
    Hyperparameters,
    run_sweeps,
)
from revarb.baselines.state_space.laplace_basis import LaplaceBasis
from revarb.baselines.state_space.observer_form import compute_observer_states
from revarb.baselines.state_space.particle_gibbs import StackedRecords, stack_records
from revarb.baselines.state_space.reduced_rank_dynamics import ReducedRankDynamics
from revarb.baselines.subsequences import delay_inputs
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, as_records
from revarb.data.windows import Order
from revarb.errors import ComputationError, InputError, check_integer, check_number, check_seed
from revarb.models.summary import SummaryTable
from revarb.optim.status import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_bar
from revarb.simulation.chain import StartState
from revarb.training.initial_values import fill_gaps

START_FLOOR, END_FLOOR = 3e-2, 1e-5  # of the process noise's variance in the burn-in
START_VARIANCE = 0.1  # of the outputs' noise, z-scored; the states start without any


@dataclass(frozen=True)
class ReducedRankGPSSM:
    """A GP state-space model in a basis of sines, sampled by particle Gibbs with ancestor sampling.

    (y_t, h_t) = f(h_{t−1}, u) + v_t: the outputs are nonlinear functions of hidden states h, and are measured with
    noise. f is affine plus a weighted sum of products of sines on a box, with weights whose prior variances make it a
    GP with an RBF kernel. Weights and process noise have a matrix-normal inverse-Wishart prior, the outputs' noise an
    inverse gamma one; signal variance and lengthscales take a Metropolis step each in every sweep. Outside of the box f
    has its value at the nearest point of the box, so that no simulation diverges. Missing outputs are allowed.

    Parameters
    ----------
    states : int
        Number of hidden states, at least the number of outputs. The chain starts from those of an ARX model in observer
        canonical form.
    basis : int
        Number of products of sines; the smoothest ones are taken.
    input_delay : int
        Age of the newest input: 1 by default, 0 for direct feedthrough, k for a dead time of k samples.
    particles : int
        Number of particles, the reference included.
    burn_in : int
        Number of first sweeps that are forgotten.
    draws : int
        Number of posterior draws to keep.
    thinning : int
        Number of sweeps from one kept draw to the next.
    box : float
        Half-width of the box, in units of the largest start value of each state and of the largest input, at least 1.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> spec = revarb.ReducedRankGPSSM(states=2, basis=20, burn_in=20, draws=10)
    >>> spec.fit(revarb.Series(u, y)).simulate(u).mean.shape
    (60, 1)
    """

    states: int = 2
    basis: int = 250
    input_delay: int = 1
    particles: int = 30
    burn_in: int = 300
    draws: int = 100
    thinning: int = 3
    box: float = 1.3

    def __post_init__(self):
        for name, least in (("states", 1), ("basis", 1), ("input_delay", 0), ("particles", 2), ("burn_in", 0),
                            ("draws", 1), ("thinning", 1)):  # fmt: skip
            object.__setattr__(self, name, check_integer(name, getattr(self, name), least))
        object.__setattr__(self, "box", check_number("box", self.box, above=1.0))

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedReducedRankGPSSM":
        """Sample the posterior. Ctrl-C keeps the draws so far: those after the burn-in, else the later half.

        Parameters
        ----------
        train : Series or list of Series
            The training records; NaN in an output is missing.
        seed : int
            Seed of the Markov chain.
        progress : bool
            Show a progress bar, or where the output is not a terminal, a line now and then.

        Returns
        -------
        FittedReducedRankGPSSM

        Raises
        ------
        InputError
            If there are more outputs than states, or a record is too short.
        ComputationError
            If the sampling diverges.
        """
        records = as_records(train)
        self._check_outputs(records[0])
        prep = Preprocessor.from_records(records, Order(0, 1 if records[0].input_names else 0, self.input_delay))
        u_bars = [delay_inputs(prep, prep.scaling.inputs(record.u)) for record in records]
        rows = stack_records(u_bars, [prep.scaling.outputs(record.y) for record in records])
        path = _start_path(rows, self.states)
        basis = _make_basis(rows, path, self)
        key = jax.random.key(check_seed(seed))
        with progress_bar("fitting reduced-rank GP-SSM", self._rounds * self.thinning, progress) as update:
            chain, status = _run_chain(self, _start_chain(path, rows, basis), basis, rows, key, update)
        return _summarise_chain(self, prep, records, chain, basis, rows, status, seed)

    def _floor(self, number: int) -> Float64[np.ndarray, ""]:
        # Of the process noise's variance: falls geometrically in the burn-in, and is zero after it.
        if number >= self._burn_in_rounds:
            return np.array(0.0)
        return np.array(START_FLOOR * (END_FLOOR / START_FLOOR) ** (number / self._burn_in_rounds))

    @property
    def _burn_in_rounds(self) -> int:
        return -(-self.burn_in // self.thinning)

    @property
    def _rounds(self) -> int:
        return self._burn_in_rounds + self.draws

    def _check_outputs(self, record: Series) -> None:
        outputs = len(record.output_names)
        if self.states < outputs:
            raise InputError(f"states={self.states} are fewer than the {outputs} outputs that they start at; use more")


@dataclass(frozen=True, eq=False, repr=False)
class FittedReducedRankGPSSM(FittedStateSpace):
    """Posterior draws of a reduced-rank GP state-space model.

    Attributes
    ----------
    basis : LaplaceBasis
        The products of sines, and the box that they are on.
    posterior : Draw
        Draws of the weights, of the process noise's covariance and of the outputs' noise variances, z-scored.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> spec = revarb.ReducedRankGPSSM(states=2, basis=20, burn_in=20, draws=10)
    >>> spec.fit(revarb.Series(u, y)).simulate(u)
    Trajectory(60 rows, outputs ('y',), method='samples', start='cold')
    """

    basis: LaplaceBasis
    posterior: Draw

    @property
    def hidden(self) -> int:
        """Number of states that f depends on: the last entries of the state."""
        return len(self.basis.half_width) - self.order.input_lags * len(self.input_names)

    def mean_dynamics(self) -> ReducedRankDynamics:
        """The transition of one particle by the posterior mean of the weights."""
        return self._make_dynamics(jax.tree.map(lambda values: values.mean(axis=0)[None], self.posterior))

    def draw_dynamics(self, key: Key[jax.Array, ""], count: int) -> ReducedRankDynamics:
        """The transitions of `count` particles, each by one of the posterior draws, all of them equally often."""
        chosen = np.asarray(jax.random.permutation(key, np.arange(count) % len(self.posterior.weights)))
        return self._make_dynamics(jax.tree.map(lambda values: values[chosen], self.posterior))

    def _own_tables(self) -> tuple[SummaryTable, ...]:
        process = np.sqrt(np.diagonal(self.posterior.Q, axis1=1, axis2=2).mean(axis=0))
        output = np.sqrt(self.posterior.R.mean(axis=0))
        rows = (
            ("hidden states", str(self.hidden)),
            ("products of sines", str(len(self.basis.numbers))),
            ("draws", str(len(self.posterior.R))),
            ("process noise, z-scored", ", ".join(f"{std:.3g}" for std in process)),
            ("output noise, z-scored", ", ".join(f"{std:.3g}" for std in output)),
        )
        return (SummaryTable("fit", ("", ""), rows),)

    def _make_dynamics(self, draw: Draw) -> ReducedRankDynamics:
        output_std = np.sqrt(self.posterior.R.mean(axis=0))
        return ReducedRankDynamics(self.basis, draw.weights, np.linalg.cholesky(draw.Q), output_std)


def _start_path(rows: StackedRecords, states: int) -> Float64[np.ndarray, "T Dx"]:
    # The outputs, then the hidden states. The state before a record is that of its first row.
    starts = np.flatnonzero(rows.is_initial)[1:]
    u_bars = [block[1:] for block in np.split(rows.u_bar, starts)]
    ys = [fill_gaps(block[1:]) for block in np.split(rows.y, starts)]
    blocks = [np.hstack(pair) for pair in zip(ys, compute_observer_states(u_bars, ys, states), strict=True)]
    return np.concatenate([np.pad(block, ((1, 0), (0, 0)), mode="edge") for block in blocks])


def _make_basis(rows: StackedRecords, path: Float64[np.ndarray, "T Dx"], spec: ReducedRankGPSSM) -> LaplaceBasis:
    hidden = path[:, -spec.states :]
    largest = np.concatenate([np.abs(values).max(axis=0) for values in (hidden, rows.u_bar)])
    return LaplaceBasis.build(spec.box * np.maximum(largest, 1.0), spec.basis)


def _start_chain(path: Float64[np.ndarray, "T Dx"], rows: StackedRecords, basis: LaplaceBasis) -> ChainState:
    # A sweep begins with weights and process noise, so that theirs do not count.
    states, dimensions = path.shape[1], len(basis.half_width)
    weights = np.zeros((states, 1 + dimensions + len(basis.numbers)))
    hyperparameters = Hyperparameters(np.array(LOG_SIGNAL_MEAN), np.full(dimensions, LOG_LENGTH_MEAN))
    return ChainState(path, Draw(weights, np.eye(states), np.full(rows.y.shape[1], START_VARIANCE)), hyperparameters)


def _run_chain(
    spec: ReducedRankGPSSM,
    state: ChainState,
    basis: LaplaceBasis,
    rows: StackedRecords,
    key: Key[jax.Array, ""],
    update: Callable[[int, str], None],
) -> tuple[list[ChainState], Status]:
    chain: list[ChainState] = []
    for number, round_key in enumerate(jax.random.split(key, spec._rounds)):
        with capture_interrupts() as pressed:
            state = run_sweeps(state, basis, rows, round_key, spec._floor(number), spec.thinning, spec.particles)
            chain.append(jax.tree.map(np.asarray, state))
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(chain[-1])):
            raise ComputationError("the sampling of the states diverged; use more particles or a larger box")
        update((number + 1) * spec.thinning, f"noise of the outputs {np.sqrt(chain[-1].draw.R.mean()):.3f}")
        if pressed:
            return chain, Status.INTERRUPTED
    return chain, Status.ITERATION_LIMIT


def _summarise_chain(
    spec: ReducedRankGPSSM,
    prep: Preprocessor,
    records: Sequence[Series],
    chain: Sequence[ChainState],
    basis: LaplaceBasis,
    rows: StackedRecords,
    status: Status,
    seed: int,
) -> FittedReducedRankGPSSM:
    kept = chain[spec._burn_in_rounds :] or chain[len(chain) // 2 :]
    paths = np.stack([state.path for state in kept])
    posterior = jax.tree.map(lambda *leaves: np.stack(leaves), *(state.draw for state in kept))
    cold = make_cold_state(np.concatenate(paths), np.zeros(paths.shape[2]), prep)
    ends = [*(np.flatnonzero(rows.is_initial)[1:] - 1), len(rows.y) - 1]
    final_states = tuple(
        _make_final_state(paths[:, end], cold, prep.scaling.inputs(record.u))
        for end, record in zip(ends, records, strict=True)
    )
    return FittedReducedRankGPSSM(prep, status, check_seed(seed), cold, final_states, basis, posterior)


def _make_final_state(
    states: Float64[np.ndarray, "S Dx"], cold: StartState, z: Float64[np.ndarray, "N Du"]
) -> StartState:
    # The smoothed states at the end of a record, of all draws, and the last inputs.
    cov = np.cov(states.T, bias=True).reshape(cold.cov.shape)
    return StartState(states.mean(axis=0), cov, np.concatenate([cold.past_u, z])[len(z) :])
