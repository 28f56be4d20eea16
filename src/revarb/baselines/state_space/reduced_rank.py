"""Reduced-rank GP state-space model: f in a basis of sines, learnt by particle Gibbs (Svensson & Schön 2017)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Key

from revarb.baselines.state_space import particle_gibbs
from revarb.baselines.state_space.basis_regression import LaplaceBasis, ReducedRankDynamics
from revarb.baselines.state_space.fitted_state_space import (
    FittedStateSpace,
    check_states,
    make_blank_starts,
    make_cold_state,
    read_starts,
    summarise_states,
    write_starts,
)
from revarb.baselines.training_rows import DelayedRecords
from revarb.data.series import Series, as_records
from revarb.errors import ComputationError, InputError, check_integer, check_number, check_seed
from revarb.models import model_file
from revarb.models.configuration import Configuration
from revarb.models.recipe import Status
from revarb.models.summary import SummaryTable
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_bar

START_FLOOR, END_FLOOR = 3e-2, 1e-5  # of the process noise's variance in the burn-in, in which it falls geometrically


@dataclass(frozen=True)
class ReducedRankGPSSM(Configuration):
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
        self._check(("states", "basis", "draws", "thinning"), check_integer, least=1)
        self._check(("input_delay", "burn_in"), check_integer, least=0)
        self._check(("particles",), check_integer, least=2)
        self._check(("box",), check_number, above=1.0)

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
        records, seed = as_records(train), check_seed(seed)
        check_states(self.states, records[0])
        data = DelayedRecords.from_records(records, self.input_delay)
        rows, path = particle_gibbs.stack_records(data.u_bars, data.ys), particle_gibbs.start_path(data, self.states)
        largest = np.concatenate([np.abs(values).max(axis=0) for values in (path[:, -self.states :], rows.u_bar)])
        basis = LaplaceBasis.build(self.box * np.maximum(largest, 1.0), self.basis)
        start, key = particle_gibbs.start_chain(path, len(data.prep.output_names), basis), jax.random.key(seed)
        with progress_bar("fitting reduced-rank GP-SSM", self._rounds * self.thinning, progress) as update:
            chain, status = _run_chain(self, start, basis, rows, key, update)
        kept = chain[self._burn_in_rounds :] or chain[len(chain) // 2 :]
        paths = np.stack([state.path for state in kept])
        posterior = jax.tree.map(lambda *leaves: np.stack(leaves), *(state.draw for state in kept))
        cold = make_cold_state(np.concatenate(paths), np.zeros(paths.shape[2]), data.prep)
        ends = [*(np.flatnonzero(rows.is_initial)[1:] - 1), len(rows.y) - 1]
        final_states = tuple(
            summarise_states(paths[:, end], cold, data.prep.scaling.inputs(record.u), bias=True)
            for end, record in zip(ends, records, strict=True)
        )
        return FittedReducedRankGPSSM(data.prep, status, seed, cold, final_states, basis, posterior)

    @property
    def _burn_in_rounds(self) -> int:
        return -(-self.burn_in // self.thinning)

    @property
    def _rounds(self) -> int:
        return self._burn_in_rounds + self.draws


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
    posterior: particle_gibbs.Draw

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

    def _make_dynamics(self, draw: particle_gibbs.Draw) -> ReducedRankDynamics:
        output_std = np.sqrt(self.posterior.R.mean(axis=0))
        return ReducedRankDynamics(self.basis, draw.weights, np.linalg.cholesky(draw.Q), output_std)


def _run_chain(
    spec: ReducedRankGPSSM,
    state: particle_gibbs.ChainState,
    basis: LaplaceBasis,
    rows: particle_gibbs.StackedRecords,
    key: Key[jax.Array, ""],
    update: Callable[[int, str], None],
) -> tuple[list[particle_gibbs.ChainState], Status]:
    chain: list[particle_gibbs.ChainState] = []
    burn_in = np.geomspace(START_FLOOR, END_FLOOR, spec._burn_in_rounds, endpoint=False)
    floors = jnp.concatenate([burn_in, np.zeros(spec.draws)])
    for number, (round_key, floor) in enumerate(zip(jax.random.split(key, spec._rounds), floors, strict=True), start=1):
        with capture_interrupts() as pressed:
            state = particle_gibbs.run_sweeps(state, basis, rows, round_key, floor, spec.thinning, spec.particles)
            chain.append(jax.tree.map(np.asarray, state))
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(chain[-1])):
            raise ComputationError("the sampling of the states diverged; use more particles or a larger box")
        update(number * spec.thinning, f"noise of the outputs {np.sqrt(chain[-1].draw.R.mean()):.3f}")
        if pressed:
            return chain, Status.INTERRUPTED
    return chain, Status.ITERATION_LIMIT


def _write_reduced_rank(model: FittedReducedRankGPSSM) -> tuple[dict[str, Any], Any]:
    header, starts = write_starts(model)
    sizes = {"hidden": model.hidden, "basis": len(model.basis.numbers), "draws": len(model.posterior.R)}
    return {**header, **sizes}, {**starts, "basis": model.basis, "posterior": model.posterior}


def _read_reduced_rank(header: model_file.Header, arrays: model_file.Arrays) -> FittedReducedRankGPSSM:
    fields, blank = model_file.common_fields(header), model_file.blank_array
    prep = fields.preprocessor
    template, states = make_blank_starts(header, prep), header["states"]
    count, draws = (check_integer(name, header[name], 1, model_file.MAX_ORDER) for name in ("basis", "draws"))
    # The first models of this kind had no such entry: their f depends on the whole state, outputs included.
    hidden = check_integer("hidden", header.get("hidden", states), 1, states)
    dimensions = hidden + prep.order.input_lags * len(prep.input_names)
    weights, Q = blank(draws, states, 1 + dimensions + count), blank(draws, states, states)
    template["basis"] = LaplaceBasis(blank(dimensions), blank(count, dimensions), 1)
    template["posterior"] = particle_gibbs.Draw(weights, Q, blank(draws, len(prep.output_names)))
    trained = model_file.fill_template(template, arrays)
    _check_trained(trained["basis"], trained["posterior"])
    basis = LaplaceBasis.from_numbers(trained["basis"].half_width, trained["basis"].numbers)
    return FittedReducedRankGPSSM(*fields, *read_starts(trained["starts"]), basis, trained["posterior"])


def _check_trained(basis: LaplaceBasis, posterior: particle_gibbs.Draw) -> None:
    numbers = basis.numbers
    if not (basis.half_width > 0.0).all():
        raise InputError("a width of its box is not positive")
    # The smoothest products: what has j half waves along a dimension stands beside all that have fewer.
    if not ((numbers >= 1.0) & (numbers <= len(numbers)) & (numbers == np.round(numbers))).all():
        raise InputError(f"a number of half waves is not a whole number from 1 to {len(numbers)}")
    if not ((np.linalg.eigvalsh(posterior.Q) > 0.0).all() and (posterior.R > 0.0).all()):
        raise InputError("a draw has a noise that is not positive")


model_file.register_format(
    model_file.ModelFormat("reduced-rank GP-SSM", FittedReducedRankGPSSM, _write_reduced_rank, _read_reduced_rank)
)
