"""Table 1 of the paper: REVARB and the baselines on system identification records, with several seeds."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from matplotlib.figure import Figure

from revarb import datasets
from revarb.config.rgp import RGP
from revarb.evaluation.comparison.comparison import Comparison, default_models, run_comparison
from revarb.evaluation.comparison.lines import Line, summarise
from revarb.evaluation.comparison.verdict import is_linear_enough, ranking, state_verdict
from revarb.experiments.common import PROTOCOL, read_settings
from revarb.experiments.experiment import Experiment, Part, Report
from revarb.models.base import ModelSpec
from revarb.report.page import Section, comparison_page, comparison_section
from revarb.report.reliability_figures import draw_reliability
from revarb.report.tables import NOTES, Grid, comparison_grid, list_failures


@dataclass(frozen=True)
class Benchmark:
    """A record of the table, the paper's numbers by model, and remarks on ours."""

    name: str
    record: str
    drawn: bool = False  # a new record for every seed
    paper: Mapping[str, float] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_paper(self) -> bool:
        """Whether the paper has this record."""
        return bool(self.paper)


@dataclass(frozen=True, eq=False)
class BenchmarkPart(Part):
    """Results on one benchmark. Where records are drawn, `comparison` is that of the first one."""

    benchmark: Benchmark
    rows: list[dict[str, Any]]
    comparison: Comparison

    @property
    def lines(self) -> list[Line]:
        """The rows summarised over seeds."""
        return summarise(self.rows)

    def grids(self) -> list[Grid]:
        """Every model with its scores."""
        return [comparison_grid(self.benchmark.name, self.lines, self.benchmark.paper or None)]

    def sentences(self) -> list[str]:
        """Reasons of failures, the verdict, and the remarks."""
        verdict = state_verdict(self.lines, self.comparison.score)
        return [*list_failures(self.lines), verdict, *self.benchmark.remarks.values()]

    def figures(self) -> dict[str, Figure]:
        """All models, the reliability of their bands, and REVARB alone."""
        name, paths = self.benchmark.name, self.comparison.by_model()
        figures = {f"{name}_all": self.comparison.plot()} if paths else {}
        if reliability := self.comparison.reliability():
            figures[f"reliability_{name}"] = draw_reliability(reliability)
        if "REVARB" in paths:
            title = f"{name}: free simulation of the test part"
            figures[name] = paths["REVARB"][-1].plot(self.comparison.test[0].y, title)
        return figures

    def section(self) -> Section:
        """The section of the page."""
        name = self.benchmark.name if self.benchmark.in_paper else f"{self.benchmark.name} (not in the paper)"
        paper, remarks = self.benchmark.paper or None, list(self.benchmark.remarks.values())
        return comparison_section(name, self.comparison, self.lines, paper, remarks)


@dataclass(frozen=True)
class Table1(Experiment[BenchmarkPart]):
    """The experiment with the settings of table1.toml."""

    name: ClassVar[str] = "table1"
    protocol: ClassVar[str] = PROTOCOL

    title: str
    model: Mapping[str, Any]
    benchmarks: tuple[Benchmark, ...]

    def models(self, lags: int) -> dict[str, ModelSpec]:
        """All models of the table, for a record with these lags."""
        return {
            **default_models(lags, lags),
            "REVARB": RGP.from_dict({**self.model, "lags": lags, "input_lags": lags}),
        }

    def count_steps(self, seeds: int) -> int:
        """Number of fits."""
        return len(self.models(1)) * len(self.benchmarks) * seeds

    def run(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[BenchmarkPart]:
        """Run the benchmarks one after the other; `report` gets a text after every fit."""
        for benchmark in self.benchmarks:
            # A drawn benchmark has a record per seed, with one fit each.
            groups = [[seed] for seed in range(seeds)] if benchmark.drawn else [list(range(seeds))]
            comparisons = [self._compare(benchmark, group, jobs, report) for group in groups]
            source = {"dataset": benchmark.name, "record": benchmark.record}
            rows = [{**source, **row} for comparison in comparisons for row in comparison.rows]
            yield BenchmarkPart(benchmark, rows, comparisons[0])

    def _compare(self, benchmark: Benchmark, seeds: list[int], jobs: int, report: Report) -> Comparison:
        split = datasets.load(benchmark.record, seed=seeds[0])
        return run_comparison(
            [split.train],
            [split.test],
            self.models(split.lags),
            seeds,
            jobs,
            split.skip,
            lambda run: report(f"{benchmark.name}: {run.model}"),
        )

    def notes(self, seeds: int) -> list[str]:
        """The protocol, and how to read the tables."""
        return [f"protocol: {self.protocol}; {seeds} seed(s)", *NOTES]

    def page(self, parts: Sequence[BenchmarkPart], meta: Mapping[str, Any]) -> str:
        """All benchmarks with their simulations."""
        rows = [row for part in parts for row in part.rows]
        return comparison_page(self.title, state_headline(self, rows), [part.section() for part in parts], meta)


def load_table1() -> Table1:
    """Load the experiment that ships with the package."""
    values = tomllib.loads(read_settings("table1.toml"))
    benchmarks = tuple(Benchmark(**{"record": item["name"], **item}) for item in values["datasets"])
    return Table1(values["title"], values["model"], benchmarks)


def state_headline(table: Table1, rows: Sequence[Mapping[str, Any]]) -> str:
    """The result of the whole table in a sentence or two."""
    first = {
        benchmark.name: next(iter(ranking(_lines(benchmark, rows), "rmse")), None) for benchmark in table.benchmarks
    }
    won = [item.name for item in table.benchmarks if item.in_paper and first[item.name] == "REVARB"]
    sets = [item.name for item in table.benchmarks if item.in_paper]
    linear = [item.name for item in table.benchmarks if is_linear_enough(_lines(item, rows), "rmse")]
    enough = f" A linear model does as well on {' and '.join(linear)}." if linear else ""
    return f"REVARB is first on {len(won)} of the paper's {len(sets)} sets ({', '.join(won) or 'none'}).{enough}"


def _lines(benchmark: Benchmark, rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    return summarise([row for row in rows if row["dataset"] == benchmark.name])
