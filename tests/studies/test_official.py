"""The leaderboard: starts from measured samples, rows, places, targets and the submission file, with quick models."""

import csv
import dataclasses
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import revarb
from revarb import datasets
from revarb.data.series import as_records
from studies.__main__ import main
from studies.measured_starts import list_starts, run_part, simulate
from studies.official import LENGTH, PARTS, PUBLISHED, REVARB, ROWS, Official, Part, format_submission, spread_parts
from studies.study import check_rows, run_fits
from studies.tables import select
from support import small
from support.small_rivals import Broken
from support.study_rows import score_row

WINDOW = 8
ONE, TWO = Part("plant", "one", "mV", 9.0), Part("plant", "two", "mV", 1e-9, covered=False)


class Predicting:
    """A linear model that starts from measured samples only by `predict`, as GP-NARX and MLP-NARX do."""

    def fit(self, train, seed=0):
        model = revarb.ARX(2, 2).fit(train)
        return SimpleNamespace(
            simulate=lambda u: model.simulate(u), predict=model.predict, methods=model.methods, status=model.status
        )


class Quick(Official):
    """A small plant with two test parts, and linear models."""

    parts, published = (ONE, TWO), {"known": (1e-6, None), "other": (1e6, 1e-6)}

    def models(self, lags):
        return {REVARB: revarb.ARX(lags, lags), "MLP-NARX": Predicting(), "LSTM": revarb.Mean(), "Broken": Broken(1)}

    def load(self, name):
        records = [small.record(seed) for seed in range(4)]
        return datasets.Split(name, tuple(records[:2]), tuple(records[2:]), 2, WINDOW, ("one", "two"))


def rows_of(part, model, rmse, **others):
    """The rows of a model on a part, from both starts."""
    about = {"part": part.name, "unit": part.unit, "skip": WINDOW, "extrapolates": 0.0}
    common = {**about, "mae": 0.5 * (rmse or 0.0), **others}
    starts = (("measured", 0.1), ("cold", 0.2))
    return [score_row(part.dataset, model, rmse, start=start, rmse_first50=first, **common) for start, first in starts]


def test_a_quick_study(tmp_path):
    study = Quick(seeds=2)
    rows, drawn = run_fits(study)
    starts = {
        model: [(row["part"], row["start"]) for row in select(rows, model=model, seed=0)] for model in study.models(2)
    }
    both = [(part, start) for part in ("one", "two") for start in ("measured", "cold")]
    assert starts == {REVARB: both, "MLP-NARX": both, "LSTM": both[1::2], "Broken": both[1::2]}
    failed = select(rows, model="Broken", seed=1)
    assert [row["reason"] for row in failed] == ["no luck today"] * 4 and check_rows(study, rows) == rows
    model, test = revarb.ARX(2, 2).fit([small.record(0), small.record(1)]), small.record(2)
    start = revarb.Window(test.u[:WINDOW], test.y[:WINDOW])
    path, [row] = model.simulate(test.u[WINDOW:], start=start), select(rows, model=REVARB, seed=0, part="one")[:1]
    error = 1e3 * (path.mean - test.y[WINDOW:])  # mV
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert row["rmse_first50"] == pytest.approx(np.sqrt(np.mean(error[:50] ** 2)))
    assert (row["skip"], row["mae"]) == (WINDOW, pytest.approx(np.abs(error).mean()))
    assert set(study.figures(rows, drawn)) == {"official_plant_one", "official_plant_two"}
    places, errors, scores = study.tables(rows)
    assert [(line[0], line[4][1:], line[5]) for line in places.rows] == [
        ("plant, one", " of 5", "known"), ("plant, two", " of 4", "other"),
    ]  # fmt: skip
    assert [line[0] for line in errors.rows] == [REVARB, "MLP-NARX", "LSTM (cold)", "Broken (cold)", "known", "other"]
    assert errors.rows[3][1] == "–" and len(scores.rows) == 8 and "<table" in study.page(rows, drawn, {})
    [file] = study.write_more(tmp_path, rows, drawn)
    assert file.read_text() == format_submission(rows)


@pytest.mark.parametrize("spec", [revarb.ARX(2, 2), Predicting(), revarb.MLPNARX(2, 2, units=(3,), iterations=15)])
def test_a_run_starts_from_the_window_and_sees_nothing_after_it(spec):
    model, test = spec.fit([small.record(0)], seed=0), small.record(1)
    other = dataclasses.replace(test, y=np.concatenate([test.y[:WINDOW], test.y[WINDOW:] + 5.0]))
    (path, skip), (again, _) = (simulate(model, record, WINDOW, "measured") for record in (test, other))
    np.testing.assert_array_equal(path.mean[skip:], again.mean[skip:])
    shifted = dataclasses.replace(test, y=test.y + 5.0)
    assert (simulate(model, shifted, WINDOW, "measured")[0].mean[skip] != path.mean[skip]).all()
    assert skip + len(test) - WINDOW == len(path) and list_starts(model) == ("measured", "cold")
    cold, skip = simulate(model, test, WINDOW, "cold")
    assert (len(cold), skip, cold.start) == (len(test), WINDOW, "cold")


def test_both_ways_to_start_are_the_same_run():
    test, models = small.record(1), [spec.fit([small.record(0)]) for spec in (revarb.ARX(2, 2), Predicting())]
    runs = [simulate(model, test, WINDOW, "measured") for model in models]
    (started, _), (predicted, skip) = runs
    np.testing.assert_allclose(predicted.mean[skip:], started.mean)
    np.testing.assert_allclose(predicted.std[skip:], started.std)


def test_a_run_that_fails_is_a_row():
    diverged = SimpleNamespace(simulate=lambda u: dataclasses.replace(PATH, mean=np.inf + PATH.mean, std=None))
    row, path = run_part(diverged, small.record(0), WINDOW, "cold")
    assert path is None and row["status"] == "failed" and "diverged" in row["reason"]


PATH = revarb.Mean().fit(small.record(0)).simulate(small.record(0).u)


def test_places_and_targets_are_computed_from_the_rows():
    study, other = Quick(seeds=1), partial(rows_of, model="ARX")
    rows = [*rows_of(ONE, REVARB, 4.0), *other(ONE, rmse=4.5), *rows_of(TWO, REVARB, 2.0), *other(TWO, rmse=3.0)]
    study.published = {"known": (3.0, None), "other": (None, 7.0)}
    assert list(study.rank(rows)) == [(ONE, "2 of 3", "known", 3.0), (TWO, "1 of 3", "ARX", 3.0)]
    assert study.headline(rows) == "First on 1 of 2: plant, two. Use instead: plant, one: known (3.000 mV)."
    found = {target.what: (target.met, target.found) for target in study.targets(rows)}
    assert found == {
        "plant, one: RMSE in mV at most 9": (True, "4.000"),
        "plant, one: share inside the 95 % band between 88% and 99%": (True, "95.0 %"),
        "plant, one: first 50 samples better than from a cold start": (True, "0.100 and 0.200"),
        "plant, two: RMSE in mV at most 1e-09": (False, "2.000"),
        "plant, two: warns that it extrapolates": (False, "0.0 % of the rows"),
        "plant, two: first 50 samples better than from a cold start": (True, "0.100 and 0.200"),
    }
    warned = rows_of(TWO, REVARB, 2.0, extrapolates=0.25, coverage95=0.5)
    assert [target.met for target in study.targets(warned)] == [False, True, True]
    failed = rows_of(ONE, REVARB, 4.0, seed=1, reason="diverged")
    assert not any(target.met for target in study.targets([*rows, *failed]) if "one" in target.what)


def test_a_fit_that_fails_hides_no_other_part():
    """A model that starts cold keeps its scores where a fit to another record failed."""
    cold = [row for row in rows_of(ONE, "LSTM", 4.0) if row["start"] == "cold"]
    rows = [*cold, *rows_of(TWO, "LSTM", None, reason="diverged")]
    [line] = Quick(seeds=1).error_grid(rows).rows[:1]
    assert line == ["LSTM (cold)", "4.000", "–"]


def test_the_submission_has_the_metrics_of_the_benchmark():
    rows = [*rows_of(ONE, REVARB, 0.5, nrmse=0.25), *rows_of(TWO, REVARB, 0.12345), *rows_of(ONE, REVARB, 9.0, seed=1)]
    one, two = csv.DictReader(format_submission(rows).splitlines())
    assert one == {
        "benchmark": "plant", "test part": "one", "model": REVARB, "n_init": "8", "unit": "mV", "RMSE": "0.5",
        "NRMSE": "0.25", "R-squared": "0.9375", "fit index": "75", "MAE": "0.25", "RMSE to submit": "[0.5; 0.123]",
    }  # fmt: skip
    assert two["test part"] == "two"


def test_metrics_are_those_of_the_package():
    metrics = pytest.importorskip("nonlinear_benchmarks.error_metrics")
    test = small.record(1)
    row, path = run_part(revarb.ARX(2, 2).fit([small.record(0)]), test, WINDOW, "measured")
    rows = [{**score_row("plant", REVARB, 0.0, start="measured"), **row, "part": "one", "unit": "V"}]
    [line] = csv.DictReader(format_submission(rows).splitlines())
    for column, metric in {"RMSE": "RMSE", "NRMSE": "NRMSE", "R-squared": "R_squared", "fit index": "fit_index",
                           "MAE": "MAE"}.items():  # fmt: skip
        assert float(line[column]) == pytest.approx(getattr(metrics, metric)(test.y[WINDOW:], path.mean)[0], rel=1e-5)


def test_a_long_record_is_spread():
    u = np.arange(ROWS + 1.0)
    long, limit = revarb.Series(u, u), revarb.Series(u[1:], u[1:])
    parts = spread_parts([long])
    assert [len(part) for part in parts] == [LENGTH] * (ROWS // LENGTH)
    assert (parts[0].u[0, 0], parts[-1].u[-1, 0]) == (0.0, float(ROWS)) and spread_parts([limit]) == [limit]
    assert spread_parts([long, long]) == [long, long]


def test_parts_and_published_numbers_belong_together(recorded_data):
    assert {len(values) for values in PUBLISHED.values()} == {len(PARTS)}
    for name in dict.fromkeys(part.dataset for part in PARTS):
        split = datasets.load(name)
        assert tuple(part.name for part in PARTS if part.dataset == name) == (split.test_names or ("",))
        assert len(as_records(split.test)) == len(split.test_names or "1") and split.window > 0


def test_the_option_of_the_benchmarks_selects_it(capsys):
    assert main(["benchmarks", "--official", "--only", "drive"]) == 2
    known = "there are ced, cascaded_tanks, wiener_hammerstein, silverbox"
    assert f"error: no record 'drive' in this table; {known}" in capsys.readouterr().err
