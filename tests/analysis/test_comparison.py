"""Comparison of models: rows, failures, worker processes, pictures."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from revarb.analysis.comparison import compare
from revarb.analysis.figures import draw_comparison
from revarb.analysis.report import write_results
from revarb.analysis.runs import default_models, family_models
from revarb.analysis.scores import scores
from revarb.analysis.verdict import describe_verdict
from revarb.baselines import ARX, LSTM, Mean
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.models.rgp import RGP
from revarb.runtime.figure_style import encode_figure
from revarb.selection.choose import Chosen
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
    assert {row["skip"] for row in quick.rows} == {max(path.skip for paths in quick.paths.values() for path in paths)}


def test_the_numbers_are_those_of_fitting_and_simulating_by_hand(quick):
    test = small.record(1)
    first, second = (small.spec().fit(small.record(), seed=seed) for seed in (0, 1))
    by_hand, row = scores(second.simulate(test.u), test.y, skip=quick.skip), quick.rows[-1]
    assert (row["rmse"], row["nlpd"], row["coverage95"]) == (by_hand.rmse, by_hand.nlpd, by_hand.coverage95)
    assert list(quick.residuals) == ["ARX", "REVARB"]  # of the models that predict, with the first seed
    np.testing.assert_array_equal(quick.residuals["REVARB"].errors, first.residuals(test).errors)


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(quick):
    parallel = compare(small.record(), small.record(1), QUICK, seeds=2, jobs=2)
    sentences = [{name: each.sentence for name, each in one.residuals.items()} for one in (quick, parallel)]
    assert sentences[0] == sentences[1]
    for ours, theirs in zip(quick.rows, parallel.rows, strict=True):
        timed = {"fit_seconds": 0.0, "simulate_seconds": 0.0}
        np.testing.assert_equal({**ours, **timed}, {**theirs, **timed})


def test_a_model_that_fails_is_a_row_with_its_reason(tmp_path):
    models = {
        "Broken": Broken(), "Shaky": Broken(seed=1), "Runaway": Runaway(), "Mean": Mean(), "Zero": Zero(),
        "short": Misshapen("rows"), "nan": Misshapen("band"), "LSTM": LSTM(),
    }  # fmt: skip
    train, test = small.with_gaps(small.record(), 5, 6), small.with_gaps(small.record(1), slice(30, 40))
    result = compare(train, test, models, seeds=2)
    reasons = {line.model: [each.partition(" seed(s) failed: ")[2] for each in line.reasons] for line in result.lines}
    assert reasons == {
        "Broken": ["no luck today"],
        "Shaky": ["no luck today"],
        "Runaway": reasons["Runaway"],
        "Mean": [],
        "Zero": [],
        "short": ["its simulation has shape (59, 1), the record (60, 1)"],
        "nan": ["its band (method 'residuals') is not finite"],
        "LSTM": ["LSTM needs every output value, and 2 of 60 are missing; fill them, or use RGP, which accepts missing "
                 "outputs"],
    }  # fmt: skip
    assert "diverged" in reasons["Runaway"][0]
    lines = {line.model: line for line in result.lines}
    assert [lines[name].worked for name in ("Broken", "Shaky", "Mean")] == [0, 1, 2]
    assert lines["Mean"].ranges["rmse"].median == lines["Shaky"].ranges["rmse"].median
    assert lines["Zero"].method == "nothing"  # a user's own model
    assert lines["Zero"].ranges["rmse"].median == pytest.approx(np.sqrt(np.nanmean(test.y**2)))
    assert result.verdict.startswith("Nothing was learnt here: predicting the training mean has an error of 0.458")
    written = json.loads(write_results(tmp_path / "r.json", {}, result.rows).read_text())
    assert written["rows"][0]["reason"] == "no luck today" and written["rows"][0]["rmse"] is None


def test_a_dead_worker_is_a_row_too():
    result = compare(small.record(), small.record(1), {"Dying": Misshapen("dies"), "Mean": Mean()}, seeds=1, jobs=2)
    lines = {line.model: line for line in result.lines}
    assert "a worker process died" in lines["Dying"].reasons[0] and set(lines) == {"Dying", "Mean"}


def test_huge_outputs(quick):
    """They are compared although they cannot be squared; an infinite error is a reason."""
    train, test = (Series(record.u, 1e200 * record.y) for record in (small.record(), small.record(1)))
    [huge] = compare(train, test, {"Mean": Mean()}, seeds=1, skip=quick.skip).lines
    np.testing.assert_allclose(huge.ranges["rmse"].median, 1e200 * quick.lines[0].ranges["rmse"].median)
    train, test = Series(train.u, -1e306 + 1e105 * train.y), Series(test.u, 1.795e308 + 1e105 * test.y)
    [line] = compare(train, test, {"Mean": Mean()}, seeds=1).lines
    assert line.reasons == ["1 of 1 seed(s) failed: its error is inf: the outputs are too large"]


def test_what_all_models_warn_of_is_given_once_without_their_names():
    far = Series(3.0 * small.record().u, small.record().y)
    with pytest.warns(UserWarning) as caught:
        compare(small.record(), far, {"Mean": Mean(), "ARX": ARX(2, 2), "broken": Broken()}, seeds=1)
    assert [str(each.message).partition(" leaves")[0] for each in caught] == ["input 'u'"]


def test_several_records_and_outputs_are_ranked_without_their_units(quick):
    train = [small.record(seed, outputs=2, inputs=2) for seed in (0, 1)]
    test = [small.record(seed, outputs=2, inputs=2, samples=length) for seed, length in ((2, 30), (3, 50))]
    result = compare(train, test, {"ARX": ARX(lags=2, input_lags=2), "Mean": Mean()}, seeds=1)
    model = ARX(lags=2, input_lags=2).fit(train)
    errors = np.concatenate([(model.simulate(t.u).mean - t.y)[result.skip :] for t in test])
    assert result.rows[0]["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert result.score == "nrmse" and "NRMSE" in result.verdict
    assert quick.score == "rmse" and quick.verdict == describe_verdict(quick.lines)


def test_records_without_inputs_and_too_short_for_residuals_are_compared_all_the_same():
    y, before = np.sin(0.4 * np.arange(75.0)), dict(os.environ)
    result = compare(Series(None, y[:60]), Series(None, y[60:]), {"ARX": ARX(2, 2), "Mean": Mean()}, seeds=[4, 7])
    assert [line.worked for line in result.lines] == [2, 2] and not result.residuals
    assert [row["seed"] for row in result.rows] == [4, 7, 4, 7] and dict(os.environ) == before


def test_the_default_models_are_those_of_the_table_and_the_chosen_one():
    models = default_models(RGP(4, 3, 0))
    assert list(models) == ["Mean", "ARX", "MLP-NARX", "LSTM", "GP-NARX", "REVARB", "revarb (chosen)"]
    assert models["REVARB"] == RGP(4, 3, 0) and models["MLP-NARX"].order_for(1) == Order(4, 3, 0)
    # In several processes it starts none of its own.
    assert [default_models(jobs=jobs)["revarb (chosen)"] for jobs in (1, 2)] == [Chosen(), Chosen(jobs=1)]
    assert all(spec.states >= 6 and spec.input_delay == 2 for spec in family_models(2, outputs=6).values())


def test_measured_values_are_drawn_with_their_gaps(quick):
    """Single values between gaps are dots; an output that was never measured is a panel with the simulation alone."""
    assert encode_figure(quick.plot(), "svg") == encode_figure(quick.plot(), "svg")  # reproducible
    path = Mean().fit(small.record()).simulate(small.record(1).u)

    def markers(y):  # ticks, and dots
        return encode_figure(draw_comparison({"Mean": [path]}, replace(small.record(1), y=y), 0), "svg").count(b"<use ")

    y = small.record(1).y.copy()
    y[30:35] = np.nan
    before = markers(y)
    y[32] = 0.1
    assert markers(y) == before + 1
    assert markers(np.full_like(y, np.nan)) > 0
