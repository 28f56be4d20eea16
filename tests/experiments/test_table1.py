"""Table 1: settings, a quick run, and (slow) the numbers of the README."""

import dataclasses

import numpy as np
import pytest

from revarb.evaluation.comparison import mean_only_lines, ranking
from revarb.experiments.table1 import Benchmark, Table1, load_table1, state_headline

QUICK = {"hidden": 1, "inducing": 10, "calibrate": False, "recipe": {"stages": [{"free": ["mu"], "iterations": 2}]}}
MODELS = ["Mean", "ARX", "MLP-NARX", "LSTM", "GP-NARX", "REVARB"]


def only(table, *names):
    """The table with some of its models."""

    class Fewer(Table1):
        def models(self, lags):
            return {name: spec for name, spec in super().models(lags).items() if name in names}

    return Fewer(table.title, table.model, table.benchmarks)


def test_the_shipped_table_names_the_papers_numbers():
    table = load_table1()
    paper = {benchmark.name: benchmark.paper for benchmark in table.benchmarks}
    assert [paper[name]["REVARB"] for name in ("artificial_recorded", "drive", "actuator")] == [0.4513, 0.2491, 0.3680]
    assert paper["actuator"] == {"MLP-NARX": 0.4621, "LSTM": 0.5170, "GP-NARX": 1.5488, "REVARB": 0.3680}
    assert paper["dryer"] == {} and paper["gas_furnace"] == {}
    assert table.model == {"hidden": 2, "inducing": 100, "calibrate": False}
    assert list(table.models(10)) == MODELS


@pytest.mark.slow
def test_rows_of_a_quick_table():
    """A drawn benchmark: another record for every seed."""
    table = only(Table1("quick", QUICK, (Benchmark("drawn", "artificial", drawn=True),)), "Mean", "REVARB")
    heard = []
    (part,) = table.run(seeds=2, report=heard.append)
    assert heard == ["drawn: Mean", "drawn: REVARB"] * 2
    expected = {"dataset", "record", "model", "method", "start", "skip", "seed", "rmse", "nrmse", "nlpd", "coverage95",
                "fit_seconds", "simulate_seconds", "status"}  # fmt: skip
    assert all(expected <= set(row) for row in part.rows)
    mean, plain, moments = part.lines
    assert mean.ranges["rmse"].low < mean.ranges["rmse"].high  # the mean differs only because the record does
    low, middle, high = plain.ranges["rmse"]
    assert low <= middle <= high
    assert np.isnan(plain.ranges["nlpd"].median) and np.isfinite(moments.ranges["nlpd"].median)
    assert list(part.figures()) == ["drawn_all", "reliability_drawn", "drawn"]
    assert table.count_steps(2) == len(heard)
    assert "drawn (not in the paper)" in table.page([part], {"command": "test"})


def test_the_headline_counts_first_places():
    def row(dataset, model, rmse):
        scores = ("rmse", "nrmse", "nlpd", "coverage95", "fit_seconds", "simulate_seconds")
        return {"dataset": dataset, "model": model, "method": "mean", "seed": 0, "reason": None,
                **dict.fromkeys(scores, rmse)}  # fmt: skip

    paper = {"REVARB": 0.1}
    table = Table1("t", {}, (Benchmark("a", "a", paper=paper), Benchmark("b", "b", paper=paper), Benchmark("c", "c")))
    numbers = {"a": (3.0, 2.0, 1.0), "b": (3.0, 1.0, 2.0), "c": (3.0, 0.11, 0.1)}
    rows = [row(k, m, v) for k, these in numbers.items() for m, v in zip(("Mean", "ARX", "REVARB"), these, strict=True)]
    assert state_headline(table, rows) == (
        "REVARB is first on 1 of the paper's 2 sets (a), by the mean-only runs. A linear model does as well on b and c."
    )


@pytest.mark.slow
def test_table1_is_reproduced_by_the_current_code(recorded_data):
    """Three seeds of the paper's three sets: the medians of the README, and REVARB has the smallest error."""
    shipped = load_table1()
    table = dataclasses.replace(shipped, benchmarks=tuple(item for item in shipped.benchmarks if item.in_paper))
    lines = {}
    for part in table.run(seeds=3):
        name, these = part.benchmark.name, part.lines
        assert not any(line.failures for line in these)
        assert next(iter(ranking(list(mean_only_lines(these).values()), "rmse"))) == "REVARB"
        lines |= {(name, line.method): line.ranges for line in these if line.model == "REVARB"}
    assert lines["drive", "mean"]["rmse"].median <= 0.26 and lines["drive", "moments"]["rmse"].median <= 0.28
    assert lines["actuator", "mean"]["rmse"].median <= 0.38 and lines["actuator", "moments"]["rmse"].median <= 0.37
    assert lines["artificial_recorded", "mean"]["rmse"].median <= 0.47
    assert lines["drive", "moments"]["nlpd"].median <= 0.20 and lines["actuator", "moments"]["nlpd"].median <= 0.55
    for name in ("drive", "actuator"):
        assert 0.90 <= lines[name, "moments"]["coverage95"].median <= 0.99
