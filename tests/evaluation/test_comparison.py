"""Comparison of models: rows, failures, worker processes, checks."""

import json
import os
import threading

import numpy as np
import pytest

from revarb.baselines.arx import ARX
from revarb.baselines.lstm import LSTM
from revarb.baselines.training_mean import Mean
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError
from revarb.evaluation.comparison import compare, state_verdict
from revarb.evaluation.comparison.comparison import default_models, fixed_models
from revarb.evaluation.comparison.lines import summarise
from revarb.evaluation.results_file import write_results
from revarb.evaluation.scoring import pooled_scores, scores
from revarb.report.page import comparison_page, comparison_section
from revarb.training.choose import Chosen
from support import small
from support.small_rivals import Broken, Misshapen, Runaway, Zero

QUICK = {"Mean": Mean(), "ARX": ARX(lags=2, input_lags=2), "REVARB": small.spec()}


@pytest.fixture(scope="module")
def quick():
    return compare(small.record(), small.record(1), QUICK, seeds=2)


def test_one_row_per_model_method_and_seed(quick):
    names = [(row["model"], row["method"], row["seed"]) for row in quick.rows]
    assert names == [
        *(("Mean", "residuals", seed) for seed in (0, 1)),
        *(("ARX", "residuals", seed) for seed in (0, 1)),
        *(("REVARB", method, seed) for seed in (0, 1) for method in ("mean", "moments")),
    ]
    expected = {"model", "method", "start", "skip", "seed", "rmse", "nrmse", "nlpd", "coverage95", "fit_seconds",
                "simulate_seconds", "status", "reason"}  # fmt: skip
    assert all(expected <= set(row) for row in quick.rows)


def test_the_numbers_are_those_of_fitting_and_simulating_by_hand(quick):
    test = small.record(1)
    by_hand = scores(small.spec().fit(small.record(), seed=1).simulate(test.u), test.y, skip=quick.skip)
    row = quick.rows[-1]
    assert (row["rmse"], row["nlpd"], row["coverage95"]) == (by_hand.rmse, by_hand.nlpd, by_hand.coverage95)


def test_all_models_are_scored_on_the_same_rows(quick):
    assert {row["skip"] for row in quick.rows} == {small.spec().fit(small.record()).skip}


def test_models_that_predict_have_residuals_of_the_first_seed(quick):
    assert list(quick.residuals) == ["ARX", "REVARB"]
    expected = small.spec().fit(small.record(), seed=0).residuals(small.record(1))
    np.testing.assert_array_equal(quick.residuals["REVARB"].errors, expected.errors)


def test_a_record_too_short_for_residuals_is_compared_all_the_same():
    result = compare(small.record(), small.record(1)[:15], {"ARX": ARX(2, 2)}, seeds=1)
    assert not result.residuals and result.lines[0].worked == 1


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(quick):
    parallel = compare(small.record(), small.record(1), QUICK, seeds=2, jobs=2)
    seconds = ("fit_seconds", "simulate_seconds")
    assert {name: each.sentence for name, each in parallel.residuals.items()} == {
        name: each.sentence for name, each in quick.residuals.items()
    }
    for ours, theirs in zip(quick.rows, parallel.rows, strict=True):
        plain, other = ({k: v for k, v in row.items() if k not in seconds} for row in (ours, theirs))
        np.testing.assert_equal(plain, other)


def test_lines_have_smallest_median_and_largest(quick):
    line = quick.lines[-2]
    values = [row["rmse"] for row in quick.rows if row["model"] == "REVARB" and row["method"] == "mean"]
    assert (line.model, line.method, line.seeds) == ("REVARB", "mean", 2)
    assert line.ranges["rmse"] == (min(values), np.median(values), max(values))
    assert np.isnan(line.ranges["nlpd"].median)


def test_a_failed_rival_is_a_row_with_its_reason(tmp_path):
    models = {"Broken": Broken(), "Shaky": Broken(seed=1), "Runaway": Runaway(), "Mean": Mean()}
    result = compare(small.record(), small.record(1), models, seeds=2)
    lines = {line.model: line for line in result.lines}
    assert lines["Broken"].reasons == ["2 of 2 seed(s) failed: no luck today"] and not lines["Broken"].worked
    assert lines["Shaky"].worked and lines["Shaky"].reasons == ["1 of 2 seed(s) failed: no luck today"]
    assert "diverged" in lines["Runaway"].reasons[0]
    assert lines["Mean"].ranges["rmse"].median == lines["Shaky"].ranges["rmse"].median
    odd = compare(small.record(), small.record(1), {"short": Misshapen("rows"), "nan": Misshapen("band")}, seeds=1)
    assert [line.reasons[0] for line in odd.lines] == [
        "1 of 1 seed(s) failed: its simulation has shape (59, 1), the record (60, 1)",
        "1 of 1 seed(s) failed: its band (method 'residuals') is not finite",
    ]
    written = json.loads(write_results(tmp_path / "r.json", {}, result.rows).read_text())
    assert written["rows"][0]["reason"] == "no luck today" and written["rows"][0]["rmse"] is None


def test_a_rival_that_cannot_do_with_gaps_is_a_row_with_its_reason():
    models = {"Mean": Mean(), "LSTM": LSTM(), "Zero": Zero()}
    test = small.with_gaps(small.record(1), slice(30, 40))
    result = compare(small.with_gaps(small.record(), 5, 6), test, models, seeds=1)
    lines = {line.model: line for line in result.lines}
    reason = "LSTM needs every output value, and 2 of 60 are missing; fill them, or use RGP, which accepts missing"
    reason += " outputs"
    assert lines["LSTM"].reasons == [f"1 of 1 seed(s) failed: {reason}"]
    assert result.verdict.startswith("Nothing was learnt here: predicting the training mean has an error of 0.458")
    assert lines["Zero"].ranges["rmse"].median == pytest.approx(np.sqrt(np.nanmean(test.y**2)))
    page = comparison_page("t", "o", [comparison_section("s", result)], {})
    assert reason in page and "failed" in page


def test_a_model_of_the_users_own_takes_part():
    (zero,) = compare(small.record(), small.record(1), {"Zero": Zero()}, seeds=1).lines
    assert (zero.model, zero.method, zero.worked) == ("Zero", "nothing", 1)
    assert zero.ranges["rmse"].median == pytest.approx(np.sqrt(np.mean(small.record(1).y ** 2)))


def test_a_dead_worker_is_a_row_too():
    result = compare(small.record(), small.record(1), {"Dying": Misshapen("dies"), "Mean": Mean()}, seeds=1, jobs=2)
    lines = {line.model: line for line in result.lines}
    assert "a worker process died" in lines["Dying"].reasons[0] and set(lines) == {"Dying", "Mean"}


def test_what_cannot_be_sent_to_a_worker_is_refused():
    model = Misshapen(threading.Lock())
    with pytest.raises(InputError, match=r"cannot be sent to another process .* use jobs=1"):
        compare(small.record(), small.record(1), {"locked": model, "Mean": Mean()}, seeds=1, jobs=2)


def test_outputs_that_cannot_be_squared_are_compared_all_the_same():
    train, test = (Series(record.u, 1e200 * record.y) for record in (small.record(), small.record(1)))
    (line,) = compare(train, test, {"Mean": Mean()}, seeds=1).lines
    (plain,) = compare(small.record(), small.record(1), {"Mean": Mean()}, seeds=1).lines
    np.testing.assert_allclose(line.ranges["rmse"].median, 1e200 * plain.ranges["rmse"].median)


def test_an_infinite_error_is_a_reason():
    train, test = (
        Series(record.u, offset + 1e305 * record.y)
        for record, offset in ((small.record(), -1e306), (small.record(1), 1.795e308))
    )
    (line,) = compare(train, test, {"Mean": Mean()}, seeds=1).lines
    assert line.reasons == ["1 of 1 seed(s) failed: its error is inf: the outputs are too large"]


def test_the_environment_is_unchanged():
    before = dict(os.environ)
    compare(small.record(), small.record(1), {"Mean": Mean()}, seeds=1)
    assert dict(os.environ) == before


@pytest.mark.slow
def test_a_warning_of_a_model_is_given_once():
    models = {"REVARB": small.spec(inducing=1000)}
    with pytest.warns(UserWarning, match="REVARB: inducing=1000, but there are only") as caught:
        compare(small.record(), small.record(1), models, seeds=2)
    assert len(caught) == 1


def test_several_records_on_both_sides():
    train = [small.record(seed, outputs=2, inputs=2) for seed in (0, 1)]
    test = [small.record(seed, outputs=2, inputs=2, samples=length) for seed, length in ((2, 30), (3, 50))]
    result = compare(train, test, {"ARX": ARX(lags=2, input_lags=2)}, seeds=1)
    model = ARX(lags=2, input_lags=2).fit(train)
    errors = np.concatenate([(model.simulate(t.u).mean - t.y)[result.skip :] for t in test])
    assert result.rows[0]["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))


def test_a_system_without_inputs():
    y = np.sin(0.4 * np.arange(90.0))
    result = compare(Series(None, y[:60]), Series(None, y[60:]), {"ARX": ARX(2, 2), "Mean": Mean()}, seeds=1)
    assert [line.worked for line in result.lines] == [1, 1]


def test_named_seeds():
    result = compare(small.record(), small.record(1), {"Mean": Mean()}, seeds=[4, 7])
    assert [row["seed"] for row in result.rows] == [4, 7]


def test_the_default_models_are_those_of_the_table_and_the_chosen_one():
    assert list(fixed_models(4, 3, 0)) == ["Mean", "ARX", "MLP-NARX", "LSTM", "GP-NARX", "REVARB"]
    assert list(default_models(4, 3, 0)) == [*fixed_models(), "revarb (chosen)"]
    revarb = default_models(4, 3, 0)["REVARB"]
    assert (revarb.lags, revarb.input_lags, revarb.input_delay) == (4, 3, 0)


def test_a_chosen_model_starts_no_processes_within_processes():
    assert default_models(jobs=1)["revarb (chosen)"] == Chosen()
    assert default_models(jobs=2)["revarb (chosen)"] == Chosen(jobs=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": {}}, "models must name at least one"),
        ({"models": {"ARX": ARX}}, "model 'ARX' must be a configuration with fit"),
        ({"skip": 60}, "a test record has 60 rows, but 60 are left out"),
        ({"skip": -1}, "skip must be a whole number of at least 0"),
        ({"seeds": 0}, "seeds .* must be a whole number of at least 1, received 0"),
        ({"seeds": [1, 1]}, "each once"),
        ({"train": Series(small.record().u, np.ones(60))}, "output column 'y' is constant"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1"),
        ({"test": Series(np.zeros((9, 2)), np.zeros(9))}, "train and test must agree in input_names"),
        ({"test": small.with_gaps(small.record(1), slice(None))}, "the test part has no measured output value"),
        ({"test": small.record(samples=4)}, "a test record has 4 rows, but 4 are left out"),
    ],
)
def test_refusals(change, message):
    arguments = {"train": small.record(), "test": small.record(1), "models": {"ARX": ARX(2, 2)}, **change}
    with pytest.raises(InputError, match=message):
        compare(**arguments)


def test_several_outputs_are_ranked_without_their_units(quick):
    assert quick.score == "rmse" and quick.verdict == state_verdict(quick.lines)
    train, test = (small.record(seed, outputs=2) for seed in (0, 1))
    both = compare(train, test, {"Mean": Mean(), "ARX": ARX(2, 2)}, seeds=1)
    assert both.score == "nrmse" and "NRMSE" in both.verdict


def test_failed_seeds_do_not_count_in_the_numbers():
    rows = [
        {"model": "A", "method": "mean", "seed": 0, "reason": None, **dict.fromkeys(
            ("rmse", "nrmse", "nlpd", "coverage95", "fit_seconds", "simulate_seconds"), 1.0)},
        {"model": "A", "method": "", "seed": 1, "reason": "why"},
    ]  # fmt: skip
    (line,) = summarise(rows)
    assert line.ranges["rmse"] == (1.0, 1.0, 1.0) and line.failures == ("why",) and line.seeds == 2


def test_what_all_models_warn_of_is_given_once_without_their_names():
    record = small.record()
    far = Series(3.0 * record.u, record.y)
    with pytest.warns(UserWarning) as caught:
        compare(record, far, {"Mean": Mean(), "ARX": ARX(2, 2), "broken": Broken()}, seeds=1)
    assert [str(each.message).partition(" leaves")[0] for each in caught] == ["input 'u'"]


def test_scores_of_several_outputs_are_written_without_nan(tmp_path):
    path = Trajectory(np.zeros((4, 2)), None, "mean", 0, ("a", "b"))
    row = pooled_scores([path], [np.ones((4, 2))]).to_row()
    text = write_results(tmp_path / "r.json", {}, [row]).read_text()
    [read] = json.loads(text, parse_constant=pytest.fail)["rows"]
    assert read["outputs"]["b"]["nlpd"] is None and read["outputs"]["b"]["rmse"] == 1.0
