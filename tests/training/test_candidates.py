"""Which configurations are tried on a record."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.training import choose
from revarb.training.candidates import (
    DELAYS,
    FEW_ITERATIONS,
    FEW_LAGS,
    INDUCING,
    LAGS,
    MORE_LAGS,
    RECORD_ROWS_PER_LAG,
    ROWS_PER_LAG,
    WEIGHT,
    Structure,
    describe_order,
    leave_out_short,
    limit_lags,
    list_other_recipes,
    list_structures,
    list_variants,
)
from revarb.training.linear_trial import try_linear
from revarb.training.problem import FEW_INDUCING
from support import small


def test_lags_are_limited_on_short_records():
    long, short = small.record(samples=ROWS_PER_LAG * MORE_LAGS), small.record(samples=3 * ROWS_PER_LAG + 1)
    assert limit_lags([long], MORE_LAGS) == MORE_LAGS and limit_lags([long], FEW_LAGS) == FEW_LAGS
    assert limit_lags([short], MORE_LAGS) == 3
    assert limit_lags([small.record(samples=4)], LAGS) == 1
    assert {structure.spec.lags for structure in list_structures([long], 1)} == {FEW_LAGS, LAGS}
    assert {structure.spec.lags for structure in list_structures([short], 1)} == {3}


def make_records(*lengths):
    return [small.record(number, samples=length) for number, length in enumerate(lengths)]


def test_lags_of_several_records():
    """All records together have 12 rows per lag, and those with most of the rows 4 each."""
    rows = RECORD_ROWS_PER_LAG * MORE_LAGS
    assert limit_lags(make_records(*[rows] * 3), MORE_LAGS) == MORE_LAGS
    assert limit_lags(make_records(rows, rows, rows - 1), MORE_LAGS) == MORE_LAGS - 1  # a third in a short one
    assert limit_lags(make_records(rows, rows), MORE_LAGS) == 2 * rows // ROWS_PER_LAG
    assert limit_lags(make_records(4 * rows, rows - 1), MORE_LAGS) == MORE_LAGS  # 80 % of the rows
    assert limit_lags(make_records(4 * rows, rows + 1), MORE_LAGS) == MORE_LAGS


def test_a_short_record_is_left_out_with_a_warning():
    long, short = make_records(1500, 20)
    with pytest.warns(UserWarning, match="^1 of 2 records have fewer than 120 samples and are left out; RGP") as seen:
        assert leave_out_short([long, short]) == (long,)
    assert len(seen) == 1 and limit_lags([long, short], MORE_LAGS) == limit_lags([long], MORE_LAGS) == MORE_LAGS
    assert [structure.spec.lags for structure in list_structures([long], 1)] == [LAGS, FEW_LAGS, LAGS]


@pytest.mark.parametrize("lengths", [[1500], [300, 80], [60] * 4, [40] * 30, [9], [2, 2]])
def test_records_that_are_all_long_enough_or_all_too_short_stay(lengths, recwarn):
    records = make_records(*lengths)
    assert leave_out_short(records) == tuple(records) and len(recwarn) == 0


@pytest.mark.parametrize("lengths", [[1500, 20], [140, 30, 9]])
@pytest.mark.filterwarnings("ignore:.* records have fewer than")
def test_what_is_left_is_long_enough_for_its_own_lags(lengths):
    kept = leave_out_short(make_records(*lengths))
    assert min(len(record) for record in kept) >= RECORD_ROWS_PER_LAG * limit_lags(kept, MORE_LAGS)


def test_trials_of_two_hidden_layers_have_fewer_iterations():
    records = [small.record(samples=300)]
    linear, smooth, fixed = list_structures(records, 1)
    [free] = [each for each in list_variants(fixed, records) if each.name == "free variances"]
    for each in (fixed, free):
        assert each.trial.recipe.iterations[:2] == FEW_ITERATIONS < each.spec.recipe.iterations[:2]
        assert replace(each.trial, recipe=each.spec.recipe) == each.spec
    assert all(each.quick_trials for each in list_variants(fixed, records))
    assert linear.trial == linear.spec and smooth.trial == smooth.spec
    quick = Structure("quick", small.spec(recipe=small.QUICK), quick_trials=True)
    assert quick.trial == quick.spec  # never more


@pytest.mark.parametrize(
    ("lengths", "inducing"), [([100], 50), ([250], 62), ([150, 150], 75), ([400], INDUCING), ([2000], INDUCING)]
)
def test_short_records_have_fewer_inducing_inputs(lengths, inducing):
    records = make_records(*lengths)
    linear, *others = list_structures(records, 1)
    variants = [variant for each in others for variant in list_variants(each, records)]
    assert {each.spec.inducing for each in (*others, *variants)} == {inducing}
    assert linear.spec.inducing == FEW_INDUCING


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
    changed = replace(every[0], spec=replace(every[0].spec, inducing=every[0].spec.inducing + 1))
    assert changed.key not in keys and replace(every[0]).key == every[0].key
    names = [structure.describe(weight) for structure in every for weight in structure.weights]
    assert len(set(names)) == len(names)


def test_complexity_is_the_weight_before_the_lags():
    few, many = list_structures([small.record(samples=300)], 1)[1:3]
    assert few.spec.lags < many.spec.lags
    assert (False, 0.0, 99) < few.complexity(0.0) < many.complexity(0.0) < few.complexity(2.0)


def test_orders_in_words():
    assert describe_order(Order(5, 5, 1)) == describe_order(Order(5, 0, 1)) == "5 lags"
    assert describe_order(Order(3, 4, 1)) == "3 + 4 lags" and describe_order(Order(1, 2, 1)) == "1 + 2 lags"
    assert describe_order(Order(1, 1, 1)) == describe_order(Order(1, 0, 1)) == "1 lag"
    assert describe_order(Order(3, 3, 0)) == "3 lags, delay 0"


def test_something_is_held_out_of_three_records_of_60_samples():
    assert choose._hold_out(make_records(60, 60, 60)) is not None


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [[60] * 4])
def test_late_runs_of_short_records_can_be_scored(lengths):
    scored = try_linear(choose._hold_out(make_records(*lengths)))
    assert scored and all(np.isfinite(each.errors).all() for each in scored)


@pytest.mark.parametrize("lengths", [[120], [150], [170], [300], [200, 9]])
@pytest.mark.filterwarnings("ignore:.* records have fewer than")
@pytest.mark.parametrize("delay", [1, 8, 16])
def test_the_window_of_inputs_is_full_where_the_first_stretch_begins(lengths, delay):
    """A cold run begins where its window is full: a stretch before that could not be scored."""
    held_out = choose._hold_out(leave_out_short(make_records(*lengths)))
    first = min(segment.first for segment in (*held_out.segments, *held_out.late))
    if delay > first:
        return  # such a delay is not tried
    structures = list_structures(held_out.records, delay)
    structures += [variant for each in structures for variant in list_variants(each, held_out.records)]
    for structure in structures:
        order = structure.spec.order_for(1)
        assert order.reach <= first, (structure, first)
        assert np.all([len(record) > order.first_row + 1 for record in held_out.records])


def test_other_recipes_have_the_shape_of_their_structure():
    records = [Series(np.sin(np.arange(300.0) ** 1.2), np.cos(np.arange(300.0)))]
    structures = list_structures(records, 1)
    [other] = list_other_recipes(structures, records)
    assert other.name == "free variances"
    assert replace(other.spec, recipe=structures[-1].spec.recipe) == structures[-1].spec
