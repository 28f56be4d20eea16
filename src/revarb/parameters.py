"""All that a fit may change, as one tree, as one flat vector, and by named groups."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float64

from revarb.collapsed import Layer
from revarb.states import FreeStates, InitialPrior


class Parameters(eqx.Module):
    """Layers 1 … H+1, and for the H hidden ones q(x) and the prior of the initial states."""

    layers: tuple[Layer, ...]
    states: FreeStates
    priors: tuple[InitialPrior, ...]


_GROUP_OF_FIELD = {
    "mu": "mu",
    "raw_lam": "lam",
    "zeta": "zeta",
    "raw_w": "w",
    "raw_variance": "variance",
    "raw_sigma2": "sigma2",
    "prior_mean": "prior",
    "raw_prior_variance": "prior",
}


def flatten(parameters: Parameters) -> Float64[np.ndarray, " V"]:
    """All parameters as one float64 vector."""
    return np.concatenate([np.ravel(np.asarray(leaf, dtype=np.float64)) for leaf in jax.tree.leaves(parameters)])


def unflatten(vector: Float64[np.ndarray, " V"], like: Parameters) -> Parameters:
    """The tree of `like` with the values of `vector`."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])
    pieces = [vector[end - np.size(leaf) : end].reshape(np.shape(leaf)) for end, leaf in zip(ends, leaves, strict=True)]
    return jax.tree.unflatten(structure, pieces)


def free_entries(parameters: Parameters, free: tuple[str, ...]) -> Bool[np.ndarray, " V"]:
    """Which entries of the flat vector belong to the named groups (recipe.GROUPS)."""
    leaves = jax.tree_util.tree_leaves_with_path(parameters)
    return np.concatenate([np.full(np.size(leaf), _group(path) in free) for path, leaf in leaves])


def _group(path: tuple) -> str:
    fields = [key.name for key in path if isinstance(key, jax.tree_util.GetAttrKey)]
    return _GROUP_OF_FIELD[fields[-1]]
