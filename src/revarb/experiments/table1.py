"""Table 1 of the paper: REVARB and its rivals on every record with several seeds."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from revarb import datasets
from revarb.config.rgp import RGP
from revarb.evaluation.comparison.comparison import Comparison, default_models, run_comparison
from revarb.evaluation.comparison.lines import Line, summarise
from revarb.evaluation.comparison.runs import Spec
from revarb.evaluation.comparison.verdict import is_linear_enough, ranking
from revarb.experiments.common import read_settings

PROTOCOL = "free simulation of the test part, cold start, scored after L + L_u samples, raw units"


@dataclass(frozen=True)
class Benchmark:
    """A line of the table: the record, the paper's numbers by model, and what is to be said about ours."""

    name: str
    record: str
    drawn: bool = False  # a new record for every seed
    paper: Mapping[str, float] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_paper(self) -> bool:
        """Whether the paper has this line; the others stand below it."""
        return bool(self.paper)


@dataclass(frozen=True)
class Table1:
    """What to run: experiments/table1.toml."""

    title: str
    model: Mapping[str, Any]
    benchmarks: tuple[Benchmark, ...]

    def models(self, lags: int) -> dict[str, Spec]:
        """All columns of the table, for a record with these lags."""
        return {
            **default_models(lags, lags),
            "REVARB": RGP.from_dict({**self.model, "lags": lags, "input_lags": lags}),
        }


class Outcome(NamedTuple):
    """One line of the table: its rows of the results file, and the comparison behind them (of the first record)."""

    benchmark: Benchmark
    rows: list[dict[str, Any]]
    comparison: Comparison


def load_table1() -> Table1:
    """The experiment as it ships with the package."""
    values = tomllib.loads(read_settings("table1.toml"))
    benchmarks = tuple(Benchmark(**{"record": item["name"], **item}) for item in values["datasets"])
    return Table1(values["title"], values["model"], benchmarks)


def state_headline(table: Table1, rows: Sequence[Mapping[str, Any]]) -> str:
    """What the whole table comes to."""
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


def run_table1(
    table: Table1, seeds: int, jobs: int = 1, report: Callable[[str], None] = lambda text: None
) -> Iterator[Outcome]:
    """The lines of the table, one after the other. `report` hears of every fit that is done."""
    for benchmark in table.benchmarks:
        # A drawn benchmark is as many records as seeds, with one fit each.
        groups = [[seed] for seed in range(seeds)] if benchmark.drawn else [list(range(seeds))]
        comparisons = []
        for group in groups:
            split = datasets.load(benchmark.record, seed=group[0])
            comparisons.append(
                run_comparison(
                    [split.train],
                    [split.test],
                    table.models(split.lags),
                    group,
                    jobs,
                    split.skip,
                    lambda run, name=benchmark.name: report(f"{name}: {run.model}"),
                )
            )
        place = {"dataset": benchmark.name, "record": benchmark.record}
        rows = [{**place, **row} for comparison in comparisons for row in comparison.rows]
        yield Outcome(benchmark, rows, comparisons[0])
