"""Student-t noise as a candidate of a choice."""

import numpy as np
import pytest

from revarb.training.heavy_tails import has_heavy_tails


def make_errors(seed=0, count=12, samples=40):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(samples, 1)) for _ in range(count)]


def make_outputs(errors):
    """Smooth outputs with the same spikes as the errors."""
    return [np.sin(np.arange(len(error)) / 6.0)[:, None] * 5.0 + error for error in errors]


def test_gaussian_errors_have_no_heavy_tails():
    assert not has_heavy_tails(make_errors(), make_outputs(make_errors()))


def test_slow_errors_are_not_tails():
    slow = [error + 30.0 * np.sin(np.arange(40.0) / 12.0)[:, None] for error in make_errors()]
    assert not has_heavy_tails(slow, make_outputs(make_errors()))


@pytest.mark.parametrize("share", [0.03, 0.1])
def test_spikes_are(share):
    rng, errors = np.random.default_rng(1), make_errors()
    for error in errors:
        error[rng.random(error.shape) < share] += 12.0
    assert has_heavy_tails(errors, make_outputs(errors))
    assert not has_heavy_tails(errors, make_outputs(make_errors()))  # the output does nothing unusual there


def test_missing_values_do_not_count():
    errors = make_errors()
    for error in errors:
        error[5:10] = np.nan
    assert not has_heavy_tails(errors, make_outputs(errors))
