"""Table 1 of the paper: fit on every record with several seeds, simulate the test part, score."""

import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from revarb import datasets
from revarb.fitted import FittedRGP, Method
from revarb.optimise import Status
from revarb.rgp import RGP
from revarb.scores import scores
from revarb.trajectory import Trajectory

PROTOCOL = "free simulation of the test part, cold start, scored after L + L_u samples, raw units"


class Benchmark(NamedTuple):
    """A line of the table: the record, and the paper's number for REVARB where it has one."""

    name: str
    record: str
    paper: float | None
    drawn: bool  # a new record for every seed


@dataclass(frozen=True)
class Table1:
    """What to run: experiments/table1.toml."""

    title: str
    methods: tuple[Method, ...]
    model: Mapping[str, Any]
    benchmarks: tuple[Benchmark, ...]


class Outcome(NamedTuple):
    """One fit of one benchmark: its rows of the results file, and what was simulated, by method."""

    name: str
    rows: list[dict[str, Any]]
    model: FittedRGP
    split: datasets.Split
    paths: dict[str, Trajectory]


class Summary(NamedTuple):
    """One line for people: minimum, median and maximum over the seeds."""

    dataset: str
    method: str
    paper: float | None
    spread: dict[str, tuple[float, float, float]]


def shipped_text(name: str) -> str:
    """A TOML file of this folder, as text."""
    return files("revarb.experiments").joinpath(name).read_text(encoding="utf-8")


def load_table1() -> Table1:
    """The experiment as it ships with the package."""
    values = tomllib.loads(shipped_text("table1.toml"))
    benchmarks = tuple(
        Benchmark(item["name"], item.get("record", item["name"]), item.get("paper"), item.get("drawn", False))
        for item in values["datasets"]
    )
    return Table1(values["title"], tuple(values["methods"]), values["model"], benchmarks)


def run_table1(table: Table1, seeds: int) -> Iterator[Outcome]:
    """All fits, one after the other: benchmarks in the table's order, seeds 0, 1, …"""
    for benchmark in table.benchmarks:
        for seed in range(seeds):
            split = datasets.load(benchmark.record, seed=seed if benchmark.drawn else 0)
            spec = RGP.from_dict({**table.model, "lags": split.lags, "input_lags": split.lags})
            yield run_once(benchmark, split, spec, seed, table.methods)


def run_once(benchmark: Benchmark, split: datasets.Split, spec: RGP, seed: int, methods: Sequence[Method]) -> Outcome:
    """Fit with one seed, simulate the test part by every method, score."""
    begun = time.perf_counter()
    model = spec.fit(split.train, seed=seed)
    if model.status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # Ctrl-C means the whole table here, not one fit of it
    fit_seconds = time.perf_counter() - begun
    rows, paths = [], {}
    for method in methods:
        begun = time.perf_counter()
        paths[method] = model.simulate(split.test.u, method=method)
        seconds = time.perf_counter() - begun
        row = {
            "dataset": benchmark.name,
            "record": benchmark.record,
            "model": "REVARB",
            "method": method,
            "start": "cold",
            "seed": seed,
            **asdict(scores(paths[method], split.test.y, skip=split.skip)),
            "bound": model.bound,
            "fit_seconds": fit_seconds,
            "simulate_seconds": seconds,
            "status": model.status.value,
        }
        rows.append(row)
    return Outcome(benchmark.name, rows, model, split, paths)


def summaries(table: Table1, rows: Sequence[Mapping[str, Any]]) -> list[Summary]:
    """Minimum, median and maximum over seeds, for every benchmark and method."""
    lines = []
    for benchmark in table.benchmarks:
        for method in table.methods:
            chosen = [row for row in rows if row["dataset"] == benchmark.name and row["method"] == method]
            spread = {
                score: _spread([row[score] for row in chosen])
                for score in ("rmse", "nrmse", "nlpd", "coverage95", "fit_seconds")
            }
            lines.append(Summary(benchmark.name, method, benchmark.paper, spread))
    return lines


def _spread(values: Sequence[float | None]) -> tuple[float, float, float]:
    numbers = np.array([np.nan if value is None else value for value in values], dtype=float)
    return float(numbers.min()), float(np.median(numbers)), float(numbers.max())
