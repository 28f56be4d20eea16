"""The field: the chosen model beside the baselines, REVARB as in the paper, and published numbers, on many records."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar

from revarb.config.rgp import RGP
from revarb.evaluation.comparison.comparison import Comparison, default_models
from revarb.experiments.benchmarks import Benchmark, BenchmarkPart
from revarb.experiments.common import read_settings, select_records
from revarb.experiments.experiment import Experiment, Part, Report
from revarb.experiments.field_runs import Fit, RowsFile, compare_fit, run_fits
from revarb.experiments.field_targets import (
    ARX,
    CHOSEN,
    MEAN,
    R0,
    FieldRecord,
    Limits,
    Outcome,
    choice_grid,
    error_grid,
    list_outcomes,
    list_targets,
    state_targets,
)
from revarb.models.base import ModelSpec
from revarb.report.page import grid_html, page_shell, sections_html
from revarb.report.tables import NOTES, Grid
from revarb.training.choose import Chosen

BASELINES = (MEAN, ARX, "GP-NARX", "LSTM")


@dataclass(frozen=True, eq=False)
class FieldSummary(Part):
    """All records together, and which targets are met. Its rows are those of the other parts, so it adds none."""

    outcomes: Sequence[Outcome]
    limits: Limits
    title: str

    @property
    def rows(self) -> list[dict[str, Any]]:  # pyright: ignore[reportIncompatibleVariableOverride] (read only)
        """Nothing to write."""
        return []

    def grids(self) -> list[Grid]:
        """Errors, and what was chosen, with a row per record."""
        return [error_grid(self.outcomes, self.title), choice_grid(self.outcomes, "The chosen model")]

    def sentences(self) -> list[str]:
        """How many targets are met, and the missed ones by name."""
        return state_targets(list_targets(self.outcomes, self.limits))


@dataclass(frozen=True)
class Field(Experiment[Part]):
    """The experiment with the settings of field.toml."""

    name: ClassVar[str] = "field"
    protocol: ClassVar[str] = (
        "free simulation of the test part, cold start, scored after 40 samples, raw units; robot_arm, heating, "
        "thermic, cstr and winding with outputs z-scored by the training part and pooled"
    )

    title: str
    model: Mapping[str, Any]
    draws: int
    skip: int  # first rows of a test record that are not scored, at least
    limits: Limits
    records: tuple[FieldRecord, ...]
    finished: RowsFile = field(default_factory=RowsFile)

    def models(self, lags: int, jobs: int = 1) -> dict[str, ModelSpec]:
        """All models of the table, for a record with these lags; `jobs` is the number of fits at a time."""
        baselines = default_models(lags, lags)
        return {
            **{name: baselines[name] for name in BASELINES},
            R0: RGP.from_dict({**self.model, "lags": lags, "input_lags": lags}),
            CHOSEN: Chosen(jobs=None if jobs == 1 else 1),  # processes do not start processes of their own
        }

    def only(self, names: Sequence[str]) -> "Field":
        """The same with some of the records."""
        return replace(self, records=select_records(self.records, names))

    def count_steps(self, seeds: int) -> int:
        """Number of fits."""
        fits = sum(self.draws if record.benchmark.drawn else seeds for record in self.records)
        return len(self.models(1)) * fits

    def run(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[Part]:
        """Run all fits, then give the records one after the other and a summary; `report` gets a text after every fit.

        Fits of an earlier call with the same `finished` file are not run again, and have no simulations to draw.
        """
        rows, paths = self.finished.read(), {}
        fits = [fit for fit in self.list_fits(seeds) if fit.key not in rows]
        run = partial(compare_fit, models=partial(self.models, jobs=jobs), skip=self.skip)
        for fit, comparison in run_fits(fits, run, jobs):
            source = {"dataset": fit.benchmark.name, "record": fit.benchmark.record}
            rows[fit.key] = [{**source, **_pool(row)} for row in comparison.rows]
            self.finished.append(fit, rows[fit.key])
            if fit.seed == 0:
                paths |= {(fit.benchmark.name, *key): value for key, value in comparison.paths.items()}
            report(f"{fit.benchmark.name}: {fit.model}")
        parts = [self._make_part(record.benchmark, rows, paths, seeds) for record in self.records]
        yield from parts
        yield self.summarise([row for part in parts for row in part.rows])

    def list_fits(self, seeds: int) -> list[Fit]:
        """All fits of the table: those of the first seed first, and of these the ones that take longest."""
        fits = [
            Fit(record.benchmark, model, seed)
            for record in self.records
            for model in self.models(1)
            for seed in range(self.draws if record.benchmark.drawn else seeds)
        ]
        return sorted(fits, key=lambda fit: (0 if fit.benchmark.drawn else fit.seed, fit.model != CHOSEN))

    def _make_part(
        self, benchmark: Benchmark, rows: Mapping[tuple[str, str, int], list], paths: Mapping[tuple, Any], seeds: int
    ) -> BenchmarkPart:
        models, count = self.models(1), self.draws if benchmark.drawn else seeds
        ordered = [row for model in models for seed in range(count) for row in rows[benchmark.name, model, seed]]
        drawn = {(model, method): path for (name, model, method), path in paths.items() if name == benchmark.name}
        split = benchmark.load(0)
        comparison = Comparison(tuple(ordered), drawn, (split.test,), max(self.skip, split.skip))
        return BenchmarkPart(benchmark, ordered, comparison)

    def summarise(self, rows: Sequence[Mapping[str, Any]]) -> FieldSummary:
        """The summary of rows of this table."""
        return FieldSummary(list_outcomes(self.records, rows), self.limits, self.title)

    def notes(self, seeds: int) -> list[str]:
        """The protocol, and how to read the tables."""
        drawn = f"{self.draws} drawn records of artificial_drawn, one fit each"
        return [f"protocol: {self.protocol}; {seeds} seed(s), {drawn}", *NOTES]

    def page(self, parts: Sequence[Part], meta: Mapping[str, Any]) -> str:
        """The summary, then every record with its simulations."""
        benchmarks = [part for part in parts if isinstance(part, BenchmarkPart)]
        summary = self.summarise([row for part in benchmarks for row in part.rows])
        overview = "".join(map(grid_html, summary.grids()))
        sections = sections_html([part.section() for part in benchmarks], with_verdict=True)
        return page_shell(self.title, " ".join(summary.sentences()), overview + sections, meta)


def _pool(row: Mapping[str, Any]) -> dict[str, Any]:
    # The table has the scores of all outputs together.
    return {name: value for name, value in row.items() if name != "outputs"}


def load_field() -> Field:
    """Load the experiment that ships with the package."""
    values = tomllib.loads(read_settings("field.toml"))
    records = tuple(_read_record(item, values["published_protocol"]) for item in values["records"])
    limits = Limits(**{**values["limits"], "band": tuple(values["limits"]["band"])})
    return Field(values["title"], values["model"], values["draws"], values["skip"], limits, records)


def _read_record(item: Mapping[str, Any], published_protocol: str) -> FieldRecord:
    own = {each.name for each in fields(FieldRecord)}
    about = {key: value for key, value in item.items() if key in own}
    benchmark = {key: value for key, value in item.items() if key not in own}
    remarks = _state_published(about.get("published", {}), published_protocol)
    if item.get("z_scored"):
        remarks["units"] = (
            "Outputs are z-scored by the training part; RMSE and NLPD are in these units, outputs pooled."
        )
    return FieldRecord(Benchmark(**{"record": item["name"], "remarks": remarks, **benchmark}), **about)


def _state_published(numbers: Mapping[str, float], protocol: str) -> dict[str, str]:
    if not numbers:
        return {}
    return {"published": f"Published ({protocol}): {', '.join(f'{name} {value}' for name, value in numbers.items())}."}
