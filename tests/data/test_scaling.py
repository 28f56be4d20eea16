"""Z-scores of records, from their measured values; what is refused is in test_refusals.py."""

import numpy as np
import pytest

from revarb.data.scaling import Standardiser
from revarb.data.series import Series


def record(y, *gaps):
    y = np.array(y, dtype=float)
    for gap in gaps:
        y[gap] = np.nan
    return Series(np.arange(len(y)) % 3, y)


def test_z_scores_and_back(rng):
    records = [Series(rng.normal(3, 2, size=(20, 2)), rng.normal(-5, 0.1, size=20)) for _ in range(2)]
    scaling = Standardiser.from_records(records)
    z = np.concatenate([scaling.outputs(record.y) for record in records])
    np.testing.assert_allclose([z.mean(), z.std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(scaling.raw_outputs(scaling.outputs(records[0].y)), records[0].y)


def test_only_measured_values_make_the_scaling(rng):
    values = rng.normal(-5, 0.1, size=(20, 2))
    gaps = record(values, (slice(3, 9), 0), (0, 1))
    scaling = Standardiser.from_records([gaps])
    seen = np.delete(values[:, 0], range(3, 9))
    np.testing.assert_allclose((scaling.y_mean[0], scaling.y_std[0]), (seen.mean(), seen.std()))
    z = scaling.outputs(gaps.y)
    np.testing.assert_array_equal(np.isnan(z), np.isnan(gaps.y))
    np.testing.assert_allclose((np.nanmean(z[:, 1]), np.nanstd(z[:, 1])), (0, 1), atol=1e-12)
    several = Standardiser.from_records([record(values, (slice(None), 1)), record(values)])  # missing in one of them
    np.testing.assert_allclose(several.y_mean, values.mean(0))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_no_scale_is_too_small_or_too_large(scale, rng):
    u = rng.normal(size=50)
    scaling = Standardiser.from_records([Series(scale * u, u)])
    np.testing.assert_allclose(scaling.inputs(scale * u[:, None]), ((u - u.mean()) / u.std())[:, None], rtol=1e-9)
    Standardiser.from_records([Series(1e6 + 1e-3 * u, u)])  # a small signal on a large offset is no constant
