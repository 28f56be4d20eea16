"""The table of outliers: what is put into the records, detection, targets, and quick runs."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import revarb
from studies.outliers import CLEAN, GAUSSIAN, SPIKES, STUCK, STUDENT, Condition, Outliers, measure_detection, spoil
from studies.records import Benchmark
from studies.study import Fit, run_fits
from studies.tables import select
from support import small
from support.study_rows import score_row

SHARES = (0.02, 0.05, 0.10, 0.20)
DRAWN = Benchmark("drawn", "artificial", drawn=True)


@pytest.fixture
def record(rng):
    y = rng.standard_normal((500, 2)).cumsum(0)
    return revarb.Series(rng.standard_normal((500, 2)), y, 0.5, ["a", "b"], ["c", "d"])


class QuickOutliers(Outliers):
    """The study with quick models."""

    records, shares = (DRAWN,), (0.1,)

    def models(self, benchmark, lags):
        return {"Mean": revarb.Mean(), "ARX": revarb.ARX(2, 2)}


@pytest.mark.parametrize("kind", [SPIKES, STUCK])
def test_every_output_has_its_share_of_outliers_and_nothing_else_changes(record, kind):
    before, few = record.y.copy(), None
    for share in SHARES:
        spoiled, marks = spoil(record, Condition(kind, share), seed=3)
        np.testing.assert_array_equal(marks.mean(0), share)
        assert (marks[:, 0] != marks[:, 1]).any()  # every sensor fails by itself
        np.testing.assert_array_equal(spoiled.y[~marks], before[~marks])
        assert (spoiled.dt, spoiled.input_names, spoiled.output_names) == (0.5, ("a", "b"), ("c", "d"))
        if few is not None:  # a larger share adds to a smaller one
            assert (marks >= few.marks).all()
            np.testing.assert_array_equal(spoiled.y[few.marks], few.record.y[few.marks])
        few = spoil(record, Condition(kind, share), seed=3)
        np.testing.assert_array_equal(few.record.y, spoiled.y)
    np.testing.assert_array_equal(record.y, before)
    assert (spoil(record, Condition(kind, 0.2), seed=4).marks != few.marks).any()


def test_spikes_have_their_size_and_stuck_samples_repeat_the_one_before(record):
    spoiled, marks = spoil(record, Condition(SPIKES, 0.2), seed=1)
    sizes = ((spoiled.y - record.y) / record.y.std(0))[marks]
    assert 3.0 <= np.abs(sizes).min() < 3.2 and 5.8 < np.abs(sizes).max() <= 6.0 and 0.35 < (sizes > 0).mean() < 0.65
    spoiled, marks = spoil(record, Condition(STUCK, 0.2), seed=1)
    assert not marks[0].any()
    for column in range(2):
        edges = np.diff(marks[:, column].astype(int), append=0)
        begins, ends = np.flatnonzero(edges == 1) + 1, np.flatnonzero(edges == -1) + 1
        np.testing.assert_array_equal(ends - begins, 5)  # none follows another one directly
        for begin in begins:
            assert (spoiled.y[begin : begin + 5, column] == record.y[begin - 1, column]).all()
    clean = spoil(record, Condition(CLEAN, 0.0), seed=0)
    assert clean.record is record and not clean.marks.any()
    with pytest.raises(revarb.InputError, match=r"share of outliers must be between 0 and 0.5, received 0.9"):
        spoil(record, Condition(STUCK, 0.9), seed=0)


@pytest.mark.parametrize("kind", [SPIKES, STUCK])
def test_a_model_is_trained_with_the_outliers_of_its_seed_and_tested_without(kind):
    """A model that is told the test outputs makes no error."""
    trained = []

    class Oracle:
        def fit(self, train, seed=0):
            trained.append(train[0].y)
            test, model = DRAWN.load(seed).test, revarb.Mean().fit(train)
            path = replace(model.simulate(test.u), mean=test.y)
            return SimpleNamespace(simulate=lambda u, method: path, methods=("mean",), status=model.status)

    study, condition = QuickOutliers(), Condition(kind, 0.1)
    study.models = lambda benchmark, lags: {"oracle": Oracle()}
    [row] = study.run_fit(Fit("drawn", "oracle", 1, str(condition))).rows
    np.testing.assert_array_equal(trained[0], spoil(DRAWN.load(1).train, condition, seed=1).record.y)
    assert (row["dataset"], row["kind"], row["share"], row["seed"], row["rmse"]) == ("drawn", kind, 0.1, 1, 0.0)


def test_a_quick_study():
    study = QuickOutliers(seeds=2)
    rows, drawn = run_fits(study)
    assert [(row["kind"], row["share"], row["model"], row["seed"]) for row in rows] == [
        (kind, share, model, seed)
        for kind, share in ((CLEAN, 0.0), (SPIKES, 0.1), (STUCK, 0.1))
        for model in ("Mean", "ARX")
        for seed in (0, 1)
    ]
    assert rows[0]["rmse"] != rows[1]["rmse"]  # another record
    errors = {row["kind"]: row["rmse"] for row in select(rows, model="ARX", seed=0)}
    assert errors[SPIKES] != errors[CLEAN] != errors[STUCK]
    page = study.page(rows, drawn, {})
    assert list(study.figures(rows, {})) == ["outliers"] and "<svg" in page and "RMSE with stuck samples" in page


def row(model, rmse, kind=CLEAN, share=0.0, dataset="drive", **others):
    return score_row(dataset, model, rmse, kind=kind, share=share, **others)


def both(model, rmse, **others):
    """Rows of the two methods; that by moments has twice the error."""
    return [row(model, rmse, method="mean", **others), row(model, 2.0 * rmse, method="moments", **others)]


def made_up(spiky, clean=1.01, found=0.95, dataset="drive"):
    detection = {"listed": 0.5, "listed_falsely": 0.01}
    return [
        *both(GAUSSIAN, 1.0, dataset=dataset),
        *both(STUDENT, clean, dataset=dataset, found=None, listed=None, listed_falsely=0.0),
        *both(GAUSSIAN, 3.0, kind=SPIKES, share=0.10, dataset=dataset),
        *both(STUDENT, spiky, kind=SPIKES, share=0.10, dataset=dataset, found=found, **detection),
        *both(STUDENT, 9.0, kind=STUCK, share=0.10, dataset=dataset, found=0.1, **detection),
    ]


def judge(rows):
    return [(each.what, each.met, each.found) for each in Outliers().targets(rows)]


def test_targets_are_computed_from_the_rows():
    assert judge([*made_up(1.1), *made_up(5.0, clean=1.03, found=0.8, dataset="two")]) == [
        ("drive, 10 % spikes: Student-t at most 1.15 × Gaussian without outliers", True, "1.100 (by moments 1.100)"),
        ("drive, no outliers: Student-t at most 1.02 × Gaussian", True, "1.010 (by moments 1.010)"),
        ("two, no outliers: Student-t at most 1.02 × Gaussian", False, "1.030 (by moments 1.030)"),
        ("drive, 10 % spikes: at least 90 % found at 5 % false alarms", True, "95.0 %"),
        ("two, 10 % spikes: at least 90 % found at 5 % false alarms", False, "80.0 %"),
    ]


def test_outliers_are_found_by_their_weights():
    """Weights of good samples are above those of the spike; 5 % of the good ones are below the threshold."""
    u, marks = np.sin(0.3 * np.arange(60.0)), np.zeros((60, 1), dtype=bool)
    y = np.convolve(u, [0.0, 0.5, 0.3])[:60]
    marks[[25, 40]] = True
    y[[25, 40]] += 4.0, -3.0
    recipe = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta", "tau"), 20),))
    model = small.spec(hidden=1, inducing=10, recipe=recipe, noise="student-t").fit(revarb.Series(u, y))
    found = measure_detection(model, marks)
    assert found["found"] == 1.0 and found["listed"] == 1.0 and found["listed_falsely"] < 0.1
    none = measure_detection(model, np.zeros_like(marks))
    assert none["found"] is None and none["listed"] is None and 0.0 < none["listed_falsely"] < 0.1
    assert measure_detection(revarb.Mean().fit(revarb.Series(np.arange(9.0), np.arange(9.0))), marks) == {}
