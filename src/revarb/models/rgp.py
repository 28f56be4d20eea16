"""Configuration of the recurrent Gaussian process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, overload

from revarb.data.series import Series
from revarb.errors import InputError, check_integer, check_number, describe
from revarb.models.configuration import Configuration, Lagged, check_flag, check_integers, check_word
from revarb.models.recipe import RECIPES, Recipe, Recognition

if TYPE_CHECKING:
    from revarb.models.ensemble import Ensemble
    from revarb.models.fitted_arx import FittedARX
    from revarb.models.fitted_rgp import FittedRGP

NOISES = ("gaussian", "student-t")
MAX_DEGREES = 1e6
# Far more than can be trained: a typing error, or a damaged file, must not exhaust the memory.
MAX_LAYERS = MAX_STATES = 1000


@dataclass(frozen=True, repr=False)
class RGP(Lagged):
    """A deep recurrent Gaussian process with latent autoregression, before training.

    Parameters
    ----------
    lags : int
        L: number of past states among the regressors of a layer.
    input_lags : int
        L_u: number of past inputs among the regressors of the first layer.
    input_delay : int
        Age of the newest input: 1 as in the paper, 0 for direct feedthrough, k for a dead time of k samples.
    hidden : int
        H: number of hidden layers.
    inducing : int
        M: number of inducing inputs per layer. At most one per training row is used.
    latent_dim : int or tuple of int
        Number of latent states per hidden layer; one number for all layers, or one for each. One state, the default, is
        often too few for several outputs: try as many as there are outputs.
    recipe : Recipe or str
        Start values and stages of the optimisation; or "R0" (the default), "fixed" (latent variances fixed and small),
        "smooth" (little noise in the states), "linear" (for a model with a linear part) or "narx" (states stay at the
        measured outputs).
    recognition : Recognition, optional
        Latent means by networks instead of free parameters.
    calibrate : bool
        After the fit, set noises and bands on held-out blocks of the training records: four more fits, with at most
        one inducing input for every four samples, or 50.
    linear : bool
        A linear part in every layer, f(x̂) = A x̂ + b + GP. It starts at an ARX model that simulates stably.
    noise : str
        Noise of the outputs: "gaussian", or "student-t" for records with outliers, which then have little weight.
    degrees_of_freedom : float, optional
        Of Student-t noise, above 2.5: the smaller, the heavier its tails. None: estimated with the rest.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0))
    >>> quick = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta"), 5),))
    >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, recipe=quick)
    >>> spec.fit(revarb.Series(u, np.cumsum(u))).simulate(u)
    Trajectory(60 rows, outputs ('y',), method='moments', start='cold')
    """

    _parts: ClassVar[Mapping[str, type[Configuration]]] = {"recipe": Recipe, "recognition": Recognition}

    hidden: int = 2
    inducing: int = 100
    latent_dim: int | tuple[int, ...] = 1
    recipe: Recipe = field(default_factory=Recipe)
    recognition: Recognition | None = None
    calibrate: bool = True
    linear: bool = False
    noise: str = "gaussian"
    degrees_of_freedom: float | None = 4.0

    def __post_init__(self):
        super().__post_init__()
        self._check(("hidden",), check_integer, 1, MAX_LAYERS)
        self._check(("inducing",), check_integer, 1)
        several = isinstance(self.latent_dim, tuple | list)
        self._check(("latent_dim",), check_integers if several else check_integer, 1, MAX_STATES)
        if len(self.latent_dims) != self.hidden:
            raise InputError(f"latent_dim names {len(self.latent_dims)} layers, but hidden={self.hidden}")
        self._check(("recipe",), _find_recipe)
        if not isinstance(self.recognition, Recognition | None):
            raise InputError(f"recognition must be a revarb.Recognition, received {describe(self.recognition)}")
        self._check(("calibrate", "linear"), check_flag)
        self._check(("noise",), check_word, NOISES)
        if self.noise == "student-t" and self.recognition is not None:
            raise InputError("noise='student-t' has no recognition model; leave out recognition")
        if self.degrees_of_freedom is not None:
            self._check(("degrees_of_freedom",), check_number, above=2.5)
            if self.degrees_of_freedom > MAX_DEGREES:
                received = f"{self.degrees_of_freedom:g}; that is Gaussian"
                raise InputError(f"degrees_of_freedom is at most {MAX_DEGREES:g}, received {received}")

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
        """Train the model on one record or several.

        Ctrl-C returns the best model so far, with status "interrupted"; a second Ctrl-C stops immediately.

        Parameters
        ----------
        train : Series or list of Series
            Training records. Windows never cross from one record to the next; NaN in y is a missing value.
        seed : int
            Seed of the start values.
        progress : bool
            Show a progress bar, or where the output is not a terminal, a line now and then.
        restarts : int, optional
            Number of fits, with the seeds seed, seed + 1, …
        jobs : int, optional
            Number of processes that share the restarts, -1 for one per core; default: what `joblib.parallel_config`
            says, else 1. The result does not depend on it. On an accelerator the restarts run batched in one process.
        resume : bool
            Continue a fit of the same records and configuration that was killed or interrupted, with the result of an
            uninterrupted one: a fit that Ctrl-C ends, or that takes more than a minute, has a journal in the user's
            cache folder. Batched restarts, and fits on several hosts, have none.

        Returns
        -------
        FittedRGP or Ensemble
            An `Ensemble` where `restarts` is given.

        Raises
        ------
        InputError
            If the records do not fit the configuration, such as a constant column or too few samples.
        ComputationError
            If the bound is not finite at the start values, or no restart was completed because worker processes died.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(60.0))
        >>> quick = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta"), 5),))
        >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, recipe=quick)
        >>> spec.fit(revarb.Series(u, np.cumsum(u)), seed=1).status.label
        'finished'
        """
        # The only imports to the right in the package order, with those of refits: forwarded to what trains a model.
        from revarb.fitting.fit import fit_restarts, fit_rgp

        if restarts is None:
            if jobs is not None:
                raise InputError(
                    f"jobs={jobs!r} without restarts: one fit uses all cores already; give restarts as well"
                )
            return fit_rgp(self, train, seed=seed, progress=progress, resume=resume)
        return fit_restarts(self, train, seed=seed, restarts=restarts, jobs=jobs, progress=progress, resume=resume)

    def refit(
        self, model: "FittedRGP", train: Series | Sequence[Series], progress: bool = False, *, calibrate: bool = False
    ) -> "FittedRGP":
        """Train a fitted model of this configuration further on more records: what `FittedRGP.refit` does.

        Parameters
        ----------
        model : FittedRGP
            A trained model with this configuration.
        train : Series or list of Series
            All records to train on.
        progress, calibrate : bool
            As in `FittedRGP.refit`.

        Returns
        -------
        FittedRGP

        Raises
        ------
        InputError
            If the model has another configuration, or the records do not fit it.
        """
        if getattr(model, "spec", None) != self:
            raise InputError("the model was fitted with another configuration; call model.refit(records)")
        from revarb.fitting.fit import refit_rgp

        return refit_rgp(model, train, progress=progress, calibrated=calibrate)


def refit_linear(model: "FittedARX", records: Series | Sequence[Series]) -> "FittedARX":
    """Fit a linear model again: what `FittedARX.refit` does. Here is the one place that forwards to `fitting`."""
    from revarb.fitting.fit import refit_arx

    return refit_arx(model, records)


def _find_recipe(name: str, recipe: Any) -> Recipe:
    # A recipe, or the one of this name.
    found = RECIPES.get(recipe) if isinstance(recipe, str) else recipe
    if not isinstance(found, Recipe):
        known = ", ".join(repr(each) for each in RECIPES)
        raise InputError(f"{name} must be a revarb.Recipe or one of {known}, received {describe(recipe)}")
    return found
