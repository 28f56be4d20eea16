"""The field: the chosen model beside the baselines, REVARB as in the paper, and published numbers, on many records."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar

from revarb.config.rgp import RGP
from revarb.errors import InputError
from revarb.evaluation.comparison.comparison import default_models
from revarb.experiments.benchmarks import Benchmark, BenchmarkPart, run_benchmark
from revarb.experiments.common import read_settings
from revarb.experiments.experiment import Experiment, Part, Report
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
        "free simulation of the test part, cold start, scored after L + L_u samples, raw units; robot_arm, heating, "
        "thermic, cstr and winding with outputs z-scored by the training part and pooled"
    )

    title: str
    model: Mapping[str, Any]
    draws: int
    limits: Limits
    records: tuple[FieldRecord, ...]

    def models(self, lags: int, jobs: int = 1) -> dict[str, ModelSpec]:
        """All models of the table, for a record with these lags; `jobs` is the number of fits at a time."""
        from revarb.training.choose import Chosen  # pyright: ignore[reportMissingImports]

        baselines = default_models(lags, lags)
        return {
            **{name: baselines[name] for name in BASELINES},
            R0: RGP.from_dict({**self.model, "lags": lags, "input_lags": lags}),
            CHOSEN: Chosen(jobs=None if jobs == 1 else 1),  # processes do not start processes of their own
        }

    def only(self, names: Sequence[str]) -> "Field":
        """The same with some of the records."""
        known = [record.name for record in self.records]
        for name in names:
            if name not in known:
                raise InputError(f"no record {name!r} in this table; there are {', '.join(known)}")
        return replace(self, records=tuple(record for record in self.records if record.name in names))

    def count_steps(self, seeds: int) -> int:
        """Number of fits."""
        fits = sum(self.draws if record.benchmark.drawn else seeds for record in self.records)
        return len(self.models(1)) * fits

    def run(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[Part]:
        """Run the records one after the other, then summarise them; `report` gets a text after every fit."""
        rows: list[dict[str, Any]] = []
        for record in self.records:
            groups = [[seed] for seed in range(self.draws)] if record.benchmark.drawn else [list(range(seeds))]
            part = run_benchmark(record.benchmark, groups, partial(self.models, jobs=jobs), jobs, report)
            rows += part.rows
            yield part
        yield self.summarise(rows)

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


def load_field() -> Field:
    """Load the experiment that ships with the package."""
    values = tomllib.loads(read_settings("field.toml"))
    records = tuple(_read_record(item, values["published_protocol"]) for item in values["records"])
    limits = Limits(**{**values["limits"], "band": tuple(values["limits"]["band"])})
    return Field(values["title"], values["model"], values["draws"], limits, records)


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
