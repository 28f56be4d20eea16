"""A trained model in every format of `model.export`: difference to its own mean-only run, size, and time per step.

The models are those of Table 1, fitted once with seed 0.
"""

import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import revarb
from studies.records import Benchmark, raise_if_interrupted
from studies.study import Fit, Result, Study
from studies.tables import Grid, Row, Rows, Target, by_record
from studies.timed_exports import C_DOUBLE, C_FLOAT, EXPORTED, JAX, Trial, measure_exports

MODEL = {"hidden": 2, "inducing": 100, "calibrate": False}  # the mean-only run does not depend on a calibration
RECORDS: Mapping[str, Mapping[str, Any]] = {  # with the fields of RGP that are their own
    "drive": {},
    "actuator": {},
    "cstr": {"latent_dim": 2},  # as many latent states as outputs
    "winding": {"latent_dim": 2},
}
PASSES = 150  # over 100 rows of the test part; the fastest counts, and a long one is always disturbed by other programs

# What the table must show. Differences are in standard deviations of the output in the training part.
DOUBLE, SINGLE = 1e-9, 1e-3  # the largest difference to `simulate`
FASTER = 20.0  # time of a compiled JAX step called from Python / time of a step in C, double


class Export(Study):
    """Four records; seeds make no difference to an export."""

    name, title = "export", "Exports: difference to simulate, size, time per step"
    protocol = "mean-only run over the test part, cold start, raw units; models of Table 1, seed 0"
    columns = ("dataset", "format", "rows", "seed", "difference", "kilobytes", "microseconds", "speedup", "status")
    notes = (
        "difference: largest one to simulate(u, 'mean') over the test part, cold start, in standard deviations of the "
        "output in the training part.",
        "µs per step: one call per step, in C from C, else from Python with NumPy arrays in and out; the FMU by FMPy. "
        "µs per step of a run: all steps in one call; of the JAX step, simulate. The fastest of many passes counts.",
        "kB: the files of the export; beside the JAX step, the model file. JAX step: the compiled step that "
        "revarb.Live and simulate run, without their checks and scaling, the trained layers an argument; with a fixed "
        "model they are constants of the program.",
    )
    default_seeds = 1
    concurrent = False  # others beside it would disturb the times
    records, passes = RECORDS, PASSES

    def load(self, name: str) -> tuple[revarb.Series, revarb.Series, revarb.RGP]:
        """Training part, test part and model of a record."""
        split = Benchmark(name).load(0)
        return split.train, split.test, revarb.RGP(split.lags, split.lags, **MODEL, **self.records[name])

    def list_fits(self) -> list[Fit]:
        """A fit per record."""
        return [Fit(name, "REVARB", 0) for name in self.records]

    def run_fit(self, fit: Fit) -> Result:
        """Fit a model, export it to all formats and measure these."""
        (train, test, spec), begin = self.load(fit.dataset), time.perf_counter()
        model = raise_if_interrupted(spec.fit(train, seed=0))
        common = {
            "dataset": fit.dataset,
            "inputs": len(model.input_names),
            "outputs": len(model.output_names),
            "lags": spec.lags,
            "states": len(model.step_state()),
            "rows": len(test),
            "seed": model.seed,
            "status": str(model.status),
            "fit_seconds": time.perf_counter() - begin,
        }
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* leaves its training range")  # true of Actuator's test part
            measures = measure_exports(Trial(model, test.u, Path(folder), self.passes))
            expected = model.simulate(test.u, "mean").mean
        std = train.y.std(axis=0)
        return Result(
            [
                {
                    **common,
                    "format": kind,
                    "difference": float(np.max(np.abs(own.y - expected) / std)),
                    "kilobytes": own.kilobytes,
                    "microseconds": own.step,
                    "run_microseconds": own.run,
                    "speedup": measures[JAX].step / own.step,
                }
                for kind, own in measures.items()
            ]
        )

    def tables(self, rows: Rows) -> list[Grid]:
        """Every record with a row per format."""
        grids, columns = [], ("format", "difference", "kB", "µs per step", "µs per step of a run", "JAX / it")
        for name, own in by_record(rows).items():
            size = "{inputs} input(s), {outputs} output(s), {states} states".format(**own[0])
            grids.append(Grid(f"{name}: {size}", columns, [export_cells(row) for row in own]))
        return grids

    def targets(self, rows: Rows) -> list[Target]:
        """The outputs of `simulate` in every format, and a step in C that is fast."""
        return [target for name, own in by_record(rows).items() for target in _judge(name, own)]


def export_cells(row: Row) -> list[str]:
    """Format, difference, size, times, and how many times faster than a JAX step."""
    numbers = (row[name] for name in ("kilobytes", "microseconds", "run_microseconds", "speedup"))
    return [row["format"], f"{row['difference']:.1e}", *("–" if each is None else f"{each:.3g}" for each in numbers)]


def _judge(name: str, rows: Rows) -> Iterator[Target]:
    own = {row["format"]: row for row in rows}
    for kind in (kind for kind in EXPORTED if kind in own):
        limit, found = SINGLE if kind == C_FLOAT else DOUBLE, own[kind]["difference"]
        yield Target(f"{name}, {kind}: difference at most {limit:g}", found <= limit, f"{found:.1e}")
    if C_DOUBLE in own and JAX in own:
        ratio, what = own[C_DOUBLE]["speedup"], f"C at least {FASTER:g} × faster than a JAX step"
        yield Target(f"{name}: {what}", ratio >= FASTER, f"{ratio:.1f} ×")


STUDY = Export
