"""Recipe of a fit: start values, stages, recognition model, each number with its reason; steps and status of a fit."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NamedTuple

from revarb.errors import InputError, check_integer, check_number, describe
from revarb.models.configuration import Configuration, check_integers, check_word

GROUPS = ("mu", "lam", "zeta", "w", "variance", "sigma2", "prior", "linear", "tau", "nu")
"""Names of the parameter groups that a stage can free; `Stage` says what they are."""

R0_FREE = ("mu", "lam", "zeta", "w", "linear", "tau")  # the last two only in models that have them
FIXED_FREE = ("mu", "zeta", "w", "linear", "tau")
NARX_FREE = ("zeta", "w", "variance", "sigma2", "linear", "tau")

WEIGHTS = (2.0, 10.0, 50.0)
"""Weights of the free-run term through which the optimisation passes on its way to a larger one."""


@dataclass(frozen=True)
class Stage(Configuration):
    """One stage of the optimisation.

    Every stage starts L-BFGS-B again, without the curvature of the stage before.

    Parameters
    ----------
    free : tuple of str
        Parameter groups that are optimised, from `revarb.models.recipe.GROUPS`:

        - mu, lam: means and variances of the latent states q(x)
        - zeta, w: inducing inputs and inverse squared lengthscales
        - variance: kernel variances
        - sigma2: noises of the hidden layers and of the output
        - prior: mean and variance of the initial states before any data
        - linear: coefficients and offsets of the linear part (`RGP(linear=True)`)
        - tau: weights of the samples (`RGP(noise="student-t")`)
        - nu: degrees of freedom of Student-t noise
    iterations : int
        Largest number of iterations.

    Examples
    --------
    >>> import revarb
    >>> revarb.Stage(("mu", "lam"), 50)
    Stage(free=('mu', 'lam'), iterations=50)
    """

    _prefix: ClassVar[str] = "stage."

    free: tuple[str, ...]
    iterations: int

    def __post_init__(self):
        if not isinstance(self.free, tuple | list):
            raise InputError(f"free of a stage must be a list of parameter groups, received {describe(self.free)}")
        object.__setattr__(self, "free", tuple(self.free))
        unknown = [name for name in self.free if not isinstance(name, str) or name not in GROUPS]
        if unknown:
            raise InputError(
                f"unknown parameter group {describe(unknown[0])} in a stage; known are {', '.join(GROUPS)}"
            )
        object.__setattr__(self, "iterations", check_integer("iterations of a stage", self.iterations, least=1))
        if not self.free:
            raise InputError(f"a stage must optimise something: name one or more of {', '.join(GROUPS)}")


@dataclass(frozen=True, repr=False)
class Recipe(Configuration):
    """Start values and stages of a fit; the defaults are recipe R0 (docs/design/decisions).

    Parameters
    ----------
    hidden_noise, output_noise : float
        Noise variances of the hidden layers and of the output layer, z-scored.
    latent_variance : float
        Variance of every latent state at the start.
    lengthscale_factor : float
        A lengthscale starts at this factor times range / √2 of its regressor.
    kernel_variance : float
        Kernel variance at the start.
    kmeans_iterations, kmeans_starts : int
        k-means for the inducing inputs: iterations, and the number of starts of which the best is used.
    zeta_noise : float
        Standard deviation of the noise that is added to the inducing inputs at the start.
    initial_mean, initial_variance : float
        Prior of the initial states.
    stages : tuple of Stage
        Stages of the optimisation.
    memory, ftol, gtol : int, float, float
        L-BFGS-B: number of corrections, relative change of the bound and size of the gradient at convergence.
    jitter : float
        Added to the diagonal of K_z, relative to the kernel variance.
    max_rows : int, optional
        Largest number of training rows of all records together, about. Longer records are represented by evenly spread
        blocks of consecutive rows, the last of which ends where the record ends. None: all rows, however many.
    free_run_weight : float
        Weight w of the free-run term: after the stages the optimisation continues with the bound minus w times the
        summed squared error of the mean-only free run over the training records. 0: without it.
    free_run : "cold" or int
        Cold runs over whole records, or runs of this many steps that start at the latent means.
    free_run_iterations : int
        Largest number of iterations at each of the weights through which `free_run_weight` is reached.

    Examples
    --------
    Some parameters fixed first, then all of them free:

    >>> import revarb
    >>> from revarb.models.recipe import GROUPS, R0_FREE
    >>> recipe = revarb.Recipe(stages=(revarb.Stage(R0_FREE, 50), revarb.Stage(GROUPS, 200)))
    >>> recipe.stages[1].iterations
    200
    """

    _prefix: ClassVar[str] = "recipe."
    _parts: ClassVar[Mapping[str, type[Configuration]]] = {"stages": Stage}

    # In z-scored units. With less hidden noise (0.01) the result varies strongly over seeds.
    hidden_noise: float = 0.05
    output_noise: float = 0.01
    # Variance λ of every latent state at the start; the means start at y (or its principal components).
    latent_variance: float = 0.5
    # A lengthscale starts at factor × range / √2 of its regressor: smooth functions at first.
    lengthscale_factor: float = 2.0
    kernel_variance: float = 1.0
    # Inducing inputs start at k-means centres of the regressors, with a little noise so that no two coincide. Of
    # several starts of k-means the one with the smallest distances is used: poor centres give poor fits more often.
    kmeans_iterations: int = 50
    kmeans_starts: int = 10
    zeta_noise: float = 1e-3
    # Prior of the initial states. The paper leaves it to the optimiser: free it with the group "prior".
    initial_mean: float = 0.0
    initial_variance: float = 1.0
    # Noises and kernel variances stay fixed: optimised, they double the bound and make the simulation worse.
    stages: tuple[Stage, ...] = (Stage(R0_FREE, 50), Stage(R0_FREE, 100))
    # L-BFGS-B: number of corrections, and when it counts as converged.
    memory: int = 20
    ftol: float = 1e-9
    gtol: float = 1e-5
    # Added to the diagonal of K_z, relative to the kernel variance.
    jitter: float = 1e-6
    # Time and memory are linear in the rows, and more rows than these make a model hardly better.
    max_rows: int | None = 5000
    # The free-run term: a model that is simulated is also trained to simulate.
    free_run_weight: float = 0.0
    free_run: str | int = "cold"
    free_run_iterations: int = 30

    @property
    def free_run_weights(self) -> tuple[float, ...]:
        """The rising weights of the free-run term, the last one `free_run_weight`; none without the term."""
        if self.free_run_weight == 0.0:
            return ()
        return (*(weight for weight in WEIGHTS if weight < self.free_run_weight), self.free_run_weight)

    @property
    def keeps_states(self) -> bool:
        """Whether the latent means stay where they start: at the measured outputs, as in a NARX model."""
        return not any("mu" in stage.free for stage in self.stages)

    @property
    def knows_states(self) -> bool:
        """Whether these states are taken as known exactly, because the linear part stays where it starts, too.

        Where it is trained their variance is needed: the bound has a ridge of that strength on its coefficients.
        """
        return self.keeps_states and not any("linear" in stage.free for stage in self.stages)

    @property
    def iterations(self) -> tuple[int, ...]:
        """Largest number of iterations of every stage, those of the free-run term included."""
        with_free_run = len(self.free_run_weights) * (self.free_run_iterations,)
        return (*(stage.iterations for stage in self.stages), *with_free_run)

    def __post_init__(self):
        self._check(_POSITIVE, check_number, above=0.0)
        self._check(("zeta_noise", "ftol", "gtol", "free_run_weight"), check_number, least=0.0)
        self._check(("initial_mean",), check_number)
        self._check(("kmeans_iterations", "kmeans_starts", "free_run_iterations"), check_integer, least=1)
        self._check(("memory",), check_integer, least=1, most=1000)
        if self.max_rows is not None:
            self._check(("max_rows",), check_integer, least=1)
        self._check(("stages",), _check_stages)
        self._check(("free_run",), _check_free_run)


_POSITIVE = ("hidden_noise", "output_noise", "latent_variance", "lengthscale_factor", "kernel_variance",
             "initial_variance", "jitter")  # fmt: skip


def _check_stages(name: str, stages: object) -> tuple[Stage, ...]:
    if not isinstance(stages, tuple | list) or not all(isinstance(stage, Stage) for stage in stages):
        raise InputError(f"{name} must be a list of Stage(free, iterations), received {describe(stages)}")
    if not stages:
        raise InputError(f"{name} must be one or more Stage(free, iterations), received none")
    return tuple(stages)


def _check_free_run(name: str, value: object) -> str | int:
    if not isinstance(value, str):
        return check_integer(name, value, least=1)
    if value != "cold":
        raise InputError(f"{name} must be 'cold' or a number of steps, received {describe(value)}")
    return value


_FIXED = (Stage(FIXED_FREE, 50), Stage(FIXED_FREE, 100))

RECIPES = {
    "R0": Recipe(),
    # Latent variances fixed and small: most measured records are simulated better so, the paper's own are not.
    "fixed": Recipe(latent_variance=0.05, stages=_FIXED),
    # Little noise and little variance, for one hidden layer: systems whose latent states move without noise.
    "smooth": Recipe(hidden_noise=0.01, latent_variance=0.02, stages=_FIXED),
    # For a model with a linear part: a GP that corrects a line needs less noise and variance than one that draws it.
    "linear": Recipe(hidden_noise=0.01, latent_variance=0.02, kernel_variance=0.1, stages=_FIXED),
    # The states stay at the measured outputs, as those of a NARX model: systems that are measured with little noise.
    "narx": Recipe(hidden_noise=1e-3, output_noise=1e-3, latent_variance=1e-4, stages=(Stage(NARX_FREE, 150),)),
}
"""Recipes by name, for `RGP(recipe="fixed")` and for a configuration file."""

MAX_UNITS = 100_000  # far more than can be trained: a typing error must not exhaust the memory


@dataclass(frozen=True, repr=False)
class Recognition(Configuration):
    """Configuration of a recognition model and its training.

    Parameters
    ----------
    hidden : tuple of int
        Units of the tanh layers of every network, from its input to its output.
    variance : str
        "free": one variance per latent state; "shared": one per layer, so that no parameter grows with N.
    start : str
        "output-error": the networks are first trained to simulate y; "random": not trained first, as in the paper;
        "free-form": they are first trained to follow the latent path of a fit without networks.
    starts : int
        Number of networks that are drawn; all have the first round, the one with the best bound has the others.
    start_steps, start_rate, weight_decay : int, float, float
        Steps of Adam for the start, their learning rate and penalty on squared weights.
    rounds : tuple of int
        Steps of Adam on the bound; every round begins with new inducing inputs along the latent paths.
    learning_rate : float
        Of Adam on the bound.
    clip : float
        Largest norm of a gradient, per training row.

    Examples
    --------
    >>> import revarb
    >>> revarb.Recognition(hidden=(50, 20)).steps
    3500
    """

    _prefix: ClassVar[str] = "recognition."

    hidden: tuple[int, ...] = (50,)
    variance: str = "free"
    start: str = "output-error"
    starts: int = 4
    start_steps: int = 500
    start_rate: float = 5e-3
    weight_decay: float = 1e-4
    rounds: tuple[int, ...] = (500, 500, 1000)
    learning_rate: float = 2e-3
    clip: float = 10.0

    @property
    def steps(self) -> int:
        """Total number of steps of Adam on the bound."""
        return self.starts * self.rounds[0] + sum(self.rounds[1:])

    def __post_init__(self):
        self._check(("hidden",), check_integers, least=1, most=MAX_UNITS)
        self._check(("rounds",), check_integers, least=1)
        self._check(("starts", "start_steps"), check_integer, least=1)
        self._check(("start_rate", "learning_rate", "clip"), check_number, above=0.0)
        self._check(("weight_decay",), check_number, least=0.0)
        self._check(("variance",), check_word, ("free", "shared"))
        self._check(("start",), check_word, ("output-error", "random", "free-form"))


class Step(NamedTuple):
    """One iteration of a stage, both counted from 1, and the bound after it."""

    stage: int
    iteration: int
    bound: float


class Status(StrEnum):
    """How an optimisation ended."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"  # the usual end of recipe R0
    STALLED = "stalled"  # the line search found no better point in floating-point arithmetic
    INTERRUPTED = "interrupted"  # by Ctrl-C
    NOT_FINITE = "not finite"  # every step from the best point gave NaN or infinity

    @property
    def label(self) -> str:
        """The status as people read it; model files and results contain the value."""
        return "finished" if self is Status.ITERATION_LIMIT else self.value
