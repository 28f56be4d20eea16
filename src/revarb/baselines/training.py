"""L-BFGS-B over the arrays of any tree."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from revarb.optimise import Optimum, Phase, Settings, Step, maximise

Tree = TypeVar("Tree")

SETTINGS = Settings(memory=20, ftol=1e-9, gtol=1e-5)


def maximise_tree(
    value_and_gradient: Callable[[Tree], tuple[Any, Tree]],
    start: Tree,
    iterations: int,
    report: Callable[[Step], None] = lambda step: None,
) -> tuple[Tree, Optimum]:
    """The tree with the largest value on the way, as NumPy arrays, and how the optimisation went."""
    flat, unravel = ravel_pytree(start)

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = value_and_gradient(unravel(vector))  # pyright: ignore[reportArgumentType] (NumPy will do)
        return float(value), np.asarray(ravel_pytree(gradient)[0])

    phase = Phase(np.ones(len(flat), dtype=bool), iterations)
    optimum = maximise(objective, np.asarray(flat), [phase], SETTINGS, report)
    best: Tree = jax.tree.map(np.asarray, unravel(optimum.vector))  # pyright: ignore[reportArgumentType]
    return best, optimum
