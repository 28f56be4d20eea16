"""What a model file claims, held against what a trained model can be. Whoever signs a file can sign nonsense."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from revarb.collapsed import Posterior
from revarb.errors import InputError, check_number, check_whole, shown
from revarb.optimise import Step
from revarb.simulate import Chain, Start


def numbers(name: str, values: object) -> Float64[np.ndarray, " D"]:
    """A list of finite numbers as a vector."""
    if not isinstance(values, list):
        raise InputError(f"{name} must be a list of numbers, received {shown(values)}")
    return np.array([check_number(name, value) for value in values], dtype=np.float64)


def step_of(stage: object, iteration: object, bound: object) -> Step:
    """A step of the history."""
    whole = (check_whole("a stage of the history", stage, 1), check_whole("an iteration of the history", iteration, 1))
    return Step(*whole, check_number("a bound of the history", bound))


def check_chain(chain: Chain[Posterior]) -> None:
    """Kernels and noises must be positive; an inverse lengthscale may vanish."""
    for layer in (*chain.hidden, chain.output):
        if layer is not None and not ((layer.w >= 0.0).all() and layer.variance > 0.0 and layer.sigma2 > 0.0):
            raise InputError("a layer has a kernel or a noise that is not positive")


def check_starts(starts: Sequence[Start]) -> None:
    """A covariance is symmetric, and no variance in it is negative in any direction."""
    for start in starts:
        cov = np.asarray(start.cov)
        largest = max(float(np.abs(cov).max()), np.finfo(np.float64).tiny)
        # In units of the largest entry; what is below rounding counts as nothing.
        if not np.array_equal(cov, cov.T) or np.linalg.eigvalsh(cov / largest)[0] < -1e-9:
            raise InputError(
                "a final state has a covariance that is not one: not symmetric, or with negative variances"
            )
