"""Which configurations are tried on a record."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.data.windows import Order
from revarb.training import choose
from revarb.training.candidates import (
    DELAYS,
    FEW_LAGS,
    LAGS,
    MORE_LAGS,
    ROWS_PER_LAG,
    WEIGHT,
    describe_order,
    limit_lags,
    list_structures,
    list_variants,
)
from support import small


def test_lags_are_limited_on_short_records():
    long, short = small.record(samples=ROWS_PER_LAG * MORE_LAGS), small.record(samples=3 * ROWS_PER_LAG + 1)
    assert limit_lags([long], MORE_LAGS) == MORE_LAGS and limit_lags([long], FEW_LAGS) == FEW_LAGS
    assert limit_lags([short], MORE_LAGS) == 3
    assert limit_lags([small.record(samples=4)], LAGS) == 1
    assert {structure.spec.lags for structure in list_structures([long], 1)} == {FEW_LAGS, LAGS}
    assert {structure.spec.lags for structure in list_structures([short], 1)} == {3}


@pytest.mark.parametrize("delay", [0, 1, 8])
def test_the_delay_is_passed_on(delay):
    records = [small.record(samples=300)]
    structures = list_structures(records, delay)
    assert {structure.spec.input_delay for structure in structures} == {delay}
    variants = [variant for structure in structures for variant in list_variants(structure, records)]
    assert variants and {variant.spec.input_delay for variant in variants} == {delay}


def test_what_differs_between_the_structures():
    records = [small.record(samples=300, outputs=2)]
    structures = list_structures(records, 1)
    structures += [variant for structure in structures for variant in list_variants(structure, records)]
    assert any(structure.spec.linear for structure in structures) and any(not each.spec.linear for each in structures)
    assert {structure.spec.hidden for structure in structures} == {1, 2}
    free = {"lam" in stage.free for structure in structures for stage in structure.spec.recipe.stages}
    assert free == {True, False}
    for structure in structures:
        assert structure.weights[0] == 0.0 and structure.weights[-1] >= WEIGHT
        assert list(structure.weights) == sorted(set(structure.weights))
        if structure.spec.linear:
            assert structure.spec.latent_dims[0] == 2  # a linear part maps states to outputs


def test_variants_have_more_lags_or_a_state_per_output():
    records = [small.record(samples=300, outputs=2)]
    linear, *others = list_structures(records, 1)
    assert linear.spec.linear and list_variants(linear, records) == []
    for best in others:
        [more] = [each for each in list_variants(best, records) if each.spec.lags > best.spec.lags]
        assert (more.spec.lags, more.spec.input_lags) == (MORE_LAGS, MORE_LAGS)
        assert replace(more.spec, lags=best.spec.lags, input_lags=best.spec.input_lags) == best.spec
        [states] = [each for each in list_variants(best, records) if each.spec.latent_dims != best.spec.latent_dims]
        assert set(states.spec.latent_dims) == {2} and states.spec.lags == best.spec.lags
    short = [small.record(samples=40)]
    for best in list_structures(short, 1):
        for variant in list_variants(best, short):
            assert (variant.spec.lags, variant.spec.latent_dims) == (best.spec.lags, best.spec.latent_dims)


def test_keys_are_unique_and_safe_as_names_of_files():
    records = [small.record(samples=300, outputs=3)]
    structures = [each for delay in DELAYS for each in list_structures(records, delay)]
    every = structures + [variant for each in structures for variant in list_variants(each, records)]
    keys = [structure.key for structure in every]
    assert len(set(keys)) == len(keys)
    assert all(key.replace("-", "").replace("_", "").isalnum() and key.isascii() for key in keys)
    names = [structure.describe(weight) for structure in every for weight in structure.weights]
    assert len(set(names)) == len(names)


def test_complexity_is_the_weight_before_the_lags():
    few, many = list_structures([small.record(samples=300)], 1)[1:3]
    assert few.spec.lags < many.spec.lags
    assert (False, 0.0, 99) < few.complexity(0.0) < many.complexity(0.0) < few.complexity(2.0)


def test_orders_in_words():
    assert describe_order(Order(5, 5, 1)) == describe_order(Order(5, 0, 1)) == "5 lags"
    assert describe_order(Order(3, 4, 1)) == "3 + 4 lags"
    assert describe_order(Order(3, 3, 0)) == "3 lags, delay 0"


@pytest.mark.parametrize("lengths", [[120], [150], [170], [300], [60, 60, 60], [200, 9]])
@pytest.mark.parametrize("delay", [1, 8, 16])
def test_the_window_of_inputs_is_full_where_the_first_stretch_begins(lengths, delay):
    """A cold run begins where its window is full: a stretch before that could not be scored."""
    held_out = choose._hold_out([small.record(samples=length) for length in lengths])
    first = min(segment.first for segment in (*held_out.segments, *held_out.late))
    if delay > first:
        return  # such a delay is not tried
    structures = list_structures(held_out.records, delay)
    structures += [variant for each in structures for variant in list_variants(each, held_out.records)]
    for structure in structures:
        order = structure.spec.order_for(1)
        assert order.reach <= first, (structure, first)
        assert np.all([len(record) > order.first_row + 1 for record in held_out.records])
