import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revarb.data import windows
from revarb.data.windows import Order, input_windows
from support import oracles

lag_choices = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 3))


@settings(max_examples=60, deadline=None)
@given(lag_choices, st.integers(1, 3), *2 * [st.integers(1, 2)], st.lists(st.integers(2, 6), min_size=1, max_size=3))
def test_regressors_equal_plain_loops(lag_choice, H, Dx, Du, extra_rows):
    order, rng = Order(*lag_choice), np.random.default_rng(0)
    L, sizes = order.lags, [order.first_row + rows for rows in extra_rows]
    records = [([rng.normal(size=(size, Dx)) for _ in range(H)], rng.normal(size=(size, Du))) for size in sizes]
    alone = [oracles.layer_windows(x, u, *lag_choice, order.first_row) for x, u in records]
    expected = [np.concatenate(parts) for parts in zip(*alone, strict=True)]
    blocks = [[layer[order.first_row - L :] for layer in x] for x, _ in records]
    states = [np.concatenate([block[h] for block in blocks]) for h in range(H)]
    lengths = [len(block[0]) for block in blocks]
    u_bar = np.concatenate([input_windows(u, order)[order.first_row - order.reach :] for _, u in records])
    got = windows.regressors(states, u_bar, L, lengths)
    assert [table.shape[1] for table in got] == windows.regressor_sizes(order, [Dx] * H, Du)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("order", "reach", "first", "last"),
    [
        (Order(2, 2, 1), 2, 2, [10, 9]),  # the paper's windows for equal lags
        (Order(10, 10, 1), 10, 10, np.arange(10, 0, -1)),
        (Order(2, 8, 1), 8, 8, np.arange(10, 2, -1)),
        (Order(2, 3, 4), 6, 6, [7, 6, 5]),  # dead time
        (Order(1, 2, 0), 1, 1, [11, 10]),  # feedthrough ends at the present input
        (Order(1, 1, 0), 0, 1, [11]),
    ],
)
def test_windows_of_inputs_and_the_first_row_that_has_both_windows_full(order, reach, first, last):
    table = input_windows(np.arange(12.0)[:, None], order)
    assert (order.reach, order.first_row, len(table)) == (reach, first, 12 - reach)
    np.testing.assert_array_equal(table[-1], last)
    np.testing.assert_array_equal(np.diff(table, axis=0), 1.0)


def test_a_system_without_inputs_has_empty_input_windows():
    order = Order(3, 0, 1)
    assert (order.reach, order.first_row) == (0, 3)
    assert input_windows(np.empty((7, 0)), order).shape == (7, 0)


@pytest.mark.parametrize("lengths", [[4, 4, 4], [5, 4, 4, 6, 6, 4], [9]])
def test_neighbours_of_one_length_have_the_windows_that_each_has_alone(lengths, rng):
    states = rng.normal(size=(sum(lengths), 2))
    blocks = np.split(states, np.cumsum(lengths)[:-1])
    for cut in (windows.past_windows, windows.current_windows):
        expected = np.concatenate([cut(block, 3) for block in blocks])
        np.testing.assert_array_equal(windows.map_blocks(cut, states, 3, lengths), expected)
    first, later = [block[:3] for block in blocks], [block[3:] for block in blocks]
    np.testing.assert_array_equal(windows.initial_states(states, 3, lengths), first)
    np.testing.assert_array_equal(windows.later_states(states, 3, lengths), np.concatenate(later))
