"""The paper's experiments, run for real."""

import numpy as np
import pytest

from revarb.experiments import load_table1, run_table1, summaries
from revarb.experiments.table1 import Benchmark, Table1


def test_the_shipped_table_names_the_papers_numbers():
    table = load_table1()
    paper = {benchmark.name: benchmark.paper for benchmark in table.benchmarks}
    assert paper["artificial"] == 0.4513 and paper["drive"] == 0.2491 and paper["actuator"] == 0.3680
    assert table.methods == ("mean", "moments")
    assert table.model == {"hidden": 2, "inducing": 100}


def test_rows_and_summaries_of_a_quick_table():
    quick = {"hidden": 1, "inducing": 10, "recipe": {"stages": [{"free": ["mu"], "iterations": 2}]}}
    table = Table1("quick", ("mean", "moments"), quick, (Benchmark("drawn", "artificial", None, True),))
    rows = [row for outcome in run_table1(table, seeds=2) for row in outcome.rows]
    assert [(row["method"], row["seed"]) for row in rows] == [("mean", 0), ("moments", 0), ("mean", 1), ("moments", 1)]
    expected = {"dataset", "model", "method", "start", "skip", "seed", "rmse", "nrmse", "nlpd", "coverage95",
                "fit_seconds", "simulate_seconds", "status"}  # fmt: skip
    assert all(expected <= set(row) for row in rows)
    mean, moments = summaries(table, rows)
    low, middle, high = mean.spread["rmse"]
    assert low <= middle <= high
    assert middle == pytest.approx(np.mean([rows[0]["rmse"], rows[2]["rmse"]]))
    assert np.isnan(mean.spread["nlpd"][1]) and np.isfinite(moments.spread["nlpd"][1])


@pytest.mark.slow
def test_table1_comes_out_of_the_code_as_it_is_now(recorded_data):
    """Three seeds of the paper's three sets: the medians that README claims."""
    shipped = load_table1()
    chosen = tuple(item for item in shipped.benchmarks if item.paper is not None)
    table = Table1(shipped.title, shipped.methods, shipped.model, chosen)
    rows = [row for outcome in run_table1(table, seeds=3) for row in outcome.rows]
    lines = {(line.dataset, line.method): line.spread for line in summaries(table, rows)}
    assert lines["drive", "mean"]["rmse"][1] <= 0.26 and lines["drive", "moments"]["rmse"][1] <= 0.28
    assert lines["actuator", "mean"]["rmse"][1] <= 0.38 and lines["actuator", "moments"]["rmse"][1] <= 0.37
    assert lines["artificial", "mean"]["rmse"][1] <= 0.47
    assert lines["drive", "moments"]["nlpd"][1] <= 0.20 and lines["actuator", "moments"]["nlpd"][1] <= 0.55
    for name in ("drive", "actuator"):
        assert 0.90 <= lines[name, "moments"]["coverage95"][1] <= 0.99
