"""A trained model one step at a time, for control loops and interactive use."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Float64, Key
from numpy.typing import ArrayLike

from revarb.data.preprocessor import check_finite
from revarb.data.windows import input_windows
from revarb.errors import InputError, check_integer, check_seed
from revarb.gp.pathwise import DrawnFunctions
from revarb.gp.posterior import Posterior
from revarb.models.fitted_rgp import FittedRGP
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.simulation.chain import Chain
from revarb.simulation.mean import advance_mean
from revarb.simulation.samples import advance_samples, draw_chain
from revarb.simulation.starts import StartChoice


class LiveStep(NamedTuple):
    """One step of `Live`, raw units: the mean-only run, and the sampled trajectories without output noise.

    Attributes
    ----------
    mean : array [outputs]
        Output of the mean-only run.
    ghosts : array [G, outputs]
        Outputs of the G sampled trajectories; G is the argument `ghosts` of `Live`.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0))
    >>> recipe = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta"), 5),))
    >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, recipe=recipe)
    >>> live = revarb.Live(spec.fit(revarb.Series(u, np.cumsum(u))), ghosts=3)
    >>> step = live.step(0.3)
    >>> step.mean.shape, step.ghosts.shape
    ((1,), (3, 1))
    """

    mean: Float64[np.ndarray, " Dy"]
    ghosts: Float64[np.ndarray, "G Dy"]


class Live:
    """A free run that takes its inputs one step at a time.

    Parameters
    ----------
    model : FittedRGP
        A single trained model.
    start : str, Window or StartState
        Where the run starts, as in `FittedRGP.simulate`.
    ghosts : int
        Number of sampled trajectories that run beside the mean-only run, each with functions of its own.
    horizon : int
        Number of steps after which the sampled trajectories restart at the mean-only run.
    seed : int
        Seed of the sampled trajectories.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0))
    >>> recipe = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta"), 5),))
    >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, recipe=recipe)
    >>> live = revarb.Live(spec.fit(revarb.Series(u, np.cumsum(u))), start="continue")
    >>> live.step(0.3).mean.shape
    (1,)
    """

    def __init__(
        self, model: FittedRGP, start: StartChoice = "cold", ghosts: int = 0, horizon: int = 30, seed: int = 0
    ):
        if not isinstance(model, FittedRGP):
            raise InputError(f"a live run takes one fitted RGP, received a {type(model).__name__}")
        self._model = model
        origin = model.resolve_start(start)
        self._cold, self._start = origin.cold, origin.state
        self._ghosts = check_integer("ghosts", ghosts, least=0)
        self._horizon = check_integer("horizon", horizon, least=1)
        self._drawn, self._key = self._draw(check_seed(seed))
        self.reset()

    def __repr__(self) -> str:
        return f"Live({self._model!r}, {self._steps} steps done)"

    @with_numerics
    def _draw(self, seed: int) -> tuple[Chain[DrawnFunctions], Key[jax.Array, ""]]:
        # Functions of the sampled trajectories, and the key of their noise.
        function_key, noise_key = jax.random.split(jax.random.key(seed))
        return draw_chain(self._model.chain, function_key, self._ghosts), noise_key

    @with_numerics
    def reset(self) -> None:
        """Return to the first step."""
        self._steps = 0
        self._past_u = np.asarray(self._start.past_u)
        self._state: Any = np.asarray(self._start.mean)
        self._ghost_states: Any = np.tile(self._state, (self._ghosts, 1))

    @with_numerics
    def step(self, u: ArrayLike) -> LiveStep:
        """Advance by one step.

        Parameters
        ----------
        u : array-like [inputs]
            Inputs of this step, raw units.

        Returns
        -------
        LiveStep
            The outputs of this step.

        Raises
        ------
        InputError
            If the inputs do not fit the model.
        ComputationError
            If the run diverges.
        """
        prep, chain = self._model.preprocessor, self._model.chain
        one_row: Any = [u]
        z = prep.check_inputs(one_row, None, warm=True)
        recent = np.concatenate([self._past_u, z])
        if self._cold and self._steps == prep.order.reach:
            self._state = np.asarray(
                self._start.mean
            )  # as in `simulate`: a cold run starts where the input window is full
        if self._steps % self._horizon == 0:
            self._ghost_states = np.tile(np.asarray(self._state), (self._ghosts, 1))
        inputs_now = input_windows(recent, prep.order)[0]
        key = jax.random.fold_in(self._key, self._steps)
        self._state, self._ghost_states, mean, ghosts = _advance(
            chain, self._drawn, self._state, self._ghost_states, inputs_now, key
        )
        self._past_u, self._steps = recent[1:], self._steps + 1
        with np.errstate(over="ignore", invalid="ignore"):
            raw = prep.scaling.raw_outputs(np.concatenate([np.asarray(mean)[None], np.asarray(ghosts)]))
        check_finite("live", raw)
        return LiveStep(raw[0], raw[1:])


@jax.jit
def _advance(
    chain: Chain[Posterior],
    drawn: Chain[DrawnFunctions],
    state: Float[AnyArray, " S"],
    ghosts: Float[AnyArray, "G S"],
    inputs_now: Float[AnyArray, " Du"],
    key: Key[jax.Array, ""],
) -> tuple[Float[AnyArray, " S"], Float[AnyArray, "G S"], Float[AnyArray, " Dy"], Float[AnyArray, "G Dy"]]:
    state, mean = advance_mean(chain, state, inputs_now)
    ghosts, (f, _) = advance_samples(drawn, ghosts, inputs_now, key)
    return state, ghosts, mean, f
