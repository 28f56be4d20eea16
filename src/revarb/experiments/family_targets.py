"""Tables and targets of the family: errors beside published ones, and process noises beside the true ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from revarb.evaluation.comparison.lines import SeedRange
from revarb.experiments.family_runs import COLD, CONTINUED, NARENDRA_LI
from revarb.experiments.field_targets import CHOSEN, NOTHING, R0, Target
from revarb.experiments.known_systems import SYSTEMS
from revarb.report.tables import Grid, format_range

PRIOR, MARKOV, MEAN_FIELD = "GPSSM, prior", "GPSSM, markov", "GPSSM, mean-field"
REDUCED_RANK = "reduced-rank GPSSM"
MODELS = (PRIOR, MARKOV, MEAN_FIELD, REDUCED_RANK, R0, CHOSEN)
METHODS = ("samples", "moments", "residuals")  # what `simulate` does by default, by the kind of model
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class FamilyRecord:
    """A benchmark of the table, the set it belongs to, and published numbers by model."""

    name: str
    set: Literal["development", "report"]
    published: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class FamilyLimits:
    """Limits of the targets."""

    of_published: float
    records: int
    over_estimated: float
    estimated: float


def over_seeds(rows: Rows, column: str, **equal: Any) -> SeedRange:
    """Smallest, median and largest value of a column over the rows with these entries; nothing if a seed failed."""
    chosen = [row for row in rows if all(row.get(name) == value for name, value in equal.items())]
    known = [row[column] for row in chosen if row.get(column) is not None and row["reason"] is None]
    failed = any(row["reason"] is not None for row in chosen)
    return NOTHING if failed or not known else SeedRange(min(known), float(np.median(known)), max(known))


def default_rows(rows: Rows) -> Rows:
    """The rows of free runs by the default method of each model, and those of fits that failed."""
    return [row for row in rows if row["part"] == "records" and row["method"] in (*METHODS, None)]


def family_grids(rows: Rows, records: Sequence[FamilyRecord]) -> list[Grid]:
    """Errors from both starts, known transitions, and the long record, as far as there are rows."""
    found = {row["dataset"] for row in rows}
    known = [record for record in records if record.name in found]
    grids = [_error_grid(rows, known, start) for start in (CONTINUED, COLD)] if known else []
    if found & set(SYSTEMS):
        grids.append(_transition_grid(rows, [name for name in SYSTEMS if name in found]))
    return [*grids, _long_grid(rows)] if NARENDRA_LI in found else grids


def _error_grid(rows: Rows, records: Sequence[FamilyRecord], start: str) -> Grid:
    title = f"RMSE, {'continued from the end of training' if start == CONTINUED else 'cold start'}"
    by_default = default_rows(rows)
    cells = [[model, *(_error_cell(by_default, record, model, start) for record in records)] for model in MODELS]
    others = [name for name in dict.fromkeys(name for record in records for name in record.published)
              if name not in MODELS and start == CONTINUED]  # fmt: skip
    published = [[f"{name} (published)", *(f"{record.published[name]:g}" for record in records)] for name in others]
    return Grid(title, ["model", *(record.name for record in records)], [*cells, *published])


def _error_cell(rows: Rows, record: FamilyRecord, model: str, start: str) -> str:
    ours = format_range(over_seeds(rows, "rmse", dataset=record.name, model=model, start=start))
    theirs = record.published.get(model) if start == CONTINUED else None
    return ours if theirs is None else f"{ours} [{theirs:g}]"


def _transition_grid(rows: Rows, names: Sequence[str]) -> Grid:
    columns = ("system", "model", "error of f", "process noise", "true", "process noise / true", "output noise", "true")
    return Grid("Known states", columns, [_transition_cells(rows, name, model)
                                          for name in names for model in (PRIOR, MARKOV, MEAN_FIELD)])  # fmt: skip


def _transition_cells(rows: Rows, name: str, model: str) -> list[str]:
    own = [row for row in rows if row["part"] == "known states"]
    error, process, ratio, output = (
        over_seeds(own, column, dataset=name, model=model)
        for column in ("transition_error", "process_std", "process_ratio", "output_std")
    )
    system = SYSTEMS[name]
    return [name, model, format_range(error), format_range(process), f"{system.process_std:g}", format_range(ratio),
            format_range(output), f"{system.output_std:g}"]  # fmt: skip


def _long_grid(rows: Rows) -> Grid:
    by_default = default_rows(rows)
    cells = []
    for model in (REDUCED_RANK, CHOSEN):
        ranges = (over_seeds(by_default, column, dataset=NARENDRA_LI, model=model)
                  for column in ("rmse", "nrmse", "coverage95", "fit_seconds"))  # fmt: skip
        mean_only = over_seeds(rows, "rmse", dataset=NARENDRA_LI, model=model, method="mean")
        cells.append([model, format_range(mean_only), *map(format_range, ranges)])
    columns = ("model", "RMSE, mean-only", "RMSE", "NRMSE", "share in 95 %", "fit s")
    return Grid("Narendra and Li's system, 2000 samples, cold start", columns, cells)


def list_family_targets(rows: Rows, records: Sequence[FamilyRecord], limits: FamilyLimits) -> list[Target]:
    """All targets that the rows can be judged by."""
    found = {row["dataset"] for row in rows}
    known = [record for record in records if record.name in found]
    published = [
        _published_target(rows, known, model, limits) for model in (PRIOR, MARKOV) if len(known) >= limits.records
    ]
    noises = [target for name in SYSTEMS if name in found for target in _noise_targets(rows, name, limits)]
    return [*published, *noises]


def _published_target(rows: Rows, records: Sequence[FamilyRecord], model: str, limits: FamilyLimits) -> Target:
    by_default = default_rows(rows)
    ratios = {
        record.name: over_seeds(by_default, "rmse", dataset=record.name, model=model, start=CONTINUED).median
        / record.published[model]
        for record in records
    }
    reached = sum(ratio <= limits.of_published for ratio in ratios.values())
    text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    what = (
        f"{model}: at most {limits.of_published:g} × the published error on {limits.records} of {len(records)} records"
    )
    return Target(what, reached >= limits.records, f"{reached}; over the published one: {text}")


def _noise_targets(rows: Rows, name: str, limits: FamilyLimits) -> Iterator[Target]:
    for model in (PRIOR, MARKOV, MEAN_FIELD):
        ratio = over_seeds(rows, "process_ratio", dataset=name, model=model, part="known states").median
        if model == MEAN_FIELD:
            what = f"{name}: {model} over-estimates the process noise at least {limits.over_estimated:g} times"
            yield Target(what, ratio >= limits.over_estimated, f"{ratio:.2f} times")
        else:
            what = f"{name}: process noise of {model} at most {limits.estimated:g} times the true one"
            yield Target(what, ratio <= limits.estimated, f"{ratio:.2f} times")
