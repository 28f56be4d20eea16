"""Rows summarised over seeds, and the sentences that recommend a model."""

import numpy as np
import pytest

from revarb.analysis.verdict import SCORES, Line, SeedRange, describe_verdict, summarise

NAN = np.nan
LOW, HARDLY = "Nothing was learnt here: predicting", "Use none of them: check the columns"


def make_lines(**medians):
    """A line per run: method, RMSE, its range over the seeds, coverage. NRMSE has the opposite order."""
    return [
        Line(name.replace("_", "-"), method, make_ranges(rmse, width, coverage), 3)
        for name, runs in medians.items()
        for method, rmse, width, coverage in runs
    ]


def make_ranges(rmse, width, coverage):
    return {
        "rmse": SeedRange(rmse - width, rmse, rmse + width),
        "nrmse": SeedRange(*[0.02 / rmse] * 3),
        "coverage95": SeedRange(coverage, coverage, coverage),
    }


def one(error, coverage=0.9):
    return [("residuals", error, 0, coverage)]


def two(mean_only, error, coverage=0.9, width=0.0):
    return [("mean", mean_only, 0, NAN), ("moments", error, width, coverage)]


@pytest.mark.parametrize(
    ("models", "sentence"),
    [
        (
            {"Mean": one(3.4), "ARX": one(1.21), "REVARB": [("mean", 1.20, 0, NAN)]},
            "A linear model is enough here: ARX 1.21, best of the others REVARB 1.2 (RMSE).",
        ),
        # Their errors are 0.67 of the standard deviation of the output.
        (
            {"Mean": one(0.045), "ARX": one(0.03), "REVARB": one(0.03)},
            "No model is good enough here, and a linear one is as good as the others: ARX 0.03, best of the others "
            "REVARB 0.03 (RMSE).",
        ),
        # Both errors are small against the mean's, but one is ten times smaller: a linear model is not enough.
        (
            {"Mean": one(1.0), "ARX": one(0.04), "LSTM": one(0.004)},
            "Use LSTM: RMSE 0.004, the next best is ARX 0.04. Its 95 % band contains 90 % of the measurements.",
        ),
        # The error and the band are those of the same method.
        (
            {"Mean": one(0.74), "ARX": one(0.75), "GP_NARX": two(0.38, 0.43, 0.97), "REVARB": two(0.245, 0.27, 0.96)},
            "Use REVARB: RMSE 0.27, the next best is GP-NARX 0.43. Its 95 % band contains 96 % of the measurements.",
        ),
        # The best by mean-only runs is worse with its uncertainty: another model is recommended.
        (
            {"Mean": one(1.7), "LSTM": one(0.8, 0.91), "REVARB": two(0.45, 1.66)},
            "Use LSTM: RMSE 0.8, the next best is REVARB 1.66. Its 95 % band contains 91 % of the measurements. The "
            "mean-only run of REVARB has a smaller error, 0.45, but no band; do not rely on its simulations with "
            "uncertainty here.",
        ),
        (
            {"Mean": one(1.7), "LSTM": [("residuals", 0.8, 0.1, 0.9)], "REVARB": two(0.8, 0.65, width=0.1)},
            "Use REVARB: RMSE 0.65, the next best is LSTM 0.8; their seeds overlap, so run more of them before relying "
            "on the order. Its 95 % band contains 90 % of the measurements.",
        ),
        ({"REVARB": [("mean", 0.1, 0, NAN)]}, "REVARB has RMSE 0.1; there is nothing to compare it with."),
    ],
)
def test_verdict(models, sentence):
    assert describe_verdict(make_lines(**models)) == sentence


@pytest.mark.parametrize(("error", "compared"), [(0.072, "hardly better"), (0.08, "worse")])
def test_nothing_was_learnt(error, compared):
    """By the method that is used by default: a good mean-only run is only mentioned."""
    both = make_lines(Mean=one(0.073), REVARB=two(0.01, error))
    sentence = describe_verdict(both)
    opening = f"the training mean has an error of 0.073, and the best model, REVARB {error:g}, is {compared}. "
    assert sentence.startswith(f"{LOW} {opening}{HARDLY}")
    assert "The mean-only run of REVARB has a smaller error, 0.01, but no band" in sentence
    assert "mean-only" not in describe_verdict([both[0], both[2]])


def test_nothing_was_learnt_without_the_mean_among_the_models():
    wide = {"rmse": SeedRange(2.4, 2.4, 2.4), "nrmse": SeedRange(1.2, 1.2, 1.2), "coverage95": SeedRange(0.9, 0.9, 0.9)}
    sentence = describe_verdict([Line("ARX", "residuals", wide, 1), Line("LSTM", "residuals", wide, 1)])
    assert sentence.startswith(f"{LOW} the mean of the test record has an error of 2, and the best model, ARX 2.4")
    perfect = dict.fromkeys(("rmse", "nrmse", "coverage95"), SeedRange(0.0, 0.0, 0.0))
    assert describe_verdict([Line("ARX", "residuals", perfect, 1)]).startswith("ARX has RMSE 0; there is nothing")


def test_what_failed_or_mostly_failed_is_not_recommended():
    failed = Line("A", "", {}, 1, ("why",))
    assert describe_verdict([failed]) == "Every model failed; the reasons are listed with the table."
    steady = make_lines(GP=[("mean", 0.3, 0, NAN)])
    mostly, partly = (Line("LSTM", "residuals", make_ranges(0.1, 0, 0.9), 5, ("why",) * count) for count in (3, 2))
    assert describe_verdict([mostly, *steady]).startswith("GP has RMSE 0.3")
    assert describe_verdict([partly, *steady]).startswith("Use LSTM: RMSE 0.1 (3 of 5 seeds), the next best is GP 0.3")


def test_the_ranking_can_be_by_relative_errors():
    both = make_lines(A=[("mean", 0.1, 0, NAN)], B=[("mean", 0.2, 0, NAN)])
    assert describe_verdict(both).startswith("Use A") and describe_verdict(both, "nrmse").startswith("Use B: NRMSE 0.1")


def row(seed, method, rmse, reason=None):
    return {**dict.fromkeys(SCORES, rmse), "model": "chosen", "method": method, "seed": seed, "reason": reason}


def test_a_single_run_counts_under_every_method_of_the_other_seeds():
    """A model that chooses may be linear with one seed, with its single method, and not with another."""
    rows = [row(0, "residuals", 1.0), row(1, "mean", 2.0), row(1, "moments", 4.0), row(2, "", None, "diverged")]
    lines = summarise(rows)
    expected = [("mean", (1.0, 1.5, 2.0)), ("moments", (1.0, 2.5, 4.0))]
    assert [(line.method, line.ranges["rmse"]) for line in lines] == expected
    assert all((line.seeds, line.worked, line.failures) == (3, 2, ("diverged",)) for line in lines)
    [line] = summarise([row(0, "residuals", 1.0), row(1, "residuals", 3.0)])
    assert line.method == "residuals" and line.ranges["rmse"] == (1.0, 2.0, 3.0)
