"""Fits of a table of many records, one task each, in any order and in several sittings.

A finished fit is a line of a file: its rows are not computed again by the next call with the same file.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from joblib import Parallel, delayed

from revarb.errors import ComputationError, InputError, warn_user
from revarb.evaluation.comparison.comparison import Comparison, run_comparison
from revarb.experiments.benchmarks import Benchmark
from revarb.models.base import ModelSpec
from revarb.runtime.interrupts import ignore_interrupts
from revarb.runtime.machine import collect_versions

Key = tuple[str, str, int]
"""What identifies a fit in the file: the name of its record, its model and its seed."""


@runtime_checkable
class Keyed(Protocol):
    """A fit of any table."""

    @property
    def key(self) -> Key:
        """What identifies it in the file."""
        ...


AnyFit = TypeVar("AnyFit", bound=Keyed)
Result = TypeVar("Result")


class Fit(NamedTuple):
    """One model with one seed on one record."""

    benchmark: Benchmark
    model: str
    seed: int

    @property
    def key(self) -> Key:
        """What identifies it in the file."""
        return self.benchmark.name, self.model, self.seed


@dataclass(frozen=True)
class RowsFile:
    """Finished fits, a JSON line each; without a path nothing is kept."""

    path: Path | None = None

    def read(self) -> dict[Key, list[dict[str, Any]]]:
        """The rows of every fit that this version of revarb finished; a last line that was cut off is ignored."""
        if self.path is None or not self.path.exists():
            return {}
        known, others, version = {}, 0, collect_versions()["revarb"]
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
                key, rows = (entry["dataset"], entry["model"], entry["seed"]), entry["rows"]
            except (ValueError, KeyError, TypeError):
                continue
            if entry.get("revarb") == version:
                known[key] = rows
            else:
                others += 1
        if others:
            warn_user(f"{self.path}: {others} fit(s) of another version of revarb than {version} are ignored")
        return known

    def append(self, fit: Keyed, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add a finished fit."""
        if self.path is None:
            return
        dataset, model, seed = fit.key
        source = {"dataset": dataset, "model": model, "seed": seed, "revarb": collect_versions()["revarb"]}
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**source, "rows": list(rows)}) + "\n")
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror or error}") from None


def run_fits(fits: Sequence[AnyFit], run: Callable[[AnyFit], Result], jobs: int) -> Iterator[tuple[AnyFit, Result]]:
    """Run fits, in as many processes as `jobs`, in the order in which they finish.

    Raises ComputationError if one of the processes is killed.
    """
    if jobs == 1:
        yield from (_run(fit, run) for fit in fits)
        return
    left = {fit.key for fit in fits}
    try:
        with ignore_interrupts():  # of the workers that are started here
            outcomes = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(_run)(fit, run) for fit in fits)
        for fit, result in outcomes:  # pyright: ignore[reportGeneralTypeIssues]
            left.discard(fit.key)
            yield fit, result
    except BrokenProcessPool:
        warn_user(
            "without a result: " + "; ".join(f"{name}, {model}, seed {seed}" for name, model, seed in sorted(left))
        )
        raise ComputationError(
            f"a worker process died (out of memory?) with {len(left)} of {len(fits)} fits to go; use fewer jobs, and "
            "the same --rows file to keep the finished ones"
        ) from None


def compare_fit(fit: Fit, models: Callable[[int], Mapping[str, ModelSpec]], skip: int) -> Comparison:
    """Fit and score; `models` gets the lags of the record, at least the first `skip` rows are not scored."""
    # A drawn benchmark has a record per seed.
    split = fit.benchmark.load(fit.seed if fit.benchmark.drawn else 0)
    chosen = {fit.model: models(split.lags)[fit.model]}
    scored_after = max(skip, split.skip)
    return run_comparison([split.train], [split.test], chosen, [fit.seed], 1, scored_after, lambda run: None)


def _run(fit: AnyFit, run: Callable[[AnyFit], Result]) -> tuple[AnyFit, Result]:
    return fit, run(fit)
