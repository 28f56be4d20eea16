import numpy as np
import pytest

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, as_records
from revarb.data.windows import Order
from revarb.errors import InputError


def test_vectors_become_columns_and_cannot_be_changed():
    series = Series([1, 2, 3], [4, 5, 6])
    assert series.u.shape == series.y.shape == (3, 1)
    assert series.u.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        series.y[0] = 1.0


def test_the_callers_array_is_not_shared():
    y = np.arange(4.0)
    series = Series(None, y)
    y[0] = 99.0
    assert series.y[0, 0] == 0.0
    assert series.u.shape == (4, 0)


@pytest.mark.parametrize(
    ("u", "y", "message"),
    [
        ([1, 2, 3], [1, 2], r"same number of rows: u has 3, y has 2"),
        ([1, np.nan, 3], [1, 2, 3], r"u has 1 value\(s\) that are not finite, the first \(nan\) in row 1, column 'u'"),
        ([1, 2], [1, np.inf], r"y has 1 value.*row 1"),
        (np.zeros((2, 2, 2)), [1, 2], r"u must be a vector or a matrix .*received shape \(2, 2, 2\)"),
        (["a", "b"], [1, 2], "u must be a table of real numbers, received <U1 values"),
        ([1, 2], np.empty((2, 0)), "y has no columns"),
    ],
)
def test_wrong_arrays_are_refused(u, y, message):
    with pytest.raises(InputError, match=message):
        Series(u, y)


def test_a_gap_in_the_inputs_is_refused_by_name():
    u = np.zeros((4, 2))
    u[2, 1] = np.nan
    with pytest.raises(InputError, match=r"u has 1 value.*\(nan\) in row 2, column 'fan'; remove or fill"):
        Series(u, np.zeros(4), input_names=["valve", "fan"])


@pytest.mark.parametrize(
    "y", [[1.0, np.nan, 3.0], [1, None, 3], np.ma.masked_array([1, 7, 3], mask=[False, True, False])]
)
def test_a_gap_in_the_outputs_is_kept(y):
    series = Series([1, 2, 3], y)
    np.testing.assert_array_equal(series.y, [[1.0], [np.nan], [3.0]])
    assert series.missing == 1 and "1 of 3 output values missing" in repr(series)
    assert "missing" not in repr(Series([1, 2], [1, 2]))


@pytest.mark.parametrize("dt", [0.0, -1.0, np.nan, np.inf])
def test_wrong_sampling_interval(dt):
    with pytest.raises(InputError, match="dt must be a finite number above 0"):
        Series([1, 2], [1, 2], dt=dt)


def test_names_are_kept_and_counted():
    series = Series(np.zeros((2, 2)), [1, 2], input_names=["valve", "fan"], output_names=["pressure"])
    assert series.input_names == ("valve", "fan")
    assert Series(np.zeros((2, 2)), [1, 2]).input_names == ("u0", "u1")
    with pytest.raises(InputError, match="needs a list of as many names"):
        Series(np.zeros((2, 2)), [1, 2], input_names=["valve"])


def test_records_must_agree():
    one, two = Series([1, 2], [1, 2]), Series(np.zeros((2, 2)), [1, 2])
    with pytest.raises(InputError, match="records must agree in input_names"):
        as_records([one, two])
    with pytest.raises(InputError, match="records must agree in dt"):
        as_records([one, Series([1, 2], [1, 2], dt=0.5)])
    with pytest.raises(InputError, match="no record was given"):
        as_records([])


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
def test_what_was_not_measured_is_refused_by_name(gaps, message, rng):
    values = rng.normal(size=(20, 2))
    with pytest.raises(InputError, match=message):
        Standardiser.from_records([with_gaps(values, (slice(1, None), 1)), with_gaps(values, *gaps)])


def test_a_constant_with_gaps_is_a_constant():
    with pytest.raises(InputError, match=r"output column 'pressure' is constant \(7.0\)"):
        Standardiser.from_records([with_gaps(np.full(9, 7.0), slice(0, 3))])


def test_blocks_keep_the_gaps(rng):
    record = with_gaps(rng.normal(size=12), 6)
    (block,) = Preprocessor.from_records([record], Order(2, 2, 1)).blocks([record])
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(block.y[:, 0])), [6])
    with pytest.raises(InputError, match="output column 'pressure' is measured in no row after the first 2"):
        Preprocessor.from_records([with_gaps(rng.normal(size=12), slice(2, None))], Order(2, 2, 1))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_no_scale_is_too_small_or_too_large(scale, rng):
    u = rng.normal(size=50)
    scaling = Standardiser.from_records([Series(scale * u, u)])
    np.testing.assert_allclose(scaling.inputs(scale * u[:, None]), ((u - u.mean()) / u.std())[:, None], rtol=1e-9)


def test_inputs_beyond_all_measure_are_refused(rng):
    scaling = Standardiser.from_records([Series(1e-9 * rng.normal(size=50), rng.normal(size=50))])
    with pytest.raises(InputError, match="too far from the training inputs"):
        scaling.inputs(np.full((3, 1), 1.7e308))


def test_names_are_unique():
    with pytest.raises(InputError, match="column 'a' is named twice in u"):
        Series(np.zeros((2, 2)), [1, 2], input_names=["a", "a"])
    with pytest.raises(InputError, match="column 'a' is named as an input and as an output"):
        Series([1, 2], [1, 2], input_names=["a"], output_names=["a"])


def test_a_small_signal_on_a_large_offset_is_no_constant(rng):
    Standardiser.from_records([Series(1e6 + 1e-3 * rng.normal(size=50), rng.normal(size=50))])
