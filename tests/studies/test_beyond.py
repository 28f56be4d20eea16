"""Generated plants that leave their training range, scores of bands and warnings, and a quick study."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from studies import beyond
from studies.beyond import (
    CHOSEN,
    LINEAR,
    PLANTS,
    Beyond,
    draw_plant,
    find_leaving,
    judge_warnings,
    mark_inside,
    measure_bands,
)
from studies.study import Fit, run_fits
from studies.tables import select

TRAIN = revarb.Series([-1.0, 1.0, 0.0, 0.0], [0.0, 2.0, 1.0, 1.0])


class QuickBeyond(Beyond):
    """One plant; a linear model in place of the chosen one."""

    plants = ("duffing",)

    def models(self):
        return {CHOSEN: revarb.ARX(2, 2), LINEAR: revarb.ARX(1, 1)}


def make_path(mean, std, warned, skip=0):
    marks = np.array(warned, dtype=bool)[:, None]
    mean, std = (np.array(values, dtype=float)[:, None] for values in (mean, std))
    return revarb.Trajectory(mean, std, "moments", skip, ("y0",), output_extrapolates=marks)


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.parametrize("seed", [0, 1, 7])
def test_a_plant_is_the_same_again_and_its_test_part_leaves_the_training_range(name, seed):
    (train, test), plant = draw_plant(name, seed), PLANTS[name]
    for record, again in zip((train, test), draw_plant(name, seed), strict=True):
        np.testing.assert_array_equal(record.y, again.y)
        np.testing.assert_array_equal(record.u, again.u)
    assert (train.y[:400] != draw_plant(name, seed + 1)[0].y[:400]).all()
    assert (len(train), len(test)) == (500, 400) and train.input_names == test.input_names == tuple(plant.limits)
    low, high = np.array(list(plant.limits.values())).T
    np.testing.assert_array_equal(train.u.min(axis=0), low)
    np.testing.assert_array_equal(train.u.max(axis=0), high)
    ordinary, inside = np.r_[0 : beyond.INSIDE, -beyond.RETURN : 0], mark_inside(train, test)
    assert (test.u[ordinary] >= low).all() and (test.u[ordinary] <= high).all()
    assert np.abs(test.u[:, 0]).max() > high[0] and (test.u[:, 1:] <= high[1:]).all()
    assert 1.15 < np.abs(test.y - plant.rest).max() / np.abs(train.y - plant.rest).max() < 2.2
    assert inside[: beyond.INSIDE].mean() > inside[beyond.INSIDE : -beyond.RETURN].mean()


def test_the_tanks_overflow_in_the_test_part_only(monkeypatch):
    drawn = draw_plant("tanks", 0)
    tanks = PLANTS["tanks"]
    monkeypatch.setitem(PLANTS, "tanks", replace(tanks, parameters={**tanks.parameters, "weir": 0.0}))
    dry = draw_plant("tanks", 0)  # needs less of the pump
    np.testing.assert_array_equal(drawn[0].y, dry[0].y)
    assert drawn[1].u.max() > dry[1].u.max()


def test_an_unknown_plant_is_refused():
    with pytest.raises(revarb.InputError, match="no plant 'pendulum'; there are dc_motor, tanks"):
        draw_plant("pendulum", 0)


def test_rows_inside_have_all_inputs_and_outputs_in_the_range_of_training():
    test = revarb.Series([0.0, 1.0, 1.1, 0.0, 0.0], [0.0, 2.0, 1.0, 2.1, -0.1])
    assert mark_inside(TRAIN, test).tolist() == [True, True, False, False, False]


def test_the_error_leaves_the_band_where_three_rows_in_a_row_are_outside():
    assert find_leaving(np.array([1, 1, 0, 1, 1, 1, 1], dtype=bool)) == 3
    assert find_leaving(np.array([1, 1, 0, 1, 1], dtype=bool)) is None


def test_shares_in_bands_by_kind_of_row(monkeypatch):
    monkeypatch.setattr(beyond, "INSIDE", 4)
    y = [9.0, 1.0, 2.0, 3.0, 4.0, 1.0]
    test = revarb.Series(np.zeros(6), y)
    path = make_path([0.0, 1.0, 1.0, 3.0, 1.0, 4.0], [1.0, 1.0, 1.0, 1.0, 1.0, 2.0], [1, 0, 0, 0, 1, 1], skip=1)
    found = measure_bands(path, TRAIN, test)
    assert [found[f"rows_{kind}"] for kind in ("inside", "before", "after", "beyond", "warned")] == [3, 2, 1, 2, 2]
    assert found["coverage95_inside"] == 1.0 and found["coverage50_inside"] == pytest.approx(1 / 3)
    assert found["coverage95_before"] == found["coverage95_after"] == 1.0 and found["coverage50_before"] == 0.5
    assert found["coverage95_beyond"] == found["coverage95_warned"] == 0.5 and found["coverage50_warned"] == 0.0
    assert found["rmse_inside"] == pytest.approx(np.sqrt(10 / 3)) and found["rmse_warned"] == pytest.approx(3.0)
    assert found["width_before"] == pytest.approx(2.0 * 1.959964 / np.std([0.0, 2.0, 1.0, 1.0]))
    none = measure_bands(make_path(y, np.ones(6), np.zeros(6)), TRAIN, test)
    assert none["rows_warned"] == 0 and none["coverage95_warned"] is None and none["rmse_warned"] is None


@pytest.mark.parametrize(
    "warned_from, in_time, in_time_beyond", [(1, True, True), (2, True, True), (3, False, True), (8, False, False)]
)
def test_a_warning_is_in_time_before_the_error_leaves_the_band(monkeypatch, warned_from, in_time, in_time_beyond):
    monkeypatch.setattr(beyond, "INSIDE", 5)
    test = revarb.Series(np.zeros(10), np.r_[0.0, 0.0, 4.0 * np.ones(3), 0.0, 4.0 * np.ones(4)])
    path = make_path(np.zeros(10), np.ones(10), np.arange(10) >= warned_from)
    found = judge_warnings(path, TRAIN, test)
    assert (found["warned_from"], found["left_in_time"], found["left_in_time_beyond"]) == (warned_from, 2, 6)
    assert (found["in_time"], found["in_time_beyond"]) == (in_time, in_time_beyond)


def test_a_run_without_a_warning_is_in_time_where_the_error_stays_in_the_band():
    test = revarb.Series(np.zeros(4), [0.0, 1.0, 2.0, 3.0])
    quiet = judge_warnings(make_path(np.zeros(4), np.full(4, 2.0), np.zeros(4)), TRAIN, test)
    assert quiet["in_time"] == 1.0 and quiet["left_in_time"] is quiet["warned_from"] is quiet["false_warnings"] is None
    late = judge_warnings(make_path(np.zeros(4), np.full(4, 0.1), np.zeros(4)), TRAIN, test)
    assert late["in_time"] == 0.0 and late["left_in_time"] == 1


def test_false_warnings_have_errors_as_inside():
    test = revarb.Series(np.zeros(4), [0.0, 1.0, 3.0, 5.0])
    found = judge_warnings(make_path([0.0, 0.0, 2.5, 0.0], np.ones(4), [0, 0, 1, 1]), TRAIN, test)
    assert found["false_warnings"] == 0.5


def test_a_quick_study():
    study = QuickBeyond(seeds=2)
    rows, drawn = run_fits(study)
    assert [(row["model"], row["seed"], row["method"]) for row in rows[:2]] == [
        (CHOSEN, k, "residuals") for k in (0, 1)
    ]
    assert all(0.0 <= row["coverage95_inside"] <= 1.0 for row in select(rows, model=CHOSEN))
    assert list(study.figures(rows, drawn)) == ["beyond_duffing"]
    assert len(study.targets(rows)) == 4 and [len(grid.rows) for grid in study.tables(rows)] == [1, 1, 1, 1]


def test_quick_fits_are_tasks_of_their_own():
    study = Beyond(seeds=1)
    normal = study.list_fits()
    study.effort = "quick"
    assert study.models()[CHOSEN].effort == "quick"
    assert set(study.list_fits()) - set(normal) == {Fit(name, CHOSEN, 0, "quick") for name in PLANTS}
