"""The result of a run: intervals, warnings, tables."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from revarb.data.dataframes import RowIndex
from revarb.data.trajectory import MAX_DISAGREEMENT, Trajectory

PATH = Trajectory(np.zeros((3, 1)), None, "mean", 2, ("y",))


def test_intervals_and_the_warning_that_begins_above_the_threshold():
    lower, upper = replace(PATH, std=np.full((3, 1), 2.0)).interval(0.95)
    np.testing.assert_allclose(upper - lower, 2 * 1.959963984540054 * 2.0)

    def warning(disagreement):
        return replace(PATH, disagreement=disagreement).warning

    assert warning(None) is None and warning(MAX_DISAGREEMENT) is None
    assert "0.26 standard deviations" in warning(MAX_DISAGREEMENT + 0.01)
    assert "nan" in warning(float("nan")), "moments that are no numbers disagree"


def test_a_table_has_the_labels_of_its_rows_and_which_are_scored(tmp_path):
    assert PATH.to_csv(tmp_path / "no ending").read_text() == "row,scored,y_mean\n0,0,0.0\n1,0,0.0\n2,1,0.0\n"
    hours = pd.date_range("2026-11-15", periods=3, freq="h", name="when")
    for labels, name, first in (
        (hours, "when", "2026-11-15 00:00:00"),
        (pd.Index([7, 8, 9]), "row", 7),
        (pd.Index([0.5, 1.5, 2.5], name="t"), "t", 0.5),
    ):
        columns = replace(PATH, index=RowIndex("pandas", labels)).labelled_columns()
        assert next(iter(columns)) == name and columns[name].tolist()[0] == first
    assert PATH.labelled_columns("", [1.0, 2.0, 3.0])[""].tolist() == [1.0, 2.0, 3.0]
    assert list(PATH.labelled_columns("scored", [3, 4, 5])) == ["row", "scored", "y_mean"]  # named like another column


@pytest.mark.parametrize(
    ("inputs", "outputs", "states", "places"),
    [
        ([], [], None, None),
        ([], [4, 5], [], "output 'y' from row 4 on"),
        ([4], [4, 5], [2], "a state from row 2 on, output 'y' from row 4 on, input 'u' from row 4 on"),
        ([3], None, [5], "input 'u' from row 3 on, a state from row 5 on"),
    ],
)
def test_the_warning_says_from_which_row_on_each_of_three_extrapolates(inputs, outputs, states, places):
    marks = [None if rows is None else np.isin(np.arange(6), rows) for rows in (inputs, outputs, states)]
    path = Trajectory(
        np.zeros((6, 1)), None, "mean", 0, ("y",), input_names=("u",), input_extrapolates=marks[0][:, None],
        output_extrapolates=None if outputs is None else marks[1][:, None], state_extrapolates=marks[2],
    )  # fmt: skip
    rows = sorted({*inputs, *(outputs or []), *(states or [])})
    assert path.extrapolates_from == (rows[0] if rows else None)
    assert path.warning == (None if places is None else f"the run leaves what training has shown: {places}")
    assert path.labelled_columns()["extrapolates"].tolist() == [int(row in rows) for row in range(6)]
