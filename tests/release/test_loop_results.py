"""results/bench_loop.json, if it has been written: a quick observer, and refits as good as fits from scratch."""

import pytest

from support.results import FILES, rows_of

ABSENT = not any(path.stem == "bench_loop" for path in FILES)

pytestmark = pytest.mark.skipif(ABSENT, reason="not written: python -m bench --only observer refits")


def test_a_step_with_its_correction_takes_less_than_two_milliseconds():
    [row] = [row for row in rows_of("bench_loop") if row["part"] == "observer"]
    assert row["threads"] == 1 and row["seconds"] < 2e-3


def test_a_refit_reaches_the_quality_of_a_fit_in_a_fifth_of_its_time():
    rows = [row for row in rows_of("bench_loop") if row["part"] == "refits"]
    half, scratch, refit = rows
    assert refit["of_fit"] <= 0.2 and refit["rmse"] <= 1.05 * scratch["rmse"] < half["rmse"]
