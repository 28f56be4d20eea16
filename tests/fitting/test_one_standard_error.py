"""The rule that decides between candidates."""

import numpy as np
import pytest

from revarb.errors import ComputationError
from revarb.fitting.one_standard_error import compare_with_best, find_simplest

ERRORS = np.array([[0.2, 0.4, 0.8], [0.22, 0.38, 0.88], [0.4, 0.8, 1.6]])


def test_candidates_are_compared_block_by_block():
    best, differences, deviations = compare_with_best(ERRORS)
    ratios = np.log([0.22 / 0.2, 0.38 / 0.4, 0.88 / 0.8])
    spread = np.sqrt(np.sum((ratios - ratios.mean()) ** 2) / 2.0)
    assert best == 0
    np.testing.assert_allclose(differences, [0.0, ratios.mean(), np.log(2.0)], atol=1e-15)
    np.testing.assert_allclose(deviations, [0.0, spread / np.sqrt(3.0), 0.0], atol=1e-15)


@pytest.mark.parametrize(
    ("errors", "complexity", "taken"),
    [
        # Candidate 1 is within one standard error of the best; 2 is twice as bad on every block, and never is.
        (ERRORS, [2, 1, 0], 1),
        (ERRORS, [1, 2, 0], 0),
        (ERRORS[:2] * [[1.0], [1.2]], [1, 0], 0),
        (ERRORS[:2], [(True, 2.0, 5), (False, 0.0, 40)], 1),  # linear alone comes first
        (ERRORS[:2], [(True, 10.0, 1), (True, 2.0, 20)], 1),  # then the weight
        (ERRORS[:2], [(True, 2.0, 10), (True, 2.0, 5)], 1),  # then the lags
        (ERRORS[:2], [(True, 2.0, 5), (True, 2.0, 5)], 0),  # ties go to the better one
        (ERRORS[[0, 0, 0]], [3, 1, 2], 1),  # equal errors
        (np.array([[0.0, 0.0], [0.1, 0.1]]), [1, 0], 0),  # an exact model
    ],
)
def test_the_simplest_within_one_standard_error_is_taken(errors, complexity, taken):
    assert find_simplest(errors, complexity) == taken


def test_a_run_that_diverged_is_never_taken():
    diverged = np.array([[0.1, np.inf, 0.1], [0.5, 0.5, 0.5], [np.inf, np.inf, np.inf]])
    best, differences, deviations = compare_with_best(diverged)
    assert best == 1 and differences[0] == differences[2] == np.inf and not deviations.any()
    assert find_simplest(diverged, [0, 5, 1]) == 1
    with pytest.raises(ComputationError, match="the held-out simulations of all candidates diverged"):
        compare_with_best(diverged[[0, 2]])


def test_with_one_block_there_is_no_standard_error():
    one = np.array([[0.3], [0.3000001], [0.3]])
    np.testing.assert_array_equal(compare_with_best(one)[2], 0.0)
    assert find_simplest(one, [2, 0, 1]) == 2
