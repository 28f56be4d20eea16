"""How a fit starts and which parameters are free when: every number of the training recipe, with its reason."""

from dataclasses import dataclass

from revarb.errors import InputError, check_integer, check_number, describe

GROUPS = ("mu", "lam", "zeta", "w", "variance", "sigma2", "prior")
"""Names of the parameter groups that a stage can free:

mu, lam       means and variances of the latent states q(x)
zeta, w       inducing inputs and inverse squared lengthscales
variance      kernel variances
sigma2        noises of the hidden layers and of the output
prior         mean and variance of the initial states before any data
"""


R0_FREE = ("mu", "lam", "zeta", "w")


@dataclass(frozen=True)
class Stage:
    """A stretch of the optimisation: the named groups are free for at most so many iterations.

    Every stage begins with a fresh memory of the optimiser.
    """

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
            raise InputError(f"a stage must free something: name one or more of {', '.join(GROUPS)}")


@dataclass(frozen=True)
class Recipe:
    """Start values and stages of a fit. The defaults are recipe R0 (docs/decisions.md, "The recipe").

    Fixed first, then everything free, is another list of stages:

    >>> Recipe(stages=(Stage(R0_FREE, 50), Stage(GROUPS, 200))).stages[1].iterations
    200
    """

    # In z-scored units. Hidden layers need room to be wrong: with 0.01 the result is a lottery over seeds.
    hidden_noise: float = 0.05
    output_noise: float = 0.01
    # Variance λ of every latent state at the start; the means start at y (or its principal components).
    latent_variance: float = 0.5
    # A lengthscale starts at factor × range / √2 of its regressor: smooth functions first.
    lengthscale_factor: float = 2.0
    kernel_variance: float = 1.0
    # Inducing inputs start at k-means centres of the regressors, moved apart a little. Of several starts of k-means
    # the tightest is taken: poor centres lead the fit astray more often (docs/decisions.md).
    kmeans_iterations: int = 50
    kmeans_starts: int = 10
    zeta_noise: float = 1e-3
    # Prior of the initial states. The paper leaves it to the optimiser: free it with the group "prior".
    initial_mean: float = 0.0
    initial_variance: float = 1.0
    # Noises and kernel variances stay fixed: set free, the bound doubles and the simulation gets worse.
    stages: tuple[Stage, ...] = (Stage(R0_FREE, 50), Stage(R0_FREE, 100))
    # L-BFGS-B: corrections kept, and when it may call itself converged.
    memory: int = 20
    ftol: float = 1e-9
    gtol: float = 1e-5
    # Added to the diagonal of K_z, relative to the kernel variance.
    jitter: float = 1e-6

    def __post_init__(self):
        checked = {name: check_number(f"recipe.{name}", getattr(self, name), above=0.0) for name in _POSITIVE}
        checked |= {name: check_number(f"recipe.{name}", getattr(self, name), least=0.0) for name in _NOT_NEGATIVE}
        checked |= {"initial_mean": check_number("recipe.initial_mean", self.initial_mean)}
        checked |= {
            name: check_integer(f"recipe.{name}", getattr(self, name), 1, most) for name, most in _COUNTS.items()
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not isinstance(self.stages, tuple | list) or not all(isinstance(stage, Stage) for stage in self.stages):
            raise InputError(
                f"recipe.stages must be a list of Stage(free, iterations), received {describe(self.stages)}"
            )
        if not self.stages:
            raise InputError("recipe.stages must be one or more Stage(free, iterations), received none")
        object.__setattr__(self, "stages", tuple(self.stages))


_POSITIVE = ("hidden_noise", "output_noise", "latent_variance", "lengthscale_factor", "kernel_variance",
             "initial_variance", "jitter")  # fmt: skip


_NOT_NEGATIVE = ("zeta_noise", "ftol", "gtol")


_COUNTS = {"kmeans_iterations": None, "kmeans_starts": None, "memory": 1000}
