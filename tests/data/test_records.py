"""`read_records`: named columns of files as records."""

import numpy as np
import pytest

import revarb
from revarb.errors import InputError

TABLE = "time,valve,level\n0.0,1,0.2\n0.5,0,\n1.0,1,0.1\n"


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "tank.csv"
    file.write_text(TABLE)
    return file


def test_one_file_is_one_record(table):
    [record] = revarb.read_records(table, inputs="valve", outputs=["level"], time="time")
    assert (record.input_names, record.output_names, record.dt) == (("valve",), ("level",), 0.5)
    np.testing.assert_array_equal(record.y[:, 0], [0.2, np.nan, 0.1])


def test_several_files_are_several_records(table):
    records = revarb.read_records([table, str(table)], inputs=["valve"], outputs=["level"], dt=2.0)
    assert [record.dt for record in records] == [2.0, 2.0]


def test_a_system_without_inputs(table):
    [record] = revarb.read_records(table, outputs="level")
    assert record.u.shape == (3, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"files": []}, "files must be a path or a list of paths"),
        ({"outputs": ["height"]}, "has no column 'height'; its columns are time, valve, level"),
        ({"time": "time", "dt": 0.5}, "dt and a column of times both give the sampling interval"),
        ({"inputs": ["level"], "outputs": ["valve"]}, "only outputs may be missing"),
    ],
)
def test_refusals(table, arguments, message):
    values = {"files": table, "inputs": ["valve"], "outputs": ["level"]} | arguments
    with pytest.raises(InputError, match=message):
        revarb.read_records(values.pop("files"), **values)
