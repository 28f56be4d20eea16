import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revarb.data.windows import (
    Order,
    current_windows,
    initial_states,
    input_windows,
    later_states,
    map_blocks,
    past_windows,
    regressor_sizes,
    regressors,
)
from support import oracles

lag_choices = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 3))


@settings(max_examples=60, deadline=None)
@given(
    lag_choices,
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(1, 2),
    st.lists(st.integers(2, 6), min_size=1, max_size=3),
)
def test_regressors_equal_plain_loops(lag_choice, H, Dx, Du, extra_rows):
    L, L_u, delay = lag_choice
    order = Order(L, L_u, delay)
    rng = np.random.default_rng(0)
    records = [
        (
            [rng.normal(size=(order.first_row + rows, Dx)) for _ in range(H)],
            rng.normal(size=(order.first_row + rows, Du)),
        )
        for rows in extra_rows
    ]
    expected = [
        np.concatenate(parts)
        for parts in zip(
            *(oracles.layer_windows(x, u, L, L_u, delay, order.first_row) for x, u in records), strict=True
        )
    ]
    blocks = [[layer[order.first_row - L :] for layer in x] for x, _ in records]
    states = [np.concatenate([block[h] for block in blocks]) for h in range(H)]
    lengths = [len(block[0]) for block in blocks]
    u_bar = np.concatenate([input_windows(u, order)[order.first_row - order.reach :] for _, u in records])
    got = regressors(states, u_bar, L, lengths)
    assert [table.shape[1] for table in got] == regressor_sizes(order, [Dx] * H, Du)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_papers_windows_for_equal_lags():
    # L = L_u = 2, delay 1: row i sees u_{i−1}, u_{i−2}.
    u = np.arange(5.0)[:, None]
    np.testing.assert_array_equal(input_windows(u, Order(2, 2, 1)), [[1, 0], [2, 1], [3, 2]])


def test_feedthrough_ends_at_the_present_input_and_dead_time_earlier():
    u = np.arange(5.0)[:, None]
    np.testing.assert_array_equal(input_windows(u, Order(1, 2, 0))[-1], [4, 3])
    np.testing.assert_array_equal(input_windows(u, Order(1, 2, 3))[-1], [1, 0])


def test_a_system_without_inputs_has_empty_input_windows():
    order = Order(3, 0, 1)
    assert (order.reach, order.first_row) == (0, 3)
    assert input_windows(np.empty((7, 0)), order).shape == (7, 0)


def test_initial_and_later_states_split_every_record():
    x = np.arange(9.0)[:, None]
    np.testing.assert_array_equal(initial_states(x, 2, [4, 5])[:, :, 0], [[0, 1], [4, 5]])
    np.testing.assert_array_equal(later_states(x, 2, [4, 5])[:, 0], [2, 3, 6, 7, 8])


@pytest.mark.parametrize("lengths", [[4, 4, 4], [5, 4, 4, 6, 6, 4], [9]])
def test_neighbours_of_one_length_have_the_windows_that_each_has_alone(lengths, rng):
    states = rng.normal(size=(sum(lengths), 2))
    blocks = np.split(states, np.cumsum(lengths)[:-1])
    for windows in (past_windows, current_windows):
        expected = np.concatenate([windows(block, 3) for block in blocks])
        np.testing.assert_array_equal(map_blocks(windows, states, 3, lengths), expected)
    np.testing.assert_array_equal(initial_states(states, 3, lengths), np.stack([block[:3] for block in blocks]))


@pytest.mark.parametrize(
    ("order", "first"), [(Order(10, 10, 1), 10), (Order(2, 8, 1), 8), (Order(2, 3, 4), 6), (Order(1, 1, 0), 1)]
)
def test_first_row_has_both_windows_full(order, first):
    assert order.first_row == first
