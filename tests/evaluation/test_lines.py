"""Rows summarised over seeds."""

from revarb.evaluation.comparison.lines import summarise


def row(seed, method, rmse, reason=None):
    return {"model": "chosen", "method": method, "seed": seed, "rmse": rmse, "reason": reason}


def test_a_single_run_counts_under_every_method_of_the_other_seeds():
    """A model that chooses may be linear with one seed, with its single method, and not with another."""
    rows = [row(0, "residuals", 1.0), row(1, "mean", 2.0), row(1, "moments", 4.0), row(2, "", None, "diverged")]
    lines = summarise(rows, ["rmse"])
    assert [(line.method, line.ranges["rmse"]) for line in lines] == [
        ("mean", (1.0, 1.5, 2.0)), ("moments", (1.0, 2.5, 4.0)),
    ]  # fmt: skip
    assert all((line.seeds, line.worked) == (3, 2) for line in lines)


def test_a_model_with_a_single_method_keeps_it():
    [line] = summarise([row(0, "residuals", 1.0), row(1, "residuals", 3.0)], ["rmse"])
    assert line.method == "residuals" and line.ranges["rmse"] == (1.0, 2.0, 3.0)
