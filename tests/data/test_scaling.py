import numpy as np
import pytest

from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.errors import InputError


def test_standardiser_makes_z_scores_and_back(rng):
    records = [Series(rng.normal(3, 2, size=(20, 2)), rng.normal(-5, 0.1, size=20)) for _ in range(2)]
    scaling = Standardiser.from_records(records)
    z = np.concatenate([scaling.outputs(record.y) for record in records])
    np.testing.assert_allclose([z.mean(), z.std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(scaling.raw_outputs(scaling.outputs(records[0].y)), records[0].y)


@pytest.mark.parametrize("constant", [0.0, 7.5, 1e9])
def test_a_constant_column_is_refused_by_name(constant, rng):
    u = np.stack([rng.normal(size=10), np.full(10, constant)], axis=1)
    record = Series(u, rng.normal(size=10), input_names=["valve", "stuck"])
    with pytest.raises(InputError, match="input column 'stuck' is constant"):
        Standardiser.from_records([record])


def with_gaps(y, *gaps):
    y = np.array(y, dtype=float)
    for gap in gaps:
        y[gap] = np.nan
    return Series(np.arange(len(y)) % 3, y, output_names=["pressure", "flow"][: y.ndim if y.ndim == 1 else y.shape[1]])


def test_only_measured_values_make_the_scaling(rng):
    values = rng.normal(-5, 0.1, size=(20, 2))
    record = with_gaps(values, (slice(3, 9), 0), (0, 1))
    scaling = Standardiser.from_records([record])
    seen = np.delete(values[:, 0], range(3, 9))
    np.testing.assert_allclose((scaling.y_mean[0], scaling.y_std[0]), (seen.mean(), seen.std()))
    z = scaling.outputs(record.y)
    np.testing.assert_array_equal(np.isnan(z), np.isnan(record.y))
    np.testing.assert_allclose((np.nanmean(z[:, 1]), np.nanstd(z[:, 1])), (0, 1), atol=1e-12)


def test_an_output_may_be_missing_in_one_of_several_records(rng):
    values = rng.normal(size=(20, 2))
    scaling = Standardiser.from_records([with_gaps(values, (slice(None), 1)), with_gaps(values)])
    np.testing.assert_allclose(scaling.y_mean, values.mean(0))


@pytest.mark.parametrize(
    ("gaps", "message"),
    [
        ([slice(None)], "record 1 has no measured output value; leave it out"),
        ([(slice(None), 1)], "output column 'flow' has 1 measured value.* at least 2 are needed"),
    ],
)
def test_an_output_without_values_is_refused_by_name(gaps, message, rng):
    values = rng.normal(size=(20, 2))
    with pytest.raises(InputError, match=message):
        Standardiser.from_records([with_gaps(values, (slice(1, None), 1)), with_gaps(values, *gaps)])


def test_a_constant_with_gaps_is_a_constant():
    with pytest.raises(InputError, match=r"output column 'pressure' is constant \(7.0\)"):
        Standardiser.from_records([with_gaps(np.full(9, 7.0), slice(0, 3))])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_no_scale_is_too_small_or_too_large(scale, rng):
    u = rng.normal(size=50)
    scaling = Standardiser.from_records([Series(scale * u, u)])
    np.testing.assert_allclose(scaling.inputs(scale * u[:, None]), ((u - u.mean()) / u.std())[:, None], rtol=1e-9)


def test_inputs_too_far_from_the_training_data_are_refused(rng):
    scaling = Standardiser.from_records([Series(1e-9 * rng.normal(size=50), rng.normal(size=50))])
    with pytest.raises(InputError, match="too far from the training inputs"):
        scaling.inputs(np.full((3, 1), 1.7e308))


def test_a_small_signal_on_a_large_offset_is_no_constant(rng):
    Standardiser.from_records([Series(1e6 + 1e-3 * rng.normal(size=50), rng.normal(size=50))])
