"""Benchmarks of a table: the models compared on each of them, with several seeds or several drawn records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from matplotlib.figure import Figure

from revarb import datasets
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.datasets.registry import Split
from revarb.evaluation.comparison.comparison import Comparison, run_comparison
from revarb.evaluation.comparison.lines import Line, summarise
from revarb.evaluation.comparison.verdict import state_verdict
from revarb.experiments.experiment import Part, Report
from revarb.models.base import ModelSpec
from revarb.report.page import Section, comparison_section
from revarb.report.reliability_figures import draw_reliability
from revarb.report.tables import Grid, comparison_grid, list_failures

ALONE = ("REVARB", "revarb (chosen)")  # the first of these that a table has gets a picture of its own


@dataclass(frozen=True)
class Benchmark:
    """A record of a table, the paper's numbers by model, and remarks on ours.

    With `z_scored` its outputs are scaled by the mean and standard deviation of the training part, so that errors of
    outputs with different units can be pooled.
    """

    name: str
    record: str
    drawn: bool = False  # a new record for every seed
    paper: Mapping[str, float] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    z_scored: bool = False

    @property
    def in_paper(self) -> bool:
        """Whether the paper has this record."""
        return bool(self.paper)

    def load(self, seed: int) -> Split[Series]:
        """Load the record, or draw the one of this seed."""
        split = datasets.load(self.record, seed=seed)
        return z_score_outputs(split) if self.z_scored else split


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
        """All models, the reliability of their bands, and REVARB or the chosen model alone."""
        name, paths = self.benchmark.name, self.comparison.by_model()
        figures = {f"{name}_all": self.comparison.plot()} if paths else {}
        if reliability := self.comparison.reliability():
            figures[f"reliability_{name}"] = draw_reliability(reliability)
        alone = next((model for model in ALONE if model in paths), None)
        if alone is not None:
            title = f"{name}: free simulation of the test part"
            figures[name] = paths[alone][-1].plot(self.comparison.test[0].y, title)
        return figures

    def section(self) -> Section:
        """The section of the page."""
        name = self.benchmark.name if self.benchmark.in_paper else f"{self.benchmark.name} (not in the paper)"
        paper, remarks = self.benchmark.paper or None, list(self.benchmark.remarks.values())
        return comparison_section(name, self.comparison, self.lines, paper, remarks)


def run_benchmark(
    benchmark: Benchmark,
    groups: Sequence[Sequence[int]],
    models: Callable[[int], Mapping[str, ModelSpec]],
    jobs: int,
    report: Report,
) -> BenchmarkPart:
    """Compare the models on the record of the first seed of every group, with all seeds of that group.

    `models` gets the lags of the record; `report` gets a text after every fit.
    """
    comparisons = [_compare(benchmark, seeds, models, jobs, report) for seeds in groups]
    source = {"dataset": benchmark.name, "record": benchmark.record}
    rows = [{**source, **row} for comparison in comparisons for row in comparison.rows]
    return BenchmarkPart(benchmark, rows, comparisons[0])


def z_score_outputs(split: Split[Series]) -> Split[Series]:
    """Scale the outputs by the training part. Models do so themselves, so only the units of the scores change."""
    scaling = Standardiser.from_records([split.train])
    train, test = (_with_outputs(record, scaling) for record in (split.train, split.test))
    return replace(split, train=train, test=test)


def _with_outputs(record: Series, scaling: Standardiser) -> Series:
    return Series(record.u, scaling.outputs(record.y), record.dt, record.input_names, record.output_names)


def _compare(
    benchmark: Benchmark,
    seeds: Sequence[int],
    models: Callable[[int], Mapping[str, ModelSpec]],
    jobs: int,
    report: Report,
) -> Comparison:
    split = benchmark.load(seeds[0])
    return run_comparison(
        [split.train],
        [split.test],
        models(split.lags),
        seeds,
        jobs,
        split.skip,
        lambda run: report(f"{benchmark.name}: {run.model}"),
    )
