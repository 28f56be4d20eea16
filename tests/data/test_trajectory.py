from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from revarb.data.dataframes import RowIndex
from revarb.data.trajectory import MAX_DISAGREEMENT, Trajectory
from revarb.errors import InputError


def make_trajectory(mean, std=None, skip=0):
    mean = np.asarray(mean, dtype=float)
    names = tuple(f"y{column}" for column in range(mean.shape[1]))
    return Trajectory(
        mean, None if std is None else np.broadcast_to(float(std), mean.shape).copy(), "test", skip, names
    )


def test_intervals():
    lower, upper = make_trajectory(np.zeros((2, 1)), std=2.0).interval(0.95)
    np.testing.assert_allclose(upper - lower, 2 * 1.959963984540054 * 2.0)
    with pytest.raises(InputError, match="level must be between 0 and 1, received 95"):
        make_trajectory(np.zeros((2, 1)), std=2.0).interval(95)


def test_the_warning_begins_above_the_threshold():
    def path(disagreement):
        return Trajectory(np.zeros((3, 1)), None, "samples", 0, ("y",), disagreement=disagreement)

    limit = MAX_DISAGREEMENT
    assert path(None).warning is None and path(limit).warning is None
    assert "0.26 standard deviations" in path(limit + 0.01).warning
    assert "nan" in path(float("nan")).warning, "moments that are no numbers disagree"


def test_a_table_has_the_labels_of_its_rows_and_where_it_counts(tmp_path):
    path = Trajectory(np.zeros((3, 1)), None, "mean", 2, ("y",))
    assert {name: values.tolist() for name, values in path.labelled_columns().items()} == {
        "row": [0, 1, 2],
        "counts": [0, 0, 1],
        "y_mean": [0.0, 0.0, 0.0],
    }
    assert path.to_csv(tmp_path / "no ending").read_text() == "row,counts,y_mean\n0,0,0.0\n1,0,0.0\n2,1,0.0\n"
    hours = pd.date_range("2026-11-15", periods=3, freq="h", name="when")
    for labels, name, first in (
        (hours, "when", "2026-11-15 00:00:00"),
        (pd.Index([7, 8, 9]), "row", 7),
        (pd.Index([0.5, 1.5, 2.5], name="t"), "t", 0.5),
    ):
        columns = replace(path, index=RowIndex("pandas", labels)).labelled_columns()
        assert next(iter(columns)) == name and columns[name].tolist()[0] == first
    assert path.labelled_columns("", [1.0, 2.0, 3.0])[""].tolist() == [1.0, 2.0, 3.0]


def test_labels_named_like_another_column_become_rows():
    path = Trajectory(np.zeros((2, 1)), None, "mean", 0, ("level",))
    assert list(path.labelled_columns("counts", [3, 4])) == ["row", "counts", "level_mean"]


def test_the_warning_says_from_which_row_on_training_has_shown_nothing():
    marks = np.zeros((6, 1), dtype=bool)
    later = marks.copy()
    later[4:] = True
    mean = np.zeros((6, 1))
    whole = Trajectory(mean, None, "mean", 0, ("level",), input_names=("valve",), outside=marks, beyond=marks)
    assert whole.outside_from is None and whole.warning is None
    output = Trajectory(mean, None, "mean", 0, ("level",), input_names=("valve",), outside=marks, beyond=later)
    assert output.outside_from == 4
    assert output.warning == "from row 4 on the run is outside of what training has shown: output 'level'"
    both = Trajectory(mean, None, "mean", 0, ("level",), input_names=("valve",), outside=later, beyond=later)
    assert both.warning.endswith("input 'valve', output 'level'")
