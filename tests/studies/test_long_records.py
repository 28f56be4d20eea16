"""The generated long records, and the study of their settings with small fits."""

from types import MappingProxyType

import numpy as np
import pytest

import revarb
from studies.long_records import SYSTEMS, WINDOW, LongRecords, draw_records, make_spec
from studies.study import run_fits

SMALL = {"lags": 2, "inducing": 10}


class Short(LongRecords):
    """Two settings on short records."""

    settings = MappingProxyType({"small": SMALL, "trained": SMALL | {"linear_trained": True}})
    systems = ("Duffing oscillator",)

    def load(self, system, seed):
        return draw_records(system, seed, 300, 200)


@pytest.mark.parametrize("system", SYSTEMS)
def test_records_are_the_same_again_and_nonlinear(system):
    (train, test), again = draw_records(system, 3, 2000, 1000), draw_records(system, 3, 2000, 1000)
    np.testing.assert_array_equal(train.y, again[0].y)
    assert (len(train), len(test)) == (2000, 1000) and (draw_records(system, 4, 2000, 9)[0].u != train.u).all()
    linear = revarb.ARX(10, 10).fit(train).simulate(test.u)
    assert 0.02 < revarb.scores(linear, test.y, WINDOW).nrmse < 0.9


def test_the_linear_part_stays_unless_it_is_trained():
    fixed, trained = make_spec(), make_spec(linear_trained=True)
    assert all("linear" not in stage.free for stage in fixed.recipe.stages)
    assert any("linear" in stage.free for stage in trained.recipe.stages)
    assert (fixed.input_lags, make_spec(20, 40).input_lags, fixed.recipe.keeps_states) == (5, 40, True)


def test_a_row_for_every_setting():
    study = Short(seeds=1)
    rows, _ = run_fits(study)
    assert [row["model"] for row in rows] == ["small", "trained"] and all(row["reason"] is None for row in rows)
    assert all(0.0 < row["nrmse"] < 60.0 and isinstance(row["cold"], bool) for row in rows)
    [grid] = study.tables(rows)
    assert [row[0] for row in grid.rows] == ["small", "trained"]
    assert {row[-2] for row in grid.rows} <= {"finite", "diverge"}
