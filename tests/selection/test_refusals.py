"""What `revarb.fit` refuses: one line that says what was wrong."""

from dataclasses import dataclass

import numpy as np
import pytest

import revarb
from revarb.data.series import Series
from revarb.errors import InputError
from support import small

SAMPLES = 140
RECORD = small.record(samples=SAMPLES)


@dataclass
class Unhashable:
    """A configuration that can be changed."""

    size: int = 1

    def fit(self, train, seed=0):
        """Never called."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 0}, r"jobs \(or -1 for one per core\) must be a whole number of at least 1, received 0"),
        ({"members": 0}, "members must be a whole number of at least 1, received 0"),
        ({"seed": -1}, "seed must be a whole number from 0 to"),
        *(({"time_limit": each}, "time_limit must be") for each in (0, -3.0, np.nan, "10", True)),
        ({"effort": "slow"}, "effort must be 'normal' or 'quick', received 'slow'"),
        ({"effort": "quick", "candidates": [revarb.ARX()]}, "effort='quick' selects among the default candidates"),
        ({"candidates": []}, "candidates must have at least one configuration, received none"),
        ({"candidates": revarb.ARX()}, r"candidates must be a list of configurations or a dict .* received ARX\("),
        ({"candidates": "ARX"}, "candidates must be a list of configurations or a dict .* received 'ARX'"),
        ({"candidates": ["ARX"]}, "a candidate must be a configuration with a method fit, .* received 'ARX'"),
        ({"candidates": [revarb.ARX]}, "a candidate must be a configuration with a method fit, such as RGP"),
        ({"candidates": [Unhashable()]}, "a candidate must be a configuration with a method fit"),
        ({"candidates": {3: revarb.ARX()}}, "names of candidates must be texts, received 3"),
        ({"candidates": {" ": revarb.ARX()}}, "names of candidates must be texts, received ' '"),
        ({"candidates": [revarb.ARX(), revarb.ARX()]}, r"candidates must differ, but ARX\(.* is among them twice"),
        (
            {"candidates": [revarb.ARX(70, 70)]},
            "too short, .* to compare these candidates on held-out blocks; use fewer",
        ),
        ({"train": small.record(samples=60), "candidates": [revarb.ARX(2, 2)]}, "the records are too short"),
        ({"train": Series(np.ones(SAMPLES), RECORD.y)}, r"input column 'u' is constant \(1.0\) in the training data"),
        ({"train": Series(RECORD.u, np.full(SAMPLES, np.nan))}, "record 0 has no measured output value"),
        ({"train": small.record(samples=5)}, r"5 measured row\(s\) are too few to learn from; a fit needs at least 12"),
        ({"train": [RECORD, small.record(samples=SAMPLES, inputs=2)]}, "record 1"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        revarb.fit(**{"train": RECORD, "jobs": 1, **arguments})
    assert "\n" not in str(caught.value)
