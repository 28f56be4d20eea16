"""`read_records`: named columns of files as records."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import revarb


def test_one_file_is_one_record(tmp_path):
    table = tmp_path / "tank.csv"
    table.write_text("time,valve,level\n0.0,1,0.2\n0.5,0,\n1.0,1,0.1\n")
    [record] = revarb.read_records(table, inputs="valve", outputs=["level"], time="time")
    assert (record.input_names, record.output_names, record.dt) == (("valve",), ("level",), 0.5)
    np.testing.assert_array_equal(record.y[:, 0], [0.2, np.nan, 0.1])
    records = revarb.read_records([table, str(table)], inputs=["valve"], outputs=["level"], dt=2.0)
    assert [record.dt for record in records] == [2.0, 2.0]
    [alone] = revarb.read_records(table, outputs="level")
    assert alone.u.shape == (3, 0)


@pytest.mark.filterwarnings("ignore:.*1 gap")
def test_quality_is_judged_with_the_lines_of_the_file(tmp_path, rng):
    """Also of the rows after a gap; the file has a header line and a row of units."""
    level = rng.normal(size=200)
    level[150:180] = level[150]
    times = [*range(100), *range(500, 600)]
    rows = [f"{time},{u},{y}" for time, u, y in zip(times, rng.normal(size=200), level, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["t,valve,level", "s,%,m", *rows]))
    stuck = r"output 'level' keeps one value for 30 rows \(.*, line 153 to line 182\)"
    with pytest.warns(UserWarning, match="taken as the units"), pytest.warns(revarb.QualityWarning, match=stuck):
        records = revarb.read_records(tmp_path / "t.csv", inputs="valve", outputs="level", time="t", split_gaps=True)
    assert [(len(record), record.dt, record.time_name) for record in records] == [(100, 1.0, "t")] * 2


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_are_sorted_by_time(tmp_path, ending):
    """Newest first, as some loggers write; a row is found by its place in the file."""
    frame = pd.DataFrame({"t": [2.0, 1.5, 1.0, 0.5], "u": [4.0, 3.0, 2.0, 1.0], "y": [8.0, 6.0, np.inf, 2.0]})
    getattr(frame, f"to_{ending}")(tmp_path / f"t.{ending}", index=False)
    read = partial(revarb.read_records, tmp_path / f"t.{ending}", inputs="u", time="t", sort_time=True)
    [record] = read(outputs="u", inputs=())
    assert record.y[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0] and record.dt == 0.5
    with pytest.raises(revarb.InputError, match={"csv": "line 4, column 'y'", "parquet": r"row 2 \(cou"}[ending]):
        read(outputs="y")
