"""Which stretches of the records are held out."""

from itertools import pairwise

import numpy as np
import pytest

from revarb.config.recipe import R0_FREE, Recipe, Stage
from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.windows import Order
from revarb.training.stretches import FOLDS, STRETCHES, cut_stretches, mask_fold
from support import small

QUICK = Recipe(stages=(Stage(R0_FREE, 5),))
SPEC = small.spec(hidden=1, recipe=QUICK, calibrate=True)


@pytest.fixture(scope="module")
def record():
    return small.record(samples=150)


def preprocessor_of(*records):
    return Preprocessor(Standardiser.from_records(records), Order(2, 2, 1), ("u",), ("y",), 1.0)


def test_stretches_cover_a_record_and_neighbours_are_in_other_folds(record):
    found = cut_stretches([record], preprocessor_of(record))
    assert len(found) == STRETCHES and {stretch.fold for stretch in found} == set(range(FOLDS))
    assert found[0].begin == preprocessor_of(record).skip and found[-1].end == len(record)
    for one, other in pairwise(found):
        assert one.end == other.begin and one.fold != other.fold


def test_each_fold_is_masked_once(record):
    stretches = cut_stretches([record], preprocessor_of(record))
    masked = [mask_fold([record], stretches, fold)[0] for fold in range(FOLDS)]
    gaps = np.array([np.isnan(each.y[:, 0]) for each in masked])
    assert (gaps.sum(0)[4:] == 1).all() and not gaps[:, :4].any()
    for each, gap in zip(masked, gaps, strict=True):
        np.testing.assert_array_equal(each.y[~gap], record.y[~gap])


def test_several_records_are_shared_out_by_their_length():
    records = [small.record(0, samples=100), small.record(1, samples=50), small.record(2, samples=12)]
    found = cut_stretches(records, preprocessor_of(*records))
    by_record = [sum(stretch.record == k for stretch in found) for k in range(3)]
    assert by_record[0] > by_record[1] >= by_record[2] >= 1
    assert all(stretch.begin >= min(4, len(records[stretch.record]) // 2) for stretch in found)


def test_too_short_a_record_has_none():
    record = small.record(samples=60)
    assert cut_stretches([record], preprocessor_of(record)) == []
    assert SPEC.fit(record).calibration is None
