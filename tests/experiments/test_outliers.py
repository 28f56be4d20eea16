"""The table of outliers: what is put into the records, detection, targets, and quick runs."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from revarb.baselines.arx import ARX
from revarb.baselines.training_mean import Mean
from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.errors import InputError
from revarb.experiments.benchmarks import Benchmark
from revarb.experiments.field_runs import RowsFile
from revarb.experiments.outlier_runs import SpoiledFit, measure_detection, run_spoiled
from revarb.experiments.outlier_targets import (
    GAUSSIAN,
    STUDENT,
    OutlierLimits,
    list_outlier_outcomes,
    list_outlier_targets,
)
from revarb.experiments.outliers import OutlierRecord, OutlierTable, load_outliers
from revarb.experiments.spoiling import CLEAN, SPIKES, STUCK, Condition, spoil

SHARES = (0.02, 0.05, 0.10, 0.20)
DRAWN = Benchmark("drawn", "artificial", drawn=True)
LIMITS = OutlierLimits(1.15, 0.10, ("one",), 1.02, 0.90)


@pytest.fixture
def record(rng):
    return Series(rng.standard_normal((500, 2)), rng.standard_normal((500, 2)).cumsum(0), 0.5, ["a", "b"], ["c", "d"])


class QuickOutliers(OutlierTable):
    """The table with quick models."""

    def models(self, benchmark, lags):
        return {"Mean": Mean(), "ARX": ARX(2, 2)}


def quick(kind=QuickOutliers, model=None, **others):
    return kind("quick", (0.1,), ("Mean",), model or {}, LIMITS, (OutlierRecord(DRAWN, {}),), **others)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", [SPIKES, STUCK])
def test_every_output_has_its_share_of_outliers_and_nothing_else_changes(record, kind, share):
    before = record.y.copy()
    spoiled, marks = spoil(record, Condition(kind, share), seed=0)
    np.testing.assert_array_equal(marks.mean(0), share)
    assert (marks[:, 0] != marks[:, 1]).any()  # every sensor fails by itself
    np.testing.assert_array_equal(spoiled.y[~marks], before[~marks])
    np.testing.assert_array_equal(record.y, before)
    np.testing.assert_array_equal(spoiled.u, record.u)
    assert (spoiled.dt, spoiled.input_names, spoiled.output_names) == (0.5, ("a", "b"), ("c", "d"))


def test_spikes_have_their_size_and_both_signs(record):
    spoiled, marks = spoil(record, Condition(SPIKES, 0.2), seed=1)
    sizes = ((spoiled.y - record.y) / record.y.std(0))[marks]
    assert (np.abs(sizes) >= 3.0).all() and (np.abs(sizes) <= 6.0).all()
    assert np.abs(sizes).min() < 3.2 and np.abs(sizes).max() > 5.8 and 0.35 < (sizes > 0).mean() < 0.65


def test_stuck_stretches_repeat_the_sample_before_them(record):
    spoiled, marks = spoil(record, Condition(STUCK, 0.2), seed=1)
    assert not marks[0].any()
    for column in range(2):
        edges = np.diff(marks[:, column].astype(int), append=0)
        begins, ends = np.flatnonzero(edges == 1) + 1, np.flatnonzero(edges == -1) + 1
        np.testing.assert_array_equal(ends - begins, 5)  # none follows another one directly
        for begin in begins:
            assert (spoiled.y[begin : begin + 5, column] == record.y[begin - 1, column]).all()


@pytest.mark.parametrize("kind", [SPIKES, STUCK])
def test_the_seed_draws_them_and_a_larger_share_adds_to_a_smaller_one(record, kind):
    again = [spoil(record, Condition(kind, 0.1), seed=3) for _ in range(2)]
    np.testing.assert_array_equal(again[0].record.y, again[1].record.y)
    assert (spoil(record, Condition(kind, 0.1), seed=4).marks != again[0].marks).any()
    for smaller, larger in pairwise(SHARES):
        few, more = (spoil(record, Condition(kind, share), seed=3) for share in (smaller, larger))
        assert (more.marks >= few.marks).all()
        np.testing.assert_array_equal(more.record.y[few.marks], few.record.y[few.marks])


def test_without_outliers_the_record_is_the_same_and_too_many_are_refused(record):
    spoiled, marks = spoil(record, Condition(CLEAN, 0.0), seed=0)
    assert spoiled is record and not marks.any()
    with pytest.raises(InputError, match=r"share of outliers must be between 0 and 0.5, received 0.9"):
        spoil(record, Condition(STUCK, 0.9), seed=0)


@pytest.mark.parametrize("kind", [SPIKES, STUCK])
def test_a_model_is_trained_with_the_outliers_of_its_seed_and_tested_without(kind):
    """A model that is told the test outputs makes no error."""
    trained = []

    class Oracle:
        def fit(self, train, seed=0):
            trained.append(train[0].y)
            test = DRAWN.load(seed).test
            path = Mean().fit(train).simulate(test.u)
            return SimpleNamespace(simulate=lambda u: replace(path, mean=test.y))

    condition = Condition(kind, 0.2)
    [row] = run_spoiled(SpoiledFit(DRAWN, condition, "oracle", 1), lambda benchmark, lags: {"oracle": Oracle()})
    np.testing.assert_array_equal(trained[0], spoil(DRAWN.load(1).train, condition, seed=1).record.y)
    assert (row["dataset"], row["kind"], row["share"], row["seed"], row["rmse"]) == ("drawn", kind, 0.2, 1, 0.0)


def test_the_shipped_table():
    table = load_outliers()
    assert [record.name for record in table.records] == ["drive", "actuator", "artificial_drawn", "robot_arm"]
    assert list(map(str, table.conditions)) == [
        "clean", "2 % spikes", "5 % spikes", "10 % spikes", "20 % spikes", "2 % stuck", "5 % stuck", "10 % stuck",
        "20 % stuck",
    ]  # fmt: skip
    drive, robot = (table.models(table.records[number].benchmark, 10) for number in (0, 3))
    assert list(drive) == ["Mean", "ARX", "MLP-NARX", "LSTM", "GP-NARX", GAUSSIAN, STUDENT]
    assert drive[GAUSSIAN] == RGP(10, 10, calibrate=False)
    assert drive[STUDENT] == RGP(10, 10, calibrate=False, noise="student-t")
    spec = robot[GAUSSIAN]
    assert (spec.hidden, spec.inducing, spec.linear, spec.recipe.free_run_weight) == (1, 50, True, 50.0)
    assert spec.recipe.kernel_variance == 0.1 and robot[STUDENT] == replace(spec, noise="student-t")
    assert table.count_steps(5) == 4 * 9 * 7 * 5


def test_only_some_records():
    assert [record.name for record in load_outliers().only(["robot_arm", "drive"]).records] == ["drive", "robot_arm"]
    with pytest.raises(InputError, match="no record 'drives' in this table; there are drive, actuator,"):
        load_outliers().only(["drives"])


def test_a_quick_table_is_continued_from_its_file(tmp_path):
    table, heard = quick(finished=RowsFile(tmp_path / "rows.jsonl")), []
    part, summary = table.run(seeds=2, report=heard.append)
    assert len(heard) == table.count_steps(2) == 2 * 3 * 2
    assert [(row["kind"], row["share"], row["model"], row["seed"]) for row in part.rows] == [
        (kind, share, model, seed)
        for kind, share in ((CLEAN, 0.0), (SPIKES, 0.1), (STUCK, 0.1))
        for model in ("Mean", "ARX")
        for seed in (0, 1)
    ]
    assert all({"coverage50", "coverage90", "nlpd", "skip", "fit_seconds"} <= set(row) for row in part.rows)
    assert part.rows[0]["rmse"] != part.rows[1]["rmse"]  # another record
    errors = {(row["kind"], row["model"]): row["rmse"] for row in part.rows if row["seed"] == 0}
    assert errors[SPIKES, "ARX"] != errors[CLEAN, "ARX"] != errors[STUCK, "ARX"]
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    (tmp_path / "rows.jsonl").write_text("\n".join(lines[:5]) + "\n")
    again = []
    rows = next(table.run(seeds=2, report=again.append)).rows
    assert [row["rmse"] for row in rows] == [row["rmse"] for row in part.rows]
    assert rows[0] == part.rows[0] and rows[-1]["fit_seconds"] != part.rows[-1]["fit_seconds"]  # kept, and run again
    assert len(again) == 12 and sum(text.endswith("(kept)") for text in again) == 5
    assert summary.rows == [] and list(summary.figures()) == ["outliers"]
    page = table.page([part, summary], {"command": "test"})
    assert "<svg" in page and "drawn: RMSE with stuck samples" in page


def row(model, rmse, kind=CLEAN, share=0.0, dataset="one", method="mean", seed=0, **others):
    scores = {"nrmse": rmse, "nlpd": 0.0, "coverage95": 0.95, "fit_seconds": 2.0, "simulate_seconds": 1.0}
    return {"dataset": dataset, "model": model, "method": method, "seed": seed, "kind": kind, "share": share,
            "reason": None, "rmse": rmse, **scores, **others}  # fmt: skip


def both(model, rmse, **others):
    """Rows of the two methods; that by moments has twice the error."""
    return [row(model, rmse, method="mean", **others), row(model, 2.0 * rmse, method="moments", **others)]


def made_up(spiky, clean=1.01, found=0.95, dataset="one"):
    detection = {"listed": 0.5, "listed_falsely": 0.01}
    return [
        *both(GAUSSIAN, 1.0, dataset=dataset),
        *both(STUDENT, clean, dataset=dataset, found=None, listed=None, listed_falsely=0.0),
        *both(GAUSSIAN, 3.0, kind=SPIKES, share=0.10, dataset=dataset),
        *both(STUDENT, spiky, kind=SPIKES, share=0.10, dataset=dataset, found=found, **detection),
        *both(STUDENT, 9.0, kind=STUCK, share=0.10, dataset=dataset, found=0.1, **detection),
    ]


def judge(rows):
    return [(each.what, each.met, each.found) for each in list_outlier_targets(list_outlier_outcomes(rows), LIMITS)]


def test_targets_are_computed_from_the_rows():
    assert judge([*made_up(1.1), *made_up(5.0, clean=1.03, found=0.8, dataset="two")]) == [
        ("one, 10 % spikes: Student-t at most 1.15 × Gaussian without outliers", True, "1.100 (by moments 1.100)"),
        ("one, no outliers: Student-t at most 1.02 × Gaussian", True, "1.010 (by moments 1.010)"),
        ("two, no outliers: Student-t at most 1.02 × Gaussian", False, "1.030 (by moments 1.030)"),
        ("one, 10 % spikes: at least 90 % found at 5 % false alarms", True, "95.0 %"),
        ("two, 10 % spikes: at least 90 % found at 5 % false alarms", False, "80.0 %"),
    ]


def test_a_ratio_is_of_medians_over_the_seeds_and_a_failed_seed_is_a_miss():
    rows = [
        *made_up(1.1),
        *both(STUDENT, 9.0, kind=SPIKES, share=0.10, seed=1, found=0.0, listed=0.0, listed_falsely=0.0),
        *both(STUDENT, 1.0, kind=SPIKES, share=0.10, seed=2, found=1.0, listed=0.0, listed_falsely=0.0),
    ]
    assert judge(rows)[0][1:] == (True, "1.100 (by moments 1.100)")
    failed = row(STUDENT, None, SPIKES, 0.10, method="", seed=3) | {"reason": "diverged"}
    assert judge([*rows, failed])[0][1:] == (False, "1.100 (by moments 1.100), 1 seed(s) failed")
    assert not judge([*rows, failed])[-1][1]


def test_the_tables_of_made_up_rows():
    (outcome,) = list_outlier_outcomes(made_up(1.1))
    summary = quick().summarise(made_up(1.1))
    (grid,) = summary.grids()
    assert [cells[-1] for cells in grid.rows] == ["reached"] * 3
    assert summary.sentences() == ["3 of 3 targets are reached."]
    assert outcome.rmse(GAUSSIAN, Condition(SPIKES, 0.10)).median == 3.0


def test_outliers_are_found_by_their_weights(spiky_model):
    """Weights of good samples are above those of the spike; 5 % of the good ones are below the threshold."""
    model, marks = spiky_model
    found = measure_detection(model, marks)
    assert found["found"] == 1.0 and found["listed"] == 1.0 and found["listed_falsely"] < 0.1
    none = measure_detection(model, np.zeros_like(marks))
    assert np.isnan(none["found"]) and np.isnan(none["listed"]) and 0.0 < none["listed_falsely"] < 0.1
    assert measure_detection(Mean().fit([Series(np.arange(9.0), np.arange(9.0))]), marks) == {}


@pytest.fixture(scope="module")
def spiky_model():
    u = np.sin(0.3 * np.arange(60.0))
    y = np.convolve(u, [0.0, 0.5, 0.3])[:60]
    marks = np.zeros((60, 1), dtype=bool)
    marks[[25, 40]] = True
    y[25], y[40] = y[25] + 4.0, y[40] - 3.0
    recipe = {"stages": [{"free": ["mu", "zeta", "tau"], "iterations": 20}]}
    spec = {"lags": 2, "input_lags": 2, "hidden": 1, "inducing": 10, "recipe": recipe, "calibrate": False}
    return RGP.from_dict({**spec, "noise": "student-t"}).fit(Series(u, y)), marks


@pytest.mark.slow
def test_rows_of_a_quick_run_of_the_real_models():
    stages = [{"free": ["mu", "tau"], "iterations": 3}]
    model = {"hidden": 1, "inducing": 10, "calibrate": False, "recipe": {"stages": stages, "kmeans_starts": 1}}
    part, summary = quick(OutlierTable, model).run(seeds=1)
    assert [row["reason"] for row in part.rows if row["reason"] is not None] == []
    for own in (row for row in part.rows if row["model"] == STUDENT):
        assert 0.0 <= own["listed_falsely"] <= 1.0 and (own["kind"] == CLEAN) == np.isnan(own["found"])
    assert all("found" not in row for row in part.rows if row["model"] != STUDENT)
    assert len(part.grids()) == 3 and len(summary.grids()[0].rows) == 2
