"""Candidates: their identity, a user's own list, and the default ones."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.data.windows import Order
from revarb.fitting.problem import FEW_INDUCING
from revarb.models.recipe import RECIPES, Recognition
from revarb.selection.candidates import (
    DELAYS,
    LINEAR_WEIGHT,
    WEIGHT,
    CandidateKey,
    CandidatePath,
    DefaultCandidates,
    describe_order,
    read_candidates,
)
from revarb.selection.records import (
    FEW_LAGS,
    FEWEST_LAGS,
    LAGS,
    MORE_LAGS,
    ROWS_PER_LAG,
    hold_out_blocks,
    leave_out_short,
)
from support import small

DEFAULT = DefaultCandidates()
SPEC = small.spec(hidden=1, recipe=replace(small.QUICK, free_run_weight=10.0))
LONG = small.record(samples=300)


def make_records(*lengths, **columns):
    return [small.record(number, samples=length, **columns) for number, length in enumerate(lengths)]


def test_the_identity_of_a_candidate_is_its_configuration_and_weight():
    one, renamed, other = CandidatePath(SPEC, "a"), CandidatePath(SPEC, "b"), CandidatePath(small.spec(), "a")
    assert one == renamed and hash(one) == hash(renamed) and one != other
    assert one.at(2.0) == renamed.at(2.0) != one.at(10.0)
    assert one.at(2.0).name == "a, 2 lags, w = 2" and renamed.at(2.0).name == "b, 2 lags, w = 2"
    linear = CandidateKey(Order(2, 2, 1), name="linear, 2 lags")
    assert linear == CandidateKey(Order(2, 2, 1), name="ARX") and linear.path is None
    assert CandidateKey((linear, one.at(2.0))) == CandidateKey((linear, renamed.at(2.0)), name="mixture of 2")


def test_keys_are_unique_and_safe_as_names_of_files():
    records = make_records(300, outputs=3)
    every = [path for delay in DELAYS for path in DEFAULT.list_paths(records, delay)]
    keys, names = [path.key for path in every], [path.at(weight).name for path in every for weight in path.weights]
    assert len(set(keys)) == len(keys) and all(key.isalnum() and key.isascii() for key in keys)
    assert len(set(names)) == len(names)
    changed = replace(every[0], spec=replace(every[0].spec, inducing=every[0].spec.inducing + 1))
    assert changed.key not in keys and replace(every[0], name="other").key == every[0].key


def test_paths_with_and_without_weights():
    assert CandidatePath(SPEC, "a").weights == (0.0, 2.0, 10.0)
    without = [replace(SPEC, recipe=small.QUICK), replace(SPEC, recognition=Recognition()), revarb.Mean()]
    assert [CandidatePath(spec, "a").weights for spec in without] == [(0.0,), (10.0,), (0.0,)]
    assert not any(CandidatePath(spec, "a").has_weights for spec in without)


def test_orders_in_words():
    words = {
        "5 lags": [(5, 5, 1), (5, 0, 1)], "3 + 4 lags": [(3, 4, 1)], "1 + 2 lags": [(1, 2, 1)],
        "1 lag": [(1, 1, 1), (1, 0, 1)], "3 lags, delay 0": [(3, 3, 0)],
    }  # fmt: skip
    assert all(describe_order(Order(*order)) == said for said, orders in words.items() for order in orders)


def test_a_list_and_a_dict_of_configurations_and_nothing_else_is_tried():
    given = read_candidates([revarb.RGP(), revarb.ARX(5, 4), revarb.Mean(), replace(SPEC, inducing=5)])
    assert given.linear == (("", revarb.ARX(5, 4)),)
    assert [path.name for path in given.paths] == ["RGP, candidate 1", "Mean", "RGP, candidate 4"]
    named, records = read_candidates({"small": SPEC, "line": revarb.ARX(3, 2), "constant": revarb.Mean()}), [LONG]
    paths = named.list_paths(records, delay=8)
    assert [path.at(weight).name for path in paths for weight in path.weights] == [
        "small, 2 lags, w = 0", "small, 2 lags, w = 2", "small, 2 lags, w = 10", "constant"
    ]  # fmt: skip
    assert paths[0].spec == SPEC
    held_out = hold_out_blocks(records, named.find_largest_order(records))
    assert named.list_linear_orders(held_out) == [("line", Order(3, 2, 1))]


def test_the_largest_order_covers_all_candidates():
    given = read_candidates([revarb.ARX(7, 2), revarb.GPNARX(2, 3, 5), revarb.LSTM()])
    largest = given.find_largest_order(make_records(100))
    assert (largest.lags, largest.reach) == (7, 7)
    alone = read_candidates([revarb.ARX(4)]).find_largest_order([revarb.Series(None, np.arange(9.0))])
    assert alone == Order(4, 0, 1)


def test_lags_follow_the_records():
    long, short = small.record(samples=ROWS_PER_LAG * MORE_LAGS), small.record(samples=3 * ROWS_PER_LAG + 1)
    lags = [LAGS, MORE_LAGS, FEW_LAGS, LAGS, FEWEST_LAGS]
    assert [path.spec.lags for path in DEFAULT.list_paths([long], 1)] == lags
    assert {path.spec.lags for path in DEFAULT.list_paths([short], 1)} == {3, FEWEST_LAGS}
    assert DEFAULT.find_largest_order([long]) == Order(MORE_LAGS, MORE_LAGS, 1)


@pytest.mark.parametrize("delay", [0, 1, 8])
def test_what_differs_between_the_structures(delay):
    paths = DEFAULT.list_paths(make_records(300, outputs=2), delay)
    assert {(path.trial_spec.input_delay, path.trial_spec.inducing) for path in paths} == {(delay, FEW_INDUCING)}
    [full] = [path for path in paths if path.trial is not None]
    assert full.name == "smooth layer" and full.spec.inducing == 75 and full.spec.lags == FEW_LAGS
    assert sum(full.spec.recipe.iterations) > sum(full.trial.recipe.iterations)
    assert replace(full.spec, inducing=FEW_INDUCING, recipe=full.trial.recipe) == full.trial
    assert {path.linear_part for path in paths} == {True, False} and {path.spec.hidden for path in paths} == {1, 2}
    assert {"lam" in stage.free for path in paths for stage in path.spec.recipe.stages} == {True, False}
    for path in paths:
        assert list(path.weights) == sorted(set(path.weights)) and path.weights[0] == 0.0
        assert path.weights[-1] == (LINEAR_WEIGHT if path.linear_part else WEIGHT)
    linear = [path for path in paths if path.linear_part]
    assert [path.spec.latent_dims[0] for path in linear] == [2, 2]  # as many states as outputs
    assert [path.spec.recipe.keeps_states for path in linear] == [False, True]
    assert DefaultCandidates(linear_only=True).list_paths(make_records(300, outputs=2), delay) == paths[:1]


def test_of_long_records_those_with_known_states_come_first_and_see_more_rows():
    records = make_records(600, outputs=2)
    paths = DefaultCandidates(long=True).list_paths(records, 1)
    known, others = paths[:2], paths[2:]
    assert others == DEFAULT.list_paths(records, 1)[:-1]
    for path in known:
        last, trial = path.spec, path.trial_spec
        assert last.recipe.keeps_states and last.inducing > 2 * trial.inducing
        assert last.recipe.max_rows > RECIPES["narx"].max_rows
        assert sum(last.recipe.iterations) > sum(trial.recipe.iterations)
        free = {name for stage in (*last.recipe.stages, *trial.recipe.stages) for name in stage.free}
        assert "linear" not in free and "zeta" in free  # the linear part stays stable
    assert [(path.spec.lags, path.spec.input_lags) for path in known] == [(FEW_LAGS,) * 2, (MORE_LAGS,) * 2]


def test_structures_that_short_records_make_equal_are_tried_once():
    assert len(DEFAULT.list_paths(make_records(40), 1)) == len(DEFAULT.list_paths([LONG], 1)) - 1


@pytest.mark.parametrize("lengths", [[120], [150], [170], [300], [200, 9]])
@pytest.mark.filterwarnings("ignore:.* records have fewer than")
def test_the_window_of_inputs_is_full_where_the_first_block_begins(lengths):
    """A cold run begins where its window is full: a block before that could not be scored."""
    records = leave_out_short(make_records(*lengths))
    held_out = hold_out_blocks(records, DEFAULT.find_largest_order(records))
    first = min(run.first for run in (*held_out.runs, *held_out.late_runs))
    assert max(order.reach for _, order in DEFAULT.list_linear_orders(held_out)) <= first
    for delay in (each for each in (1, 8, 16) if each <= first):  # others are not tried
        for order in (path.spec.order_for(1) for path in DEFAULT.list_paths(held_out.records, delay)):
            assert order.reach <= first
            assert all(len(record) > order.first_row + 1 for record in held_out.records)
