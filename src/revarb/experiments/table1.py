"""Table 1 of the paper: REVARB and the baselines on system identification records, with several seeds."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from revarb.config.rgp import RGP
from revarb.evaluation.comparison.comparison import fixed_models
from revarb.evaluation.comparison.lines import Line, mean_only_lines, summarise
from revarb.evaluation.comparison.verdict import is_linear_enough, ranking
from revarb.experiments.benchmarks import Benchmark, BenchmarkPart, run_benchmark
from revarb.experiments.common import PROTOCOL, read_settings
from revarb.experiments.experiment import Experiment, Report
from revarb.models.base import ModelSpec
from revarb.report.page import comparison_page
from revarb.report.tables import NOTES


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
            **fixed_models(lags, lags),
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
            yield run_benchmark(benchmark, groups, self.models, jobs, report)

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
    """The result of the whole table in a sentence or two, by the mean-only runs, as in the README."""
    first = {
        benchmark.name: next(iter(ranking(_lines(benchmark, rows), "rmse")), None) for benchmark in table.benchmarks
    }
    won = [item.name for item in table.benchmarks if item.in_paper and first[item.name] == "REVARB"]
    sets = [item.name for item in table.benchmarks if item.in_paper]
    linear = [item.name for item in table.benchmarks if is_linear_enough(_lines(item, rows), "rmse")]
    enough = f" A linear model does as well on {' and '.join(linear)}." if linear else ""
    first_on = f"REVARB is first on {len(won)} of the paper's {len(sets)} sets ({', '.join(won) or 'none'})"
    return f"{first_on}, by the mean-only runs.{enough}"


def _lines(benchmark: Benchmark, rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    # The published numbers are those of the mean-only runs.
    return list(mean_only_lines(summarise([row for row in rows if row["dataset"] == benchmark.name])).values())
