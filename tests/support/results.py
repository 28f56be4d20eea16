"""The committed results, results/*.json, as plain values: nothing of revarb is imported."""

import json
import statistics
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FILES = sorted((ROOT / "results").glob("*.json"))


@cache
def read_results(name):
    """The content of results/NAME.json."""
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def rows_of(name):
    """Its rows."""
    return read_results(name)["rows"]


def values(rows, score, **where):
    """A score of all rows with these cells."""
    found = [row[score] for row in rows if where.items() <= row.items()]
    assert found, where
    return found


def median(rows, score, **where):
    """Its median, over the seeds."""
    return statistics.median(values(rows, score, **where))


def mean_only(rows, score="rmse"):
    """For every data set and model the median of the mean-only run; a model without one has a single method."""
    found = {}
    for dataset, model in dict.fromkeys((row["dataset"], row["model"]) for row in rows):
        own = [row for row in rows if (row["dataset"], row["model"]) == (dataset, model)]
        methods = {row["method"] for row in own}
        method = "mean" if "mean" in methods else methods.pop()
        found.setdefault(dataset, {})[model] = median(own, score, method=method)
    return found


def read_experiment(name):
    """The shipped configuration of a table."""
    return tomllib.loads((ROOT / "src" / "revarb" / "experiments" / f"{name}.toml").read_text())
