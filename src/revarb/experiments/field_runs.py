"""Fits of a table of many records, one task each, in any order and in several sittings.

A finished fit is a line of a file: its rows are not computed again by the next call with the same file.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, delayed

from revarb.errors import InputError
from revarb.evaluation.comparison.comparison import Comparison, run_comparison
from revarb.experiments.benchmarks import Benchmark
from revarb.models.base import ModelSpec
from revarb.runtime.interrupts import ignore_interrupts


class Fit(NamedTuple):
    """One model with one seed on one record."""

    benchmark: Benchmark
    model: str
    seed: int

    @property
    def key(self) -> tuple[str, str, int]:
        """What identifies it in the file."""
        return self.benchmark.name, self.model, self.seed


@dataclass(frozen=True)
class RowsFile:
    """Finished fits, a JSON line each; without a path nothing is kept."""

    path: Path | None = None

    def read(self) -> dict[tuple[str, str, int], list[dict[str, Any]]]:
        """The rows of every finished fit; a last line that was cut off is ignored."""
        if self.path is None or not self.path.exists():
            return {}
        known = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
                known[entry["dataset"], entry["model"], entry["seed"]] = entry["rows"]
            except (ValueError, KeyError, TypeError):
                continue
        return known

    def append(self, fit: Fit, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add a finished fit."""
        if self.path is None:
            return
        dataset, model, seed = fit.key
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"dataset": dataset, "model": model, "seed": seed, "rows": list(rows)}) + "\n")
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror or error}") from None


def run_fits(
    fits: Sequence[Fit], models: Callable[[int], Mapping[str, ModelSpec]], skip: int, jobs: int
) -> Iterator[tuple[Fit, Comparison]]:
    """Run fits, in as many processes as `jobs`, in the order in which they finish."""
    if jobs == 1:
        yield from ((fit, _run(fit, models, skip)[1]) for fit in fits)
        return
    with ignore_interrupts():  # of the workers that are started here
        outcomes = Parallel(n_jobs=jobs, return_as="generator_unordered")(
            delayed(_run)(fit, models, skip) for fit in fits
        )
    yield from outcomes  # pyright: ignore[reportReturnType]


def _run(fit: Fit, models: Callable[[int], Mapping[str, ModelSpec]], skip: int) -> tuple[Fit, Comparison]:
    # A drawn benchmark has a record per seed.
    split = fit.benchmark.load(fit.seed if fit.benchmark.drawn else 0)
    chosen = {fit.model: models(split.lags)[fit.model]}
    scored_after = max(skip, split.skip)
    return fit, run_comparison([split.train], [split.test], chosen, [fit.seed], 1, scored_after, lambda run: None)
