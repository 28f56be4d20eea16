"""The family: GP state-space models and REVARB on the same records, beside published numbers and known transitions."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from matplotlib.figure import Figure

from revarb import datasets
from revarb.config.rgp import RGP
from revarb.evaluation.comparison.comparison import family_models
from revarb.experiments.common import read_settings, select_records
from revarb.experiments.experiment import Experiment, Part, Report
from revarb.experiments.family_figure import draw_transitions
from revarb.experiments.family_runs import NARENDRA_LI, FamilyFit, Sizes, run_family_fit
from revarb.experiments.family_targets import (
    CHOSEN,
    MARKOV,
    MEAN_FIELD,
    PRIOR,
    R0,
    REDUCED_RANK,
    FamilyLimits,
    FamilyRecord,
    family_grids,
    list_family_targets,
)
from revarb.experiments.field_runs import RowsFile, run_fits
from revarb.experiments.field_targets import state_targets
from revarb.experiments.known_systems import SYSTEMS
from revarb.models.base import ModelSpec
from revarb.report.page import figure_html, grid_html, page_shell
from revarb.report.tables import Grid
from revarb.runtime.figure_style import encode_figure
from revarb.training.choose import Chosen

STRUCTURED = (PRIOR, MARKOV, MEAN_FIELD)
NOTES = (
    "continued: from the end of the training part, all rows scored, as published. cold: without knowledge of the "
    "state, scored after 40 samples. RMSE in raw units by what `simulate` does by default, median (range).",
    "published: EnVI (IEEE Transactions on Signal Processing, 2024), Table II, of the same method.",
    "process noise / true: over-estimated where it is above 1. error of f: along a new run, in standard deviations.",
)


@dataclass(frozen=True, eq=False)
class FamilyPart(Part):
    """All rows, with the tables of records and of known transitions, and the targets."""

    rows: list[dict[str, Any]]
    records: Sequence[FamilyRecord]
    limits: FamilyLimits

    def grids(self) -> list[Grid]:
        """Errors on the records from both starts, known transitions, and the long record."""
        return family_grids(self.rows, self.records)

    def sentences(self) -> list[str]:
        """Which targets are met, and reasons of failures, each once with the number of runs."""
        reasons = [f"{row['dataset']}, {row['model']}: {row['reason']}" for row in self.rows if row["reason"]]
        failed = [f"{reasons.count(reason)} run(s) failed: {reason}" for reason in dict.fromkeys(reasons)]
        return [*state_targets(list_family_targets(self.rows, self.records, self.limits)), *failed]

    def figures(self) -> dict[str, Figure]:
        """The learnt transitions of the first seed against the truth."""
        return {"family_transitions": draw_transitions(self.rows)} if self._curves else {}

    @property
    def _curves(self) -> bool:
        return any(row["part"] == "curve" for row in self.rows)


@dataclass(frozen=True)
class Family(Experiment[FamilyPart]):
    """The experiment with the settings of family.toml."""

    name: ClassVar[str] = "family"
    protocol: ClassVar[str] = (
        "first half for training, free simulation of the second half, raw units; continued from the end of training "
        "with all rows scored, and cold, scored after 40 samples"
    )

    title: str
    sizes: Sizes
    known: Mapping[str, Mapping[str, int]]  # settings of every model of the systems with known states
    long: Mapping[str, int]  # settings of the reduced-rank model of the long record
    revarb: Mapping[str, Any]
    chosen_seeds: int  # a choice takes minutes
    long_chosen_seeds: int
    generated_seeds: int
    limits: FamilyLimits
    records: tuple[FamilyRecord, ...]
    generated: tuple[str, ...] = (*SYSTEMS, NARENDRA_LI)
    finished: RowsFile = field(default_factory=RowsFile)

    def models(self, dataset: str, jobs: int = 1) -> dict[str, ModelSpec]:
        """The models of one record of the table; `jobs` is the number of fits at a time."""
        relatives, chosen = family_models(), Chosen(jobs=None if jobs == 1 else 1)  # no processes inside processes
        if dataset in SYSTEMS:
            states = SYSTEMS[dataset].states
            return {name: replace(relatives[name], states=states, **self.known[name]) for name in STRUCTURED}  # pyright: ignore[reportArgumentType, reportCallIssue] (dataclasses)
        if dataset == NARENDRA_LI:
            return {REDUCED_RANK: replace(relatives[REDUCED_RANK], **self.long), CHOSEN: chosen}  # pyright: ignore[reportArgumentType, reportCallIssue] (dataclasses)
        lags = datasets.load(dataset).lags
        return {**relatives, R0: RGP.from_dict({**self.revarb, "lags": lags, "input_lags": lags}), CHOSEN: chosen}

    def only(self, names: Sequence[str]) -> "Family":
        """The same with some of the records, generated ones included."""
        generated = tuple(name for name in self.generated if name in names)
        benchmarks = [name for name in names if name not in generated]
        return replace(self, records=select_records(self.records, benchmarks), generated=generated)

    @property
    def datasets(self) -> list[str]:
        """Names of all records."""
        return [*(record.name for record in self.records), *self.generated]

    def list_fits(self, seeds: int) -> list[FamilyFit]:
        """All fits, those of the first seed first."""
        return [
            FamilyFit(dataset, model, seed)
            for seed in range(seeds)
            for dataset in self.datasets
            for model in self.models(dataset)
            if seed < self._limit_seeds(dataset, model, seeds)
        ]

    def _limit_seeds(self, dataset: str, model: str, seeds: int) -> int:
        limit = self.generated_seeds if dataset in self.generated else seeds
        if model != CHOSEN:
            return min(limit, seeds)
        return min(limit, self.long_chosen_seeds if dataset == NARENDRA_LI else self.chosen_seeds)

    def count_steps(self, seeds: int) -> int:
        """Number of fits."""
        return len(self.list_fits(seeds))

    def run(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[FamilyPart]:
        """Run all fits, then give the tables; fits of an earlier call with the same `finished` file are kept."""
        fits, rows = self.list_fits(seeds), self.finished.read()
        left = [fit for fit in fits if fit.key not in rows]
        for fit, found in run_fits(left, partial(self.run_one, jobs=jobs), jobs):
            rows[fit.key] = found
            self.finished.append(fit, found)
            report(f"{fit.dataset}: {fit.model}")
        yield self.summarise([row for fit in fits for row in rows[fit.key]])

    def run_one(self, fit: FamilyFit, jobs: int = 1) -> list[dict[str, Any]]:
        """Run one fit."""
        return run_family_fit(fit, self.models(fit.dataset, jobs), self.sizes)

    def summarise(self, rows: Sequence[Mapping[str, Any]]) -> FamilyPart:
        """The tables of these rows."""
        return FamilyPart([dict(row) for row in rows], self.records, self.limits)

    def notes(self, seeds: int) -> list[str]:
        """The protocol, and how to read the tables."""
        return [*super().notes(seeds), *NOTES]

    def page(self, parts: Sequence[FamilyPart], meta: Mapping[str, Any]) -> str:
        """All tables and the picture."""
        [part] = parts
        tables = "".join(f"<h2>{grid.title}</h2>{grid_html(grid)}" for grid in part.grids())
        caption = "Learnt transitions (mean and two standard deviations) against the truth, first seed."
        pictures = "".join(figure_html(caption, encode_figure(figure, "svg")) for figure in part.figures().values())
        notes = "".join(f"<p>{note}</p>" for note in NOTES)
        return page_shell(self.title, " ".join(part.sentences()), tables + pictures + notes, meta)


def load_family() -> Family:
    """Load the experiment that ships with the package."""
    values = tomllib.loads(read_settings("family.toml"))
    records = tuple(FamilyRecord(**item) for item in values["records"])
    sizes, limits = Sizes(**values["sizes"]), FamilyLimits(**values["limits"])
    counts = values["chosen_seeds"], values["long_chosen_seeds"], values["generated_seeds"]
    settings = values["known"], values["long"], values["revarb"]
    return Family(values["title"], sizes, *settings, *counts, limits, records)
