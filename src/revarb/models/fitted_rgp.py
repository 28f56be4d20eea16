"""A trained recurrent GP: simulate it, look at it, save it, load it."""

import os
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import current_windows, input_windows_after, map_blocks
from revarb.errors import InputError, check_integer
from revarb.gp.posterior import Posterior
from revarb.models import container as store
from revarb.models.base import Fitted
from revarb.models.calibration import Calibration
from revarb.optim.status import Step
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.filtering import predict_ahead
from revarb.simulation.moments import observe_independent
from revarb.simulation.run import Method, recognise_paths, simulate_chain, simulate_networks
from revarb.simulation.starts import Origin, StartChoice, resolve_start
from revarb.variational.networks import Network
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates

MOST_STEPS = 10**9  # ahead: more than any record has


class Trained(NamedTuple):
    """The arrays of a trained model, all z-scored: this is what a model file holds."""

    parameters: Parameters  # whose states are written out, also those of a recognition model
    chain: Chain[Posterior]
    final_states: tuple[StartState, ...]
    networks: tuple[Network, ...] | None = None  # of a recognition model


@dataclass(frozen=True, eq=False, repr=False)
class FittedRGP(Fitted):
    """A trained recurrent GP.

    trained                  all arrays, which live in z-scored units
    lengths                  number of latent states of each training record
    bound, status, history   the value of the lower bound, how the optimisation ended, and its way there
    calibration              noise and widths of bands from held-out stretches; None where there was none
    """

    spec: RGP
    trained: Trained
    lengths: tuple[int, ...]
    bound: float
    history: tuple[Step, ...]
    calibration: Calibration | None = None

    methods = ("mean", "moments")

    def __repr__(self) -> str:
        return (
            f"FittedRGP(inputs {self.input_names}, outputs {self.output_names}, hidden={self.spec.hidden}, "
            f"bound={self.bound:.2f}, status={self.status.value!r})"
        )

    @property
    def final_states(self) -> tuple[StartState, ...]:
        """The state that each training record ended with: `simulate(u, start=model.final_states[0])` goes on."""
        return self.trained.final_states

    @cached_property
    def chain(self) -> Chain[Posterior]:
        """The trained layers with calibrated noise, as `simulate` runs them."""
        return self.trained.chain if self.calibration is None else self.calibration.apply_to(self.trained.chain)

    @with_numerics
    def origin(self, start: StartChoice) -> Origin:
        """The state that a run begins with."""
        return resolve_start(start, self.preprocessor, self.trained.chain, self.final_states)

    @with_numerics
    def simulate(
        self,
        u: ArrayLike | None = None,
        method: Method = "moments",
        *,
        start: StartChoice = "cold",
        steps: int | None = None,
        samples: int = 200,
        seed: int = 0,
    ) -> Trajectory:
        """Free simulation on the inputs `u` [T, inputs], raw units in and out; one row out per row in.

        method   "moments": mean and standard deviation, uncertainty propagated with full covariance;
                 "mean": the mean-only free run, no uncertainty; "samples": `samples` trajectories drawn with `seed`,
                 each of which follows one draw of every layer's function, and how far the moments are from them;
                 "network": the networks of a recognition model in place of the hidden layers, no uncertainty
        start    "cold", as in the authors' code: zero mean and unit variance at the first row with a full window of
                 inputs behind it. The rows before that are simulated with the missing past inputs at their training
                 mean, and are no part of what follows. "continue": where the (last) training record ended; or one of
                 `final_states`. `Window(u, y)`: after these measured samples, whose latent states are inferred
        steps    number of steps for a system without inputs, instead of `u`
        """
        origin = self.origin(start)
        if method == "network":
            return simulate_networks(self.preprocessor, self.trained.chain, self._networks, u, origin, steps)
        path = simulate_chain(self.preprocessor, self.chain, u, method, origin, steps, samples, seed)
        return self._widened(path, 1 + np.arange(len(path)), origin.cold)

    @with_numerics
    def predict(self, record: Series, horizon: int = 1) -> Trajectory:
        """Every sample of a measured record from what was measured up to `horizon` samples before it, raw units.

        The first rows are predicted from a cold start. Values of y that are missing are not learned from.
        """
        horizon = check_integer("horizon", horizon, least=1, most=MOST_STEPS)
        if not isinstance(record, Series):
            raise InputError(f"predict takes a measured revarb.Series(u, y), received a {type(record).__name__}")
        z, y = self.preprocessor.check_window(record)
        cold = self.origin("cold").state
        u_bar = input_windows_after(cold.past_u, z, self.preprocessor.order)
        ahead = min(horizon, len(y))
        moments = predict_ahead(self.trained.chain, self.chain, cold, u_bar, y, self.order.reach, ahead)
        name = f"{horizon} step{'s' * (horizon > 1)} ahead"
        path = self.preprocessor.to_trajectory("moments", self.skip, moments.mean, moments.variance, start=name)
        return self._widened(path, np.full(len(path), horizon), np.arange(len(path)) < ahead)

    def _widened(self, path: Trajectory, steps: np.ndarray, cold: bool | np.ndarray) -> Trajectory:
        if self.calibration is None or path.std is None:
            return path
        return replace(path, widening=self.calibration.widening(steps, cold))

    @with_numerics
    def recognise(self, u: ArrayLike | None = None, *, steps: int | None = None) -> list[Float64[np.ndarray, "T _"]]:
        """The latent path of every hidden layer for new inputs, by the recognition model: nothing is optimised."""
        return recognise_paths(self.preprocessor, self.trained.chain, self._networks, u, steps)

    @property
    def _networks(self) -> tuple[Network, ...]:
        if self.trained.networks is None:
            raise InputError("this model has no networks; fit RGP(recognition=revarb.Recognition()) for that")
        return self.trained.networks

    @with_numerics
    def training_fit(self) -> list[Float64[np.ndarray, "R Dy"]]:
        """The output layer at the latent means, raw units: one array per record, for its last rows."""
        lags = self.spec.lags
        x_hat = map_blocks(current_windows, self._states.mu[-1], lags, self.lengths)
        fitted = self.scaling.raw_outputs(np.asarray(self._output.mean(x_hat)))
        return np.split(fitted, np.cumsum([length - lags for length in self.lengths])[:-1])

    @with_numerics
    def smooth(self) -> list[Trajectory]:
        """What the fit makes of its own records, one path each for their last rows: also where y is missing.

        Where it was measured the band is narrow, for the latent states know it; in a gap it is as wide as they are.
        """
        lags, states = self.spec.lags, self._states
        means, variances = (map_blocks(current_windows, x[-1], lags, self.lengths) for x in (states.mu, states.lam))
        y = observe_independent(self._output, np.asarray(means), np.asarray(variances))
        cuts = np.cumsum([length - lags for length in self.lengths])[:-1]
        parts = zip(np.split(np.asarray(y.mean), cuts), np.split(np.asarray(y.variance), cuts), strict=True)
        return [self.preprocessor.to_trajectory("smoothed", 0, *part, start="training record") for part in parts]

    @with_numerics
    def latent_paths(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Mean and standard deviation of the latent states of every hidden layer, records one after the other."""
        states = self._states
        return [(np.asarray(mu), np.sqrt(np.asarray(lam))) for mu, lam in zip(states.mu, states.lam, strict=True)]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to one file, whole or not at all; `revarb.load` reads it."""
        return store.write_container(path, self.header(), store.named_leaves(self.trained))

    def header(self) -> dict[str, Any]:
        """All of the model but its arrays, as plain values."""
        return {
            "kind": "RGP",
            "configuration": self.spec.to_dict(),
            "standardiser": {name: values.tolist() for name, values in vars(self.scaling).items()},
            "inducing": len(self._output.zeta),
            "lengths": self.lengths,
            "input_names": self.input_names,
            "output_names": self.output_names,
            "dt": self.dt,
            "bound": self.bound,
            "status": self.status.value,
            "history": self.history,
            "seed": self.seed,
            "calibration": None if self.calibration is None else asdict(self.calibration),
            "outputs_apart": self._output.reduction.ndim == 3,
        }

    @property
    def _states(self) -> FreeStates:
        states = self.trained.parameters.states
        assert isinstance(states, FreeStates)
        return states

    @property
    def _output(self) -> Posterior:
        output = self.trained.chain.output
        assert output is not None  # only a NARX chain has none
        return output
