"""Data of the package nonlinear_benchmarks as records: a stand-in with its attributes, and the package itself."""

from types import SimpleNamespace

import numpy as np
import pytest

from revarb.data.series import Series, Window, as_records
from revarb.errors import InputError

U, Y = np.sin(np.arange(30.0)), np.cos(np.arange(30.0))


def stand_in(u, y, sampling_time=None, name=None, state_initialization_window_length=None):
    return SimpleNamespace(
        u=u, y=y, sampling_time=sampling_time, name=name,
        state_initialization_window_length=state_initialization_window_length,
    )  # fmt: skip


@pytest.fixture(params=["stand-in", "package"])
def make(request):
    if request.param == "stand-in":
        return stand_in
    return pytest.importorskip("nonlinear_benchmarks.utilities").Input_output_data


def test_an_object_is_a_record(make):
    record = Series(make(U, Y, 0.5, "test", 7))
    assert (record.u[:, 0] == U).all() and (record.y[:, 0] == Y).all() and record.dt == 0.5 and len(record) == 30
    named = Series(make(U, Y, np.uint8(4)), input_names=["pump"], dt=4.0)
    assert (named.dt, named.input_names, named.output_names) == (4.0, ("pump",), ("y",))
    assert Series(make(U, Y)).dt == 1.0 and Series(make(U, Y), dt=0.1).dt == 0.1


def test_a_window_has_the_samples_that_may_start_a_run(make):
    window = Window(make(U, Y, 0.5, state_initialization_window_length=7))
    assert len(window) == 7 and (window.y[:, 0] == Y[:7]).all() and len(Window(make(U, Y))) == 30


def test_objects_are_taken_where_records_are(make):
    one, two = make(U, Y, 0.5), make(U[:20], Y[:20], 0.5)
    assert [len(record) for record in as_records(one)] == [30]
    for several in ([one, two], (Series(one), two)):
        records = as_records(several)
        assert [len(record) for record in records] == [30, 20] and all(type(each) is Series for each in records)
    with pytest.raises(InputError, match=r"records must agree in dt: record 0 has 0.5, record 1 has 0.2"):
        as_records([one, make(U, Y, 0.2)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Series(U),
            r"y is missing: pass u and y, or an object of nonlinear_benchmarks, .* received a ndarray$",
        ),
        (lambda: Series(None), "y is missing: .* received a NoneType$"),
        (lambda: Series(stand_in(U, Y, "fast")), "y is missing: .* received a SimpleNamespace$"),
        (lambda: Series(stand_in(U, Y, 0.5), dt=0.1), "dt is 0.1, but the sampling_time of the data is 0.5; leave dt "),
        (lambda: Series(stand_in(U, Y[:9], 0.5)), "u and y must have the same number of rows: u has 9|u has 30"),
        (lambda: Window(stand_in(U, Y, 0.5, None, 31)), "_window_length must be a whole number from 1 to 30, .* 31"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()
