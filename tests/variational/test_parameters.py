import jax
import numpy as np

from revarb.models.recipe import GROUPS
from revarb.variational.parameters import flatten, get_form, select_entries, unflatten
from support.random_models import random_parameters


def test_flatten_and_back(rng):
    parameters = random_parameters(rng, (5, 4))
    again = unflatten(flatten(parameters), get_form(parameters))
    for ours, theirs in zip(jax.tree.leaves(again), jax.tree.leaves(parameters), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_every_entry_belongs_to_exactly_one_group(rng):
    parameters = random_parameters(rng, (5, 4), linear=1, student=1)
    memberships = np.sum([select_entries(parameters, (group,)) for group in GROUPS], axis=0)
    np.testing.assert_array_equal(memberships, 1)
