"""The verdict: the sentence at the end of a comparison."""

import numpy as np
import pytest

from revarb.evaluation.comparison import state_verdict
from revarb.evaluation.comparison.lines import Line, SeedRange


def lines(**medians):
    return [
        Line(name.replace("_", "-"), method, _spreads(rmse, width, coverage), 3)
        for name, runs in medians.items()
        for method, rmse, width, coverage in runs
    ]


def _spreads(rmse, width, coverage):
    return {
        "rmse": SeedRange(rmse - width, rmse, rmse + width),
        "nrmse": SeedRange(*[0.02 / rmse] * 3),
        "coverage95": SeedRange(coverage, coverage, coverage),
    }


def test_verdict_a_linear_model_is_enough():
    sentence = state_verdict(
        lines(Mean=[("residuals", 3.4, 0, 0.9)], ARX=[("residuals", 1.21, 0, 0.9)], REVARB=[("mean", 1.20, 0, np.nan)])
    )
    assert sentence == "A linear model is enough here: ARX 1.21, best of the others REVARB 1.2 (RMSE)."


def test_verdict_a_precise_system_is_not_called_linear():
    """Both errors are small against the mean's, but one is ten times smaller: a linear model is not enough."""
    sentence = state_verdict(
        lines(Mean=[("residuals", 1.0, 0, 0.9)], ARX=[("residuals", 0.04, 0, 0.9)], LSTM=[("residuals", 0.004, 0, 0.9)])
    )
    assert sentence.startswith("Use LSTM: RMSE 0.004, the next best is ARX 0.04.")


def test_verdict_names_the_best_and_the_band_of_the_same_method():
    sentence = state_verdict(
        lines(
            Mean=[("residuals", 0.74, 0, 0.9)],
            ARX=[("residuals", 0.75, 0, 0.9)],
            GP_NARX=[("mean", 0.38, 0, np.nan), ("moments", 0.43, 0, 0.97)],
            REVARB=[("mean", 0.245, 0.01, np.nan), ("moments", 0.27, 0, 0.96)],
        )
    )
    assert sentence == (
        "Use REVARB: RMSE 0.27, the next best is GP-NARX 0.43. Its 95 % band contains 96 % of the measurements."
    )


def test_verdict_a_mean_only_run_does_not_win_with_the_band_of_another_method():
    """The best by mean-only runs is worse with its uncertainty: another model is recommended, and it is said."""
    sentence = state_verdict(
        lines(
            Mean=[("residuals", 1.7, 0, 0.9)],
            LSTM=[("residuals", 0.8, 0, 0.91)],
            REVARB=[("mean", 0.45, 0, np.nan), ("moments", 1.66, 0, 0.9)],
        )
    )
    assert sentence == (
        "Use LSTM: RMSE 0.8, the next best is REVARB 1.66. Its 95 % band contains 91 % of the measurements. The "
        "mean-only run of REVARB has a smaller error, 0.45, but no band; do not rely on its simulations with "
        "uncertainty here."
    )


def test_verdict_warns_where_seeds_overlap():
    sentence = state_verdict(
        lines(
            Mean=[("residuals", 1.7, 0, 0.9)],
            LSTM=[("residuals", 0.8, 0.1, 0.9)],
            REVARB=[("mean", 0.8, 0.0, np.nan), ("moments", 0.65, 0.1, 0.9)],
        )
    )
    assert sentence.startswith("Use REVARB: RMSE 0.65, the next best is LSTM 0.8; their seeds overlap")


@pytest.mark.parametrize(
    ("error", "compared"), [(0.072, "REVARB 0.072, is hardly better"), (0.08, "REVARB 0.08, is worse")]
)
def test_verdict_nothing_was_learnt(error, compared):
    """By the method that is used by default: a good mean-only run is only mentioned."""
    both = lines(Mean=[("residuals", 0.073, 0, 0.9)], REVARB=[("mean", 0.01, 0, np.nan), ("moments", error, 0, 0.9)])
    sentence = state_verdict(both)
    opening = "Nothing was learnt here: predicting the training mean has an error of 0.073, and the best model, "
    assert sentence.startswith(f"{opening}{compared}. Use none of them: check the columns")
    assert "The mean-only run of REVARB has a smaller error, 0.01, but no band" in sentence
    assert "mean-only" not in state_verdict([both[0], both[2]])


def test_verdict_nothing_was_learnt_without_the_mean_among_the_models():
    wide = {"rmse": SeedRange(2.4, 2.4, 2.4), "nrmse": SeedRange(1.2, 1.2, 1.2), "coverage95": SeedRange(0.9, 0.9, 0.9)}
    sentence = state_verdict([Line("ARX", "residuals", wide, 1), Line("LSTM", "residuals", wide, 1)])
    assert sentence.startswith(
        "Nothing was learnt here: predicting the mean of the test record has an error of 2, and the best model, ARX 2.4"
    )
    perfect = dict.fromkeys(("rmse", "nrmse", "coverage95"), SeedRange(0.0, 0.0, 0.0))
    assert state_verdict([Line("ARX", "residuals", perfect, 1)]).startswith("ARX has RMSE 0; there is nothing")


def test_verdict_when_nothing_worked_or_there_is_one_model():
    failed = Line("A", "", {}, 1, ("why",))
    assert state_verdict([failed]) == "Every model failed; the reasons are listed with the table."
    assert state_verdict(lines(REVARB=[("mean", 0.1, 0, np.nan)])).startswith(
        "REVARB has RMSE 0.1; there is nothing to"
    )


def test_verdict_does_not_recommend_what_mostly_failed():
    lucky = Line("LSTM", "residuals", _spreads(0.1, 0, 0.9), 5, ("why",) * 3)
    steady = lines(GP=[("mean", 0.3, 0, np.nan)])
    assert state_verdict([lucky, *steady]).startswith("GP has RMSE 0.3")
    partly = Line("LSTM", "residuals", _spreads(0.1, 0, 0.9), 5, ("why",) * 2)
    assert state_verdict([partly, *steady]).startswith("Use LSTM: RMSE 0.1 (3 of 5 seeds), the next best is GP 0.3")


def test_verdict_can_rank_by_relative_errors():
    """`_spreads` gives NRMSE the opposite order of RMSE."""
    both = lines(A=[("mean", 0.1, 0, np.nan)], B=[("mean", 0.2, 0, np.nan)])
    assert state_verdict(both).startswith("Use A") and state_verdict(both, "nrmse").startswith("Use B: NRMSE 0.1")
