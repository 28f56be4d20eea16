"""The recurrent Gaussian process before it has seen data: its configuration, checked."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, overload

from revarb.config.lagged import Lagged
from revarb.config.plain_values import check_keys
from revarb.config.recipe import Recipe, Stage
from revarb.config.recognition import Recognition
from revarb.data.series import Series
from revarb.errors import InputError, check_integer, describe

if TYPE_CHECKING:
    from revarb.models.ensemble import Ensemble
    from revarb.models.fitted_rgp import FittedRGP


MAX_LAYERS = MAX_STATES = 1000
"""Far beyond what can be trained: a slip of the keyboard, or of a file, must not take all memory."""


@dataclass(frozen=True)
class RGP(Lagged):
    """A deep recurrent Gaussian process with latent autoregression, before it has seen data.

    lags         L: how many past states a layer sees
    input_lags   L_u: how many past inputs the first layer sees
    input_delay  age of the newest input it sees: 1 as in the paper, 0 for direct feedthrough, k for dead time
    hidden       H: number of hidden layers
    inducing     M: inducing inputs per layer
    latent_dim   latent states per layer: one number for all, or one per hidden layer
    recipe       start values and stages of the fit
    recognition  latent means by networks instead of free ones
    calibrate    after the fit, set noise and bands by held-out stretches of the training records (four more fits)
    """

    hidden: int = 2
    inducing: int = 100
    latent_dim: int | tuple[int, ...] = 1
    recipe: Recipe = field(default_factory=Recipe)
    recognition: Recognition | None = None
    calibrate: bool = True

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "hidden", check_integer("hidden", self.hidden, 1, MAX_LAYERS))
        object.__setattr__(self, "inducing", check_integer("inducing", self.inducing, 1))
        if isinstance(self.latent_dim, tuple | list):
            dims = tuple(check_integer("latent_dim", dim, 1, MAX_STATES) for dim in self.latent_dim)
            object.__setattr__(self, "latent_dim", dims)
        else:
            object.__setattr__(self, "latent_dim", check_integer("latent_dim", self.latent_dim, 1, MAX_STATES))
        if len(self.latent_dims) != self.hidden:
            raise InputError(f"latent_dim names {len(self.latent_dims)} layers, but hidden={self.hidden}")
        if not isinstance(self.recipe, Recipe):
            raise InputError(f"recipe must be a revarb.Recipe, received {describe(self.recipe)}")
        if not isinstance(self.recognition, Recognition | None):
            raise InputError(f"recognition must be a revarb.Recognition, received {describe(self.recognition)}")
        if not isinstance(self.calibrate, bool):
            raise InputError(f"calibrate must be true or false, received {describe(self.calibrate)}")

    @property
    def latent_dims(self) -> tuple[int, ...]:
        """Number of latent states of each hidden layer."""
        return self.latent_dim if isinstance(self.latent_dim, tuple) else (self.latent_dim,) * self.hidden

    @overload
    def fit(
        self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False, *, resume: bool = False
    ) -> "FittedRGP": ...
    @overload
    def fit(
        self,
        train: Series | Sequence[Series],
        seed: int = 0,
        progress: bool = False,
        *,
        restarts: int,
        jobs: int | None = None,
        resume: bool = False,
    ) -> "Ensemble": ...
    def fit(
        self,
        train: Series | Sequence[Series],
        seed: int = 0,
        progress: bool = False,
        *,
        restarts: int | None = None,
        jobs: int | None = None,
        resume: bool = False,
    ) -> "FittedRGP | Ensemble":
        """Fit to one record or several. Ctrl-C returns the best model so far (`status` says so).

        progress   draw a bar where the output is a terminal
        restarts   so many fits, with the seeds seed, seed + 1, …: an `Ensemble` of them
        jobs       number of processes that share the restarts, or -1 for one per core (default: what
                   `joblib.parallel_config` says, else 1); the numbers do not depend on it. On an accelerator the
                   restarts advance together in one process
        resume     go on where the same fit was killed or interrupted, with the numbers of one that was not: a fit of
                   more than a minute keeps a journal in the user's cache folder until it has ended. Restarts that
                   advance together, and hosts that compute together, have none
        """
        # The only imports against the stream: the object forwards to its functions.
        if restarts is None:
            if jobs is not None:
                raise InputError(
                    f"jobs={jobs!r} without restarts: one fit uses all cores already; give restarts as well"
                )
            from revarb.training.fit import fit_rgp

            return fit_rgp(self, train, seed=seed, progress=progress, resume=resume)
        from revarb.training.restarts import fit_restarts

        return fit_restarts(self, train, seed=seed, restarts=restarts, jobs=jobs, progress=progress, resume=resume)

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain values, for JSON and TOML."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RGP":
        """The configuration from plain values; an unknown key is refused by name."""
        values = check_keys(cls, values)
        if "recipe" in values:
            recipe = check_keys(Recipe, values["recipe"], "recipe.")
            if isinstance(recipe.get("stages"), tuple | list):
                recipe["stages"] = tuple(_stage(stage) for stage in recipe["stages"])
            values["recipe"] = Recipe(**recipe)
        if values.get("recognition") is not None:
            settings = check_keys(Recognition, values["recognition"], "recognition.")
            lists = {name: tuple(value) for name, value in settings.items() if isinstance(value, list)}
            values["recognition"] = Recognition(**{**settings, **lists})
        if isinstance(values.get("latent_dim"), list):
            values["latent_dim"] = tuple(values["latent_dim"])
        return cls(**values)


def _stage(values: Mapping[str, Any]) -> Stage:
    known = check_keys(Stage, values, "stage.")
    free = known.get("free", ())
    return Stage(tuple(free) if isinstance(free, list) else free, known.get("iterations", 0))
