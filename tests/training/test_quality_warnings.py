"""What looks spoiled in a record is said once in a call of the user, however many fits it takes."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.errors import QualityWarning
from support import small
from support.small_choice import SAMPLES, use_quick_candidates


@pytest.fixture
def clipped():
    record = small.record(samples=SAMPLES)
    return replace(record, y=np.minimum(record.y, 0.2))


def collect_warnings(action):
    """The warnings about quality."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    said = [each for each in caught if each.category is QualityWarning]
    assert all("output 'y' is at its largest" in str(each.message) for each in said)
    return said


def count_warnings(action):
    return len(collect_warnings(action))


def test_a_fit_says_it_once(clipped):
    spec = small.spec()
    [said] = collect_warnings(lambda: spec.fit(clipped))
    assert said.filename == __file__  # the caller's own line
    assert count_warnings(lambda: spec.fit(clipped, restarts=2)) == 1
    assert count_warnings(lambda: spec.fit(small.record(samples=SAMPLES))) == 0


@pytest.mark.slow
def test_a_choice_says_it_once(clipped, monkeypatch):
    use_quick_candidates(monkeypatch)
    assert count_warnings(lambda: revarb.fit(clipped, jobs=1)) == 1


@pytest.mark.slow
def test_the_default_of_a_short_record_says_it_once(clipped):
    assert count_warnings(lambda: revarb.fit(clipped[:60], jobs=1)) == 1


def test_a_comparison_says_it_once(clipped):
    models = {"Mean": revarb.Mean(), "one": small.spec(), "other": small.spec()}
    assert count_warnings(lambda: revarb.compare(clipped, small.record(1), models, seeds=1)) == 1
