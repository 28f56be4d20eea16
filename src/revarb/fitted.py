"""A trained recurrent GP: simulate it, look at it, save it, load it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from revarb import store
from revarb.collapsed import Layer, Posterior, predict_certain
from revarb.errors import InputError, check_number, check_seed, check_whole
from revarb.numerics import with_numerics
from revarb.optimise import Status, Step
from revarb.parameters import Parameters
from revarb.rgp import RGP
from revarb.series import Standardiser, as_matrix
from revarb.simulate import Chain, Start, cold_start, run_mean, run_moments, run_samples
from revarb.states import FreeStates, InitialPrior
from revarb.trajectory import Trajectory
from revarb.windows import Lags, by_block, current_windows, input_windows, regressor_sizes

Method = Literal["moments", "mean", "samples"]


class Trained(NamedTuple):
    """The arrays of a trained model, all z-scored: this is what a model file holds."""

    parameters: Parameters
    chain: Chain
    final_states: tuple[Start, ...]


@dataclass(frozen=True, eq=False, repr=False)
class FittedRGP:
    """A trained model.

    bound, status, history   the value of the lower bound, how the optimisation ended, and its way there
    scaling, trained         the scaling of the training data, and all arrays, which live in z-scored units
    lengths                  number of latent states of each training record
    """

    spec: RGP
    scaling: Standardiser
    trained: Trained
    lengths: tuple[int, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    dt: float
    bound: float
    status: Status
    history: tuple[Step, ...]
    seed: int

    def __repr__(self) -> str:
        return (
            f"FittedRGP(inputs {self.input_names}, outputs {self.output_names}, hidden={self.spec.hidden}, "
            f"bound={self.bound:.2f}, status={self.status.value!r})"
        )

    @property
    def lags(self) -> Lags:
        """How far back the model looks."""
        return self.spec.lags_for(len(self.input_names))

    @property
    def skip(self) -> int:
        """Rows of a cold run that are left out of the scores: L + L_u, or more where a dead time makes rows wait.

        First the inputs' window must fill, then the states settle for L rows.
        """
        return self.lags.states + max(self.lags.inputs, self.lags.reach)

    @property
    def final_states(self) -> tuple[Start, ...]:
        """The state that each training record ended with: `simulate(u, initial=model.final_states[0])` goes on."""
        return self.trained.final_states

    @with_numerics
    def simulate(
        self,
        u: ArrayLike | None = None,
        method: Method = "moments",
        initial: Start | None = None,
        steps: int | None = None,
        samples: int = 200,
        seed: int = 0,
    ) -> Trajectory:
        """Free simulation on the inputs `u` [T, inputs], raw units in and out; one row out per row in.

        method   "moments": mean and standard deviation, uncertainty propagated with full covariance;
                 "mean": the mean-only free run, no uncertainty; "samples": `samples` trajectories drawn with `seed`
        initial  one of `final_states`, to go on where training ended. Default: cold, as in the authors' code: zero mean
                 and unit variance at the first row with a full window of inputs behind it. The rows before that are
                 simulated with the missing past inputs at their training mean, and are no part of what follows.
        steps    number of steps for a system without inputs, instead of `u`
        """
        start = self._checked_start(initial)
        u_bar = input_windows(np.concatenate([start.past_u, self._checked_inputs(u, steps, initial)]), self.lags)
        chain = self.trained.chain
        fresh, skip = (self.lags.reach, self.skip) if initial is None else (0, 0)
        if method == "mean":
            return self._trajectory(method, skip, run_mean(chain, start, u_bar, fresh), None)
        if method == "moments":
            moments = run_moments(chain, start, u_bar, fresh)
            return self._trajectory(method, skip, moments.mean, moments.variance)
        if method == "samples":
            count = check_whole("samples", samples, least=2)
            given, drawn = run_samples(chain, start, u_bar, fresh, jax.random.key(check_seed(seed)), count)
            # Law of total variance: what each trajectory does not know, and how far they are apart.
            variance = np.mean(given.variance, axis=0) + np.var(given.mean, axis=0)
            return self._trajectory(method, skip, np.mean(given.mean, axis=0), variance, drawn)
        raise InputError(f"method must be 'moments', 'mean' or 'samples', received {method!r}")

    @with_numerics
    def training_fit(self) -> list[Float64[np.ndarray, "R Dy"]]:
        """The output layer at the latent means, raw units: one array per record, for its last rows."""
        lags = self.spec.lags
        x_hat = by_block(current_windows, self.trained.parameters.states.mu[-1], lags, self.lengths)
        fitted = self.scaling.raw_outputs(np.asarray(predict_certain(self.trained.chain.output, x_hat)[0]))
        return np.split(fitted, np.cumsum([length - lags for length in self.lengths])[:-1])

    @with_numerics
    def latent_paths(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Mean and standard deviation of the latent states of every hidden layer, records one after the other."""
        states = self.trained.parameters.states
        return [(np.asarray(mu), np.sqrt(np.asarray(lam))) for mu, lam in zip(states.mu, states.lam, strict=True)]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to one file, whole or not at all; `revarb.load` reads it."""
        header = {
            "kind": "RGP",
            "configuration": self.spec.to_dict(),
            "standardiser": {name: values.tolist() for name, values in vars(self.scaling).items()},
            "inducing": len(self.trained.chain.output.zeta),
            "lengths": self.lengths,
            "input_names": self.input_names,
            "output_names": self.output_names,
            "dt": self.dt,
            "bound": self.bound,
            "status": self.status.value,
            "history": self.history,
            "seed": self.seed,
        }
        return store.write_model(path, header, store.named_leaves(self.trained))

    def _trajectory(
        self, method: str, skip: int, mean: Any, variance: Any | None, samples: Any | None = None
    ) -> Trajectory:
        return Trajectory(
            mean=self.scaling.raw_outputs(np.asarray(mean)),
            std=None if variance is None else self.scaling.raw_spread(np.sqrt(np.asarray(variance))),
            method=method,
            skip=skip,
            output_names=self.output_names,
            dt=self.dt,
            samples=None if samples is None else self.scaling.raw_outputs(np.asarray(samples)),
        )

    def _checked_inputs(self, u: ArrayLike | None, steps: int | None, initial: Start | None) -> np.ndarray:
        expected = len(self.input_names)
        if expected == 0 and u is None:
            what = "steps (the model has no inputs, so it must be told how long to run)"
            return np.empty((check_whole(what, steps, least=1), 0))
        if u is None or steps is not None:
            what = f"the inputs {list(self.input_names)} as u, one row per step, and no steps"
            raise InputError(f"pass {what if expected else 'steps alone: the model has no inputs'}")
        values = as_matrix("u", u)
        if values.shape[1] != expected:
            names = list(self.input_names)
            raise InputError(f"u has {values.shape[1]} column(s), but the model was trained with {expected}: {names}")
        shortest = 1 if initial is not None or expected == 0 else self.lags.first + 1
        if len(values) < shortest:
            raise InputError(f"u has {len(values)} row(s), but the lags need at least {shortest}; pass a longer input")
        return self.scaling.inputs(values)

    def _checked_start(self, initial: Start | None) -> Start:
        cold = cold_start(self.spec.latent_dims, self.spec.lags, self.lags.reach, len(self.input_names))
        if initial is None:
            return cold
        if not isinstance(initial, Start) or _shapes(initial) != _shapes(cold):
            raise InputError(
                "initial does not fit: pass one of the final_states of a model with the same lags, layers and inputs"
            )
        return initial


def load(path: str | os.PathLike[str]) -> FittedRGP:
    """Read a model that `save` wrote."""
    header, arrays = store.read_model(path)
    try:
        return _from_file(header, arrays)
    except InputError as error:
        raise InputError(f"{path} cannot be opened: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}: {error}); save the model again") from None


def _from_file(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FittedRGP:
    if header["kind"] != "RGP":
        raise InputError(f"it holds a model of kind {header['kind']!r}, and this revarb knows 'RGP'")
    spec = RGP.from_dict(header["configuration"])
    scaling = Standardiser(**{name: np.array(v, dtype=np.float64) for name, v in header["standardiser"].items()})
    lengths, inducing = tuple(header["lengths"]), header["inducing"]
    input_names, output_names = tuple(header["input_names"]), tuple(header["output_names"])
    if (len(input_names), len(output_names)) != (len(scaling.u_mean), len(scaling.y_mean)):
        raise InputError("its column names and its standardiser do not agree")
    return FittedRGP(
        spec=spec,
        scaling=scaling,
        trained=store.filled(_template(spec, lengths, inducing, len(scaling.u_mean), len(scaling.y_mean)), arrays),
        lengths=lengths,
        input_names=input_names,
        output_names=output_names,
        dt=check_number("dt", header["dt"], above=0.0),
        bound=check_number("bound", header["bound"]),
        status=Status(header["status"]),
        history=tuple(Step(*step) for step in header["history"]),
        seed=int(header["seed"]),
    )


def _template(spec: RGP, lengths: tuple[int, ...], inducing: int, inputs: int, outputs: int) -> Trained:
    # The tree of a model with this configuration. Its arrays take no memory, whatever sizes a header claims.
    def blank(*shape: int) -> np.ndarray:
        return np.broadcast_to(np.float64(0.0), shape)

    lags, dims = spec.lags_for(inputs), spec.latent_dims
    sizes = regressor_sizes(lags, dims, inputs)
    layers = tuple(Layer(blank(inducing, size), blank(size), blank(), blank()) for size in sizes)
    states = tuple(blank(sum(lengths), dim) for dim in dims)
    priors = tuple(InitialPrior(blank(spec.lags, dim), blank(spec.lags, dim)) for dim in dims)
    known = tuple(
        Posterior(blank(inducing, size), blank(size), blank(), blank(), blank(inducing, dim), blank(inducing, inducing))
        for size, dim in zip(sizes, (*dims, outputs), strict=True)
    )
    joint = spec.lags * sum(dims)
    final = Start(blank(joint), blank(joint, joint), blank(lags.reach, inputs))
    return Trained(
        Parameters(layers, FreeStates(states, states), priors),
        Chain(known[:-1], known[-1], spec.lags),
        (final,) * len(lengths),
    )


def _shapes(tree: Any) -> list[tuple[int, ...]]:
    return [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
