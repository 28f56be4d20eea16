"""Outliers in the training outputs: Gaussian and Student-t noise beside the baselines, on clean test parts."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from matplotlib.figure import Figure

from revarb.config.rgp import RGP
from revarb.evaluation.comparison.comparison import fixed_models
from revarb.experiments.benchmarks import Benchmark
from revarb.experiments.common import PROTOCOL, read_settings, select_records
from revarb.experiments.experiment import Experiment, Part, Report
from revarb.experiments.field_runs import Key, RowsFile, run_fits
from revarb.experiments.outlier_figure import draw_outliers
from revarb.experiments.outlier_runs import SpoiledFit, run_spoiled
from revarb.experiments.outlier_targets import (
    GAUSSIAN,
    NO_OUTLIERS,
    STUDENT,
    OutlierLimits,
    OutlierOutcome,
    list_outlier_outcomes,
    list_outlier_targets,
    outlier_grids,
    target_grid,
)
from revarb.experiments.spoiling import KINDS, Condition
from revarb.models.base import ModelSpec
from revarb.report.page import figure_html, grid_html, page_shell
from revarb.report.tables import Grid
from revarb.runtime.figure_style import encode_figure

NOTES = (
    "clean: without outliers. spikes: samples moved by 3 to 6 standard deviations, up or down. stuck: stretches of "
    "five samples that repeat the one before. The seed draws the outliers and starts the fit; the test part is clean.",
    "RMSE of the mean-only run. The bands of REVARB are not calibrated here.",
    "found: share of the outliers with a weight below that of all but 5 % of the good samples. listed: what "
    "`model.outliers()` names. A stuck sample that happens to be nearly right counts as an outlier all the same.",
)


@dataclass(frozen=True, eq=False)
class OutlierPart(Part):
    """Results on one data set."""

    rows: list[dict[str, Any]]

    @property
    def outcome(self) -> OutlierOutcome:
        """The rows summarised over the seeds."""
        return OutlierOutcome(self.rows[0]["dataset"], self.rows)

    def grids(self) -> list[Grid]:
        """Errors by kind and share, and the detection."""
        return outlier_grids(self.outcome)

    def sentences(self) -> list[str]:
        """Reasons of failures, each once with the number of fits."""
        reasons = [f"{row['model']}: {row['reason']}" for row in self.rows if row["reason"] is not None]
        return [f"{reasons.count(reason)} fit(s) failed: {reason}" for reason in dict.fromkeys(reasons)]


@dataclass(frozen=True, eq=False)
class OutlierSummary(Part):
    """All data sets together, and which targets are reached. Its rows are those of the other parts, so it adds none."""

    outcomes: Sequence[OutlierOutcome]
    limits: OutlierLimits

    @property
    def rows(self) -> list[dict[str, Any]]:  # pyright: ignore[reportIncompatibleVariableOverride] (read only)
        """Nothing to write."""
        return []

    def grids(self) -> list[Grid]:
        """Every target with what was found."""
        return [target_grid(list_outlier_targets(self.outcomes, self.limits), "Targets")]

    def sentences(self) -> list[str]:
        """How many targets are reached."""
        targets = list_outlier_targets(self.outcomes, self.limits)
        return [f"{sum(target.met for target in targets)} of {len(targets)} targets are reached."]

    def figures(self) -> dict[str, Figure]:
        """Error against the share of outliers."""
        return {"outliers": draw_outliers(self.outcomes)}


@dataclass(frozen=True)
class OutlierRecord:
    """A benchmark of the table, and the fields of RGP that are its own."""

    benchmark: Benchmark
    model: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the benchmark."""
        return self.benchmark.name


@dataclass(frozen=True)
class OutlierTable(Experiment[Part]):
    """The experiment with the settings of outliers.toml."""

    name: ClassVar[str] = "outliers"
    protocol: ClassVar[str] = (
        f"{PROTOCOL}; robot_arm z-scored by its clean training part; outliers in training outputs only; "
        "bands of REVARB not calibrated"
    )

    title: str
    shares: Sequence[float]
    rivals: Sequence[str]
    model: Mapping[str, Any]
    limits: OutlierLimits
    records: tuple[OutlierRecord, ...]
    finished: RowsFile = field(default_factory=RowsFile)

    def models(self, benchmark: Benchmark, lags: int) -> dict[str, ModelSpec]:
        """All models of the table, for a record with these lags."""
        rivals, spec = fixed_models(lags, lags), self.spec(benchmark.name, lags)
        return {
            **{name: rivals[name] for name in self.rivals},
            GAUSSIAN: spec,
            STUDENT: replace(spec, noise="student-t"),
        }

    def spec(self, name: str, lags: int) -> RGP:
        """The model of a record, with Gaussian noise."""
        own = next(record.model for record in self.records if record.name == name)
        settings = {**self.model, **own, "lags": lags, "input_lags": lags}
        weight = settings.pop("free_run_weight", 0.0)  # a field of the recipe, which has a name here
        spec = RGP.from_dict(settings)
        return replace(spec, recipe=replace(spec.recipe, free_run_weight=weight))

    def only(self, names: Sequence[str]) -> "OutlierTable":
        """The same with some of the records."""
        return replace(self, records=select_records(self.records, names))

    @property
    def conditions(self) -> list[Condition]:
        """The clean record, and every kind and share of outliers."""
        return [NO_OUTLIERS, *(Condition(kind, share) for kind in KINDS for share in self.shares)]

    def list_fits(self, benchmark: Benchmark, seeds: int) -> list[SpoiledFit]:
        """All fits to one benchmark, those of the first seed first."""
        return [
            SpoiledFit(benchmark, condition, model, seed)
            for seed in range(seeds)
            for condition in self.conditions
            for model in self.models(benchmark, 1)
        ]

    def count_steps(self, seeds: int) -> int:
        """Number of fits."""
        return sum(len(self.list_fits(record.benchmark, seeds)) for record in self.records)

    def run(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[Part]:
        """Run the records one after the other, then give a summary; `report` gets a text after every fit.

        Fits of an earlier call with the same `finished` file are not run again.
        """
        finished, parts = self.finished.read(), []
        for record in self.records:
            parts.append(self._run_record(record.benchmark, seeds, jobs, finished, report))
            yield parts[-1]
        yield self.summarise([row for part in parts for row in part.rows])

    def _run_record(
        self, benchmark: Benchmark, seeds: int, jobs: int, finished: Mapping[Key, list[dict[str, Any]]], report: Report
    ) -> OutlierPart:
        fits = self.list_fits(benchmark, seeds)
        rows = {fit.key: finished[fit.key] for fit in fits if fit.key in finished}
        for key in rows:
            report(f"{key[0]}: {key[1]} (kept)")
        left = [fit for fit in fits if fit.key not in rows]
        for fit, found in run_fits(left, partial(run_spoiled, models=self.models), jobs):
            rows[fit.key] = found
            self.finished.append(fit, found)
            report(f"{fit.key[0]}: {fit.model}")
        return OutlierPart([row for fit in sorted(fits, key=self._order) for row in rows[fit.key]])

    def _order(self, fit: SpoiledFit) -> tuple[int, int, int]:
        # The rows of the file: by condition, model and seed.
        models = list(self.models(fit.benchmark, 1))
        return self.conditions.index(fit.condition), models.index(fit.model), fit.seed

    def summarise(self, rows: Sequence[Mapping[str, Any]]) -> OutlierSummary:
        """The summary of rows of this table."""
        return OutlierSummary(list_outlier_outcomes(rows), self.limits)

    def notes(self, seeds: int) -> list[str]:
        """The protocol, and how to read the tables."""
        return [*super().notes(seeds), *NOTES]

    def page(self, parts: Sequence[Part], meta: Mapping[str, Any]) -> str:
        """The targets, the picture and all tables."""
        summary = self.summarise([row for part in parts for row in part.rows])
        picture = encode_figure(draw_outliers(summary.outcomes), "svg")
        caption = "RMSE of the mean-only run against the share of outliers: median and range of the seeds."
        tables = [
            f"<h2>{grid.title}</h2>{grid_html(grid)}" for each in summary.outcomes for grid in outlier_grids(each)
        ]
        notes = "".join(f"<p>{note}</p>" for note in NOTES)
        body = "".join([*map(grid_html, summary.grids()), figure_html(caption, picture), *tables, notes])
        return page_shell(self.title, " ".join(summary.sentences()), body, meta)


def load_outliers() -> OutlierTable:
    """Load the experiment that ships with the package."""
    values = tomllib.loads(read_settings("outliers.toml"))
    records = tuple(_read_record(item) for item in values.pop("records"))
    limits = values.pop("limits")
    limits["robust_records"] = tuple(limits["robust_records"])
    return OutlierTable(**values, limits=OutlierLimits(**limits), records=records)


def _read_record(item: Mapping[str, Any]) -> OutlierRecord:
    about = {key: value for key, value in item.items() if key != "model"}
    return OutlierRecord(Benchmark(**{"record": item["name"], **about}), item.get("model", {}))
