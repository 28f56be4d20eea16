import numpy as np
import pytest

from revarb import InputError, Series
from revarb.series import Standardiser, as_records


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
        ([1, np.nan, 3], [1, 2, 3], r"u has 1 value\(s\) that are not finite, the first \(nan\) in row 1, column 0"),
        ([1, 2], [1, np.inf], r"y has 1 value.*row 1"),
        (np.zeros((2, 2, 2)), [1, 2], r"u must be a vector or a matrix .*received shape \(2, 2, 2\)"),
        (["a", "b"], [1, 2], "u must be a table of real numbers, received <U1 values"),
        ([1, 2], np.empty((2, 0)), "y has no columns"),
    ],
)
def test_wrong_arrays_are_refused(u, y, message):
    with pytest.raises(InputError, match=message):
        Series(u, y)


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
    scaling = Standardiser.of(records)
    z = np.concatenate([scaling.outputs(record.y) for record in records])
    np.testing.assert_allclose([z.mean(), z.std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(scaling.raw_outputs(scaling.outputs(records[0].y)), records[0].y)


@pytest.mark.parametrize("constant", [0.0, 7.5, 1e9])
def test_a_constant_column_is_refused_by_name(constant, rng):
    u = np.stack([rng.normal(size=10), np.full(10, constant)], axis=1)
    record = Series(u, rng.normal(size=10), input_names=["valve", "stuck"])
    with pytest.raises(InputError, match="input column 'stuck' is constant"):
        Standardiser.of([record])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_no_scale_is_too_small_or_too_large(scale, rng):
    u = rng.normal(size=50)
    scaling = Standardiser.of([Series(scale * u, u)])
    np.testing.assert_allclose(scaling.inputs(scale * u[:, None]), ((u - u.mean()) / u.std())[:, None], rtol=1e-9)


def test_inputs_beyond_all_measure_are_refused(rng):
    scaling = Standardiser.of([Series(1e-9 * rng.normal(size=50), rng.normal(size=50))])
    with pytest.raises(InputError, match="too far from the training inputs"):
        scaling.inputs(np.full((3, 1), 1.7e308))


def test_names_are_unique():
    with pytest.raises(InputError, match="column 'a' is named twice in u"):
        Series(np.zeros((2, 2)), [1, 2], input_names=["a", "a"])
    with pytest.raises(InputError, match="column 'a' is named as an input and as an output"):
        Series([1, 2], [1, 2], input_names=["a"], output_names=["a"])


def test_a_small_signal_on_a_large_offset_is_no_constant(rng):
    Standardiser.of([Series(1e6 + 1e-3 * rng.normal(size=50), rng.normal(size=50))])
