"""Scheduling of fits without deciding about them: in turn, in processes, on a cluster, or batched on an accelerator.

Finished fits are stored, so that a choice that was killed or interrupted is resumed from them.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax

from revarb.data.series import Series
from revarb.errors import RevarbError
from revarb.fitting.batched_fits import fit_paths_batched
from revarb.fitting.held_out import FOLDS, LAST, HeldOutBlock, cut_out_fold, mask_fold
from revarb.fitting.problem import Report
from revarb.fitting.weight_path import ALL, WeightPath, fit_whole_path
from revarb.models.model_file import load, save_model
from revarb.models.recipe import Status
from revarb.models.rgp import RGP
from revarb.runtime.files import write_atomic
from revarb.runtime.machine import count_devices
from revarb.runtime.unfinished import UnfinishedParts
from revarb.runtime.workers import Outcome, TaskReport, is_cluster_set, run_in_processes, run_in_turn, stop_on_interrupt
from revarb.selection.candidates import CandidatePath


class FitJob(NamedTuple):
    """The fits of a candidate without one fold, to all records (`ALL`), or to their first two thirds (`LAST`)."""

    path: CandidatePath
    fold: int

    @property
    def label(self) -> str:
        """What it is, for a progress bar."""
        about = {ALL: "all records", LAST: "first two thirds"}.get(self.fold, f"fold {self.fold + 1}")
        return f"{self.path.label}, {about}"


class Progress:
    """Counts finished fits for one progress bar; Ctrl-C is seen here."""

    def __init__(self, update: Callable[[int, str], None], pressed: Sequence[int]):
        self._update, self.pressed = update, pressed
        self._done, self._running = 0, ""

    def make_report(self, jobs: Sequence[FitJob]) -> TaskReport:
        """A report for jobs that run side by side: which one is at work."""

        def report(number: int, done: int, text: str) -> None:
            self._running = jobs[number].label
            self._update(self._done, self._running)

        return report

    def count(self, jobs: int = 1) -> None:
        """Count finished fits."""
        self._done += jobs
        self._update(self._done, self._running)

    def say(self, text: str) -> None:
        """Write a line that stays: what was finished, and how long it took."""
        self._update(self._done, f"{text}\n")


@dataclass(frozen=True, eq=False)
class Scheduler:
    """Runs jobs on the records, wherever there is something to run them on."""

    records: Sequence[Series]  # all of them
    parts: Sequence[Series]  # those that fits without a fold see: the records, or parts of long ones
    blocks: Sequence[HeldOutBlock]  # of the parts
    seed: int
    workers: int
    store: UnfinishedParts
    digest: str  # of the records, the seed and the versions: the names of stored fits begin with it
    progress: Progress

    @property
    def uses_all_records(self) -> bool:
        """Whether the parts are the records."""
        return [*map(id, self.parts)] == [*map(id, self.records)]

    @property
    def batched(self) -> bool:
        """Whether all fits of a path advance together: on an accelerator that no one else shares."""
        return jax.default_backend() != "cpu" and count_devices() == 1 and not is_cluster_set()

    @property
    def batch(self) -> list[int]:
        """The folds whose fits advance together; the fit to all records is one of them where it has their shape."""
        return [*range(FOLDS), ALL] if self.uses_all_records else list(range(FOLDS))

    def run(self, jobs: Sequence[FitJob]) -> Iterator[tuple[FitJob, WeightPath | RevarbError]]:
        """Run the jobs, as far as they are not stored; yield their results as they finish.

        After Ctrl-C those that were not finished are missing.
        """
        missing = []
        for job in jobs:
            if (known := self._read(job)) is None:
                missing.append(job)
            else:
                self.progress.count()
                yield job, known
        batched = [job for job in missing if self.batched and job.path.has_weights and job.fold in (*self.batch, LAST)]
        alone = [job for job in missing if job not in batched]
        for part, start in ((batched, self._run_batched), (alone, self._run_alone)):
            for number, result in start(part) if part else ():
                self.progress.count()
                if isinstance(result, RevarbError):
                    yield part[number], result
                elif result.models:
                    self._write(part[number], result)
                    yield part[number], result

    def _name(self, job: FitJob) -> str:
        return f"{self.digest}.{job.path.key}.{job.fold}{'.batched' if self.batched else ''}.json"

    def _read(self, job: FitJob) -> WeightPath | None:
        return self.store.read(self._name(job), read_path) if job.path.has_weights else None

    def _write(self, job: FitJob, found: WeightPath) -> None:
        if job.path.has_weights:
            self.store.write(self._name(job), partial(write_path, found))

    def _run_batched(self, jobs: Sequence[FitJob]) -> Iterator[Outcome]:
        # Fits that advance with the one to all records have its iterations.
        report = stop_on_interrupt(self.progress.make_report(jobs), self.progress.pressed)
        fits = [(job.path.spec, job.fold) for job in jobs]
        return fit_paths_batched(fits, self.parts, self.blocks, self.seed, report)

    def _run_alone(self, jobs: Sequence[FitJob]) -> Iterator[Outcome]:
        report, pressed = self.progress.make_report(jobs), self.progress.pressed
        tasks = [self._make_task(job) for job in jobs]
        in_turn = not is_cluster_set() and (self.workers == 1 or len(jobs) == 1)
        if in_turn or count_devices() > 1:
            return run_in_turn(_fit_job, tasks, report, pressed)
        return run_in_processes(_fit_job, tasks, self.workers, report, pressed, lost="fits of candidates")

    def _make_task(self, job: FitJob) -> tuple[Any, ...]:
        if job.fold == ALL:
            return job.path.spec, self.records, (), ALL, self.seed
        return job.path.trial_spec, self.parts, self.blocks, job.fold, self.seed


def _fit_job(
    spec: Any, records: Sequence[Series], blocks: Sequence[HeldOutBlock], fold: int, seed: int, report: Report
) -> WeightPath:
    if CandidatePath(spec, "").has_weights:
        return fit_whole_path(spec, records, blocks, fold, seed, report)
    if fold == ALL:
        return fit_once(spec, records, seed, report)
    leave_out = mask_fold if isinstance(spec, RGP) else cut_out_fold
    return fit_once(spec, leave_out(records, blocks, fold), seed, report)


def fit_once(spec: Any, records: Sequence[Series], seed: int, report: Report) -> WeightPath:
    """Fit a configuration of any kind; no model after Ctrl-C."""
    started = time.perf_counter()
    try:
        report(0, "")
        uncalibrated = replace(spec, calibrate=False) if isinstance(spec, RGP) else spec
        model = uncalibrated.fit(list(records), seed=seed)
        report(1, "")
    except KeyboardInterrupt:
        return WeightPath((), time.perf_counter() - started)
    interrupted = getattr(model, "status", None) is Status.INTERRUPTED
    return WeightPath(() if interrupted else (model,), time.perf_counter() - started)


def write_path(path: WeightPath, file: Path) -> None:
    """Write the models of a path, and when these are complete the file that names them."""
    for number, model in enumerate(path.models):
        save_model(model, file.with_suffix(f".{number}.rgp"))
    write_atomic(file, json.dumps({"models": len(path.models), "seconds": path.seconds}).encode())


def read_path(file: Path) -> WeightPath:
    """The path that `write_path` wrote to this file."""
    entry = json.loads(file.read_text())
    models = [load(file.with_suffix(f".{number}.rgp")) for number in range(entry["models"])]
    return WeightPath(tuple(models), float(entry["seconds"]))
