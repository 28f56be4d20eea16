"""All that a fit may change, as one tree, as one flat vector, and by named groups."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64

from revarb.gp.layer import Layer
from revarb.runtime.numerics import AnyArray
from revarb.variational.networks import RecognisedStates
from revarb.variational.states import FreeStates, InitialPrior


class Parameters(eqx.Module):
    """Layers 1 … H+1, and for the H hidden ones q(x) and the prior of the initial states."""

    layers: tuple[Layer, ...]
    states: FreeStates | RecognisedStates
    priors: tuple[InitialPrior, ...]


_GROUP_OF_FIELD = {
    "mu": "mu",
    "weights": "mu",  # networks stand for means
    "biases": "mu",
    "initial": "mu",
    "raw_lam": "lam",
    "zeta": "zeta",
    "raw_w": "w",
    "raw_variance": "variance",
    "raw_sigma2": "sigma2",
    "prior_mean": "prior",
    "raw_prior_variance": "prior",
}


class Form(NamedTuple):
    """A tree of parameters without its values: all that a compiled function must know of it."""

    structure: Any  # a PyTreeDef, which JAX does not declare as a type
    shapes: tuple[tuple[int, ...], ...]


def form_of(parameters: Parameters) -> Form:
    """The form of a tree of parameters."""
    leaves, structure = jax.tree.flatten(parameters)
    return Form(structure, tuple(np.shape(leaf) for leaf in leaves))


def flatten(parameters: Parameters) -> Float64[AnyArray, " V"]:
    """All parameters as one float64 vector."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(parameters)])


def unflatten(vector: Float64[AnyArray, " V"], form: Form) -> Parameters:
    """The tree of this form with the values of `vector`."""
    sizes = [math.prod(shape) for shape in form.shapes]
    ends = np.cumsum(sizes).tolist()
    pieces = [
        vector[end - size : end].reshape(shape) for end, size, shape in zip(ends, sizes, form.shapes, strict=True)
    ]
    return jax.tree.unflatten(form.structure, pieces)


def free_entries(parameters: Parameters, free: tuple[str, ...]) -> Bool[np.ndarray, " V"]:
    """Which entries of the flat vector belong to the named groups (recipe.GROUPS)."""
    leaves = jax.tree_util.tree_leaves_with_path(parameters)
    return np.concatenate([np.full(np.size(leaf), _group(path) in free) for path, leaf in leaves])


def _group(path: tuple) -> str:
    fields = [key.name for key in path if isinstance(key, jax.tree_util.GetAttrKey)]
    return _GROUP_OF_FIELD[fields[-1]]
