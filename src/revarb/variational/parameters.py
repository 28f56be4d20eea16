"""All parameters of a fit: as a tree, as one flat vector, and by named groups."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64

from revarb.gp.layer import Layer
from revarb.runtime.numerics import AnyArray
from revarb.variational.noise import StudentNoise
from revarb.variational.states import FreeStates, InitialPrior, RecognisedStates


class Parameters(eqx.Module):
    """Parameters of the layers 1 … H+1, q(x), the priors of the initial states of the H hidden layers, and q(τ)."""

    layers: tuple[Layer, ...]
    states: FreeStates | RecognisedStates
    priors: tuple[InitialPrior, ...]
    noise: StudentNoise | None = None  # of the outputs; None: Gaussian


_GROUP_OF_FIELD = {
    "mu": "mu",
    "weights": "mu",  # networks take the place of free means
    "biases": "mu",
    "initial": "mu",
    "raw_lam": "lam",
    "zeta": "zeta",
    "raw_w": "w",
    "raw_variance": "variance",
    "raw_sigma2": "sigma2",
    "coefficients": "linear",
    "offset": "linear",
    "prior_mean": "prior",
    "raw_prior_variance": "prior",
    "log_rate": "tau",
    "raw_degrees": "nu",
}


class Form(NamedTuple):
    """Structure and shapes of a tree of parameters, a constant of compiled functions."""

    structure: Any  # a PyTreeDef, which JAX does not declare as a type
    shapes: tuple[tuple[int, ...], ...]


def get_form(parameters: Parameters) -> Form:
    """Return structure and shapes of a tree of parameters."""
    leaves, structure = jax.tree.flatten(parameters)
    return Form(structure, tuple(np.shape(leaf) for leaf in leaves))


def flatten(parameters: Parameters) -> Float64[AnyArray, " V"]:
    """Concatenate all parameters to one float64 vector."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(parameters)])


def unflatten(vector: Float64[AnyArray, " V"], form: Form) -> Parameters:
    """Build the tree of this form with the values of `vector`."""
    sizes = [math.prod(shape) for shape in form.shapes]
    ends = np.cumsum(sizes).tolist()
    pieces = [
        vector[end - size : end].reshape(shape) for end, size, shape in zip(ends, sizes, form.shapes, strict=True)
    ]
    return jax.tree.unflatten(form.structure, pieces)


def select_entries(parameters: Parameters, free: tuple[str, ...]) -> Bool[np.ndarray, " V"]:
    """Mark the entries of the flat vector that belong to the named groups (config/recipe.py: GROUPS)."""
    leaves = jax.tree_util.tree_leaves_with_path(parameters)
    return np.concatenate([np.full(np.size(leaf), _find_group(path) in free) for path, leaf in leaves])


def _find_group(path: tuple) -> str:
    fields = [key.name for key in path if isinstance(key, jax.tree_util.GetAttrKey)]
    return _GROUP_OF_FIELD[fields[-1]]
