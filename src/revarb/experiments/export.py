"""Exports of trained models: difference to the model's own mean-only run, size, and time per step."""

import time
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from revarb.config.rgp import RGP
from revarb.datasets.registry import Split
from revarb.experiments.benchmarks import Benchmark
from revarb.experiments.common import raise_if_interrupted, read_settings, select_records
from revarb.experiments.experiment import Experiment, Part, Report
from revarb.experiments.export_runs import JAX, ExportMeasure, ExportTrial, measure_exports
from revarb.experiments.export_targets import ExportLimits, Rows, export_grid, list_export_targets
from revarb.experiments.field_targets import Target, state_targets
from revarb.models.fitted_rgp import FittedRGP
from revarb.report.tables import Grid

NOTES = (
    "difference: largest one to simulate(u, 'mean') over the test part, cold start, in standard deviations of the "
    "output in the training part.",
    "µs per step: one call per step, in C from C, else from Python with NumPy arrays in and out; the FMU by FMPy. µs "
    "per step of a run: all steps in one call; of the JAX step, simulate. The fastest of many passes counts.",
    "kB: the files of the export; beside the JAX step, the model file. JAX step: the compiled step that revarb.Live "
    "and simulate run, without their checks and scaling, the trained layers an argument; with a fixed model they are "
    "constants of the program.",
)


@dataclass(frozen=True)
class ExportRecord:
    """A benchmark of the table, and the fields of RGP that are its own."""

    benchmark: Benchmark
    model: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the benchmark."""
        return self.benchmark.name


@dataclass(frozen=True, eq=False)
class ExportPart(Part):
    """Results on one data set."""

    rows: list[dict[str, Any]]

    def grids(self) -> list[Grid]:
        """Every format."""
        first = self.rows[0]
        size = f"{first['inputs']} input(s), {first['outputs']} output(s), {first['states']} states"
        return [export_grid(f"{first['dataset']}: {size}", self.rows)]


@dataclass(frozen=True, eq=False)
class ExportSummary(Part):
    """Which targets are met. Its rows are those of the other parts, so it adds none."""

    targets: Sequence[Target]

    @property
    def rows(self) -> list[dict[str, Any]]:  # pyright: ignore[reportIncompatibleVariableOverride] (read only)
        """Nothing to write."""
        return []

    def grids(self) -> list[Grid]:
        """None: the targets are sentences."""
        return []

    def sentences(self) -> list[str]:
        """How many targets are met, and the missed ones by name."""
        return state_targets(self.targets)


@dataclass(frozen=True)
class ExportTable(Experiment[Part]):
    """The experiment with the settings of export.toml."""

    name: ClassVar[str] = "export"
    protocol: ClassVar[str] = "mean-only run over the test part, cold start, raw units; models of Table 1, seed 0"

    title: str
    passes: int
    timed_rows: int
    model: Mapping[str, Any]
    limits: ExportLimits
    records: tuple[ExportRecord, ...]

    def spec(self, record: ExportRecord, lags: int) -> RGP:
        """The model of a record."""
        return RGP.from_dict({**self.model, **record.model, "lags": lags, "input_lags": lags})

    def only(self, names: Sequence[str]) -> "ExportTable":
        """The same with some of the records."""
        return replace(self, records=select_records(self.records, names))

    def count_steps(self, seeds: int) -> int:
        """Number of fits: seeds make no difference to an export, so there is one for each record."""
        return len(self.records)

    def run(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[Part]:
        """Run the records one after the other, in this process: others beside it would disturb the times."""
        rows = []
        for record in self.records:
            part = ExportPart(self._run_record(record))
            report(record.name)
            rows += part.rows
            yield part
        yield self.summarise(rows)

    def _run_record(self, record: ExportRecord) -> list[dict[str, Any]]:
        split, began = record.benchmark.load(seed=0), time.perf_counter()
        model = raise_if_interrupted(self.spec(record, split.lags).fit(split.train, seed=0))
        fit_seconds = time.perf_counter() - began
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            # True of Actuator's test part, and said by each of the runs.
            warnings.filterwarnings("ignore", message=".* leaves its training range")
            measures = measure_exports(ExportTrial(model, split.test.u, Path(folder), self.timed_rows, self.passes))
            expected = model.simulate(split.test.u, "mean").mean
        common = {**_describe(model, split, record.name), "fit_seconds": fit_seconds}
        return [{**common, "format": kind, **_score(model, expected, measures, kind)} for kind in measures]

    def summarise(self, rows: Rows) -> ExportSummary:
        """The targets of rows of this table."""
        return ExportSummary(list_export_targets(rows, self.limits))

    def notes(self, seeds: int) -> list[str]:
        """The protocol, and how to read the tables."""
        return [f"protocol: {self.protocol}", *NOTES]


def _describe(model: FittedRGP, split: Split[Any], name: str) -> dict[str, Any]:
    return {
        "dataset": name,
        "inputs": len(model.input_names),
        "outputs": len(model.output_names),
        "lags": model.order.lags,
        "states": len(model.step_state()),
        "rows": len(split.test),
        "seed": model.seed,
        "status": str(model.status),
    }


def _score(
    model: FittedRGP, expected: np.ndarray, measures: Mapping[str, ExportMeasure], kind: str
) -> dict[str, float | None]:
    own = measures[kind]
    return {
        "difference": float(np.max(np.abs(own.y - expected) / model.scaling.y_std)),
        "kilobytes": own.kilobytes,
        "microseconds": own.step,
        "run_microseconds": own.run,
        "speedup": measures[JAX].step / own.step,
    }


def load_export() -> ExportTable:
    """Load the experiment that ships with the package."""
    values = tomllib.loads(read_settings("export.toml"))
    records = tuple(
        ExportRecord(Benchmark(item["name"], item["name"]), item.get("model", {})) for item in values.pop("records")
    )
    return ExportTable(**{**values, "limits": ExportLimits(**values["limits"])}, records=records)
