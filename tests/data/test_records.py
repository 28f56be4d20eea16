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


@pytest.fixture
def interrupted(tmp_path):
    """Rows 0 to 4 of a record, 100 s without any, and rows 5 to 7; the level counts the rows."""
    file = tmp_path / "interrupted.csv"
    times = [*range(5), *range(105, 108)]
    file.write_text("\n".join(["t,valve,level", *(f"{time},{row % 2},{row}" for row, time in enumerate(times))]))
    return file


def test_a_gap_in_time_separates_records(interrupted):
    with pytest.warns(UserWarning, match=r"interrupted.csv, column 't': time has 1 gap.*line 7 \(from 4 to 105\)"):
        first, second = revarb.read_records(interrupted, inputs="valve", outputs="level", time="t", split_gaps=True)
    np.testing.assert_array_equal(first.y[:, 0], [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(second.y[:, 0], [5, 6, 7])
    np.testing.assert_array_equal(second.u[:, 0], [1, 0, 1])
    assert (second.dt, second.time_name, second.input_names) == (1.0, "t", ("valve",))


def test_a_gap_in_time_is_refused_otherwise(interrupted):
    with pytest.raises(InputError, match=r"line 7, column 't': time goes from 4 to 105.*split_gaps=True"):
        revarb.read_records(interrupted, inputs="valve", outputs="level", time="t")


@pytest.mark.filterwarnings("ignore:.*1 gap")
def test_quality_is_judged_with_the_lines_of_the_file(tmp_path, rng):
    """Also of the rows after a gap; the file has a header line and a row of units."""
    level = rng.normal(size=200)
    level[150:180] = level[150]
    times = [*range(100), *range(500, 600)]
    rows = [f"{time},{u},{y}" for time, u, y in zip(times, rng.normal(size=200), level, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["t,valve,level", "s,%,m", *rows]))
    with (
        pytest.warns(UserWarning, match="taken as the units"),
        pytest.warns(
            revarb.QualityWarning, match=r"output 'level' keeps one value for 30 rows \(.*, line 153 to line 182\)"
        ),
    ):
        revarb.read_records(tmp_path / "t.csv", inputs="valve", outputs="level", time="t", split_gaps=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"files": []}, "files must be a path or a list of paths"),
        ({"outputs": ["height"]}, "has no column 'height'; its columns are time, valve, level"),
        ({"time": "time", "dt": 0.5}, "dt and a column of times both give the sampling interval"),
        ({"inputs": ["level"], "outputs": ["valve"]}, "only outputs may be missing"),
        ({"split_gaps": True}, r"--split-gaps \(split_gaps=True\) needs the column of times; give --time COLUMN"),
    ],
)
def test_refusals(table, arguments, message):
    values = {"files": table, "inputs": ["valve"], "outputs": ["level"]} | arguments
    with pytest.raises(InputError, match=message):
        revarb.read_records(values.pop("files"), **values)
