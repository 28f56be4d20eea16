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
from revarb.fitting.held_out import FOLDS, HeldOutBlock, cut_out_fold, mask_fold
from revarb.fitting.problem import Report
from revarb.fitting.weight_path import ALL, WeightPath, fit_whole_path
from revarb.models.model_file import load, save_model
from revarb.models.rgp import RGP
from revarb.models.status import Status
from revarb.runtime.files import write_atomic
from revarb.runtime.machine import count_devices
from revarb.runtime.unfinished import UnfinishedParts
from revarb.runtime.workers import Outcome, TaskReport, is_cluster_set, run_in_processes, run_in_turn, stop_on_interrupt
from revarb.selection.candidates import CandidatePath, describe_order


class FitJob(NamedTuple):
    """The fits of a candidate without one fold, or to all records (`ALL`)."""

    path: CandidatePath
    fold: int

    @property
    def label(self) -> str:
        """What it is, for a progress bar."""
        spec, part = self.path.spec, "all records" if self.fold == ALL else f"fold {self.fold + 1}"
        order = f", {describe_order(spec)}" if isinstance(spec, RGP) else ""
        return f"{self.path.name}{order}, {part}"


class Progress:
    """Counts the steps of all jobs that are planned, for one progress bar; Ctrl-C is seen here."""

    def __init__(self, update: Callable[[int, str], None], pressed: Sequence[int]):
        self._update, self.pressed = update, pressed
        self._done = 0

    def make_report(self, jobs: Sequence[FitJob]) -> TaskReport:
        """A report for jobs that run side by side."""
        steps = [0] * len(jobs)

        def report(number: int, done: int, text: str) -> None:
            self._done += done - steps[number]
            steps[number] = done
            self._update(self._done, jobs[number].label)

        return report

    def make_final_report(self, name: str) -> Report:
        """A report for the fit of the candidate that was taken; Ctrl-C stops it."""

        def report(steps: int, text: str) -> None:
            self._update(self._done + steps, f"fitting {name}")
            if self.pressed:
                raise KeyboardInterrupt

        return report

    def skip(self, jobs: Sequence[FitJob]) -> None:
        """Count jobs that are not needed any more."""
        self._done += sum(job.path.steps for job in jobs)


@dataclass(frozen=True, eq=False)
class Scheduler:
    """Runs jobs on the records, wherever there is something to run them on."""

    records: Sequence[Series]
    blocks: Sequence[HeldOutBlock]
    seed: int
    workers: int
    store: UnfinishedParts
    digest: str  # of the records, the seed and the versions: the names of stored fits begin with it
    progress: Progress
    uses_all_records: bool = True  # the blocks are those of all records, and not of parts of long ones

    @property
    def batched(self) -> bool:
        """Whether all fits of a path advance together: on an accelerator that no one else shares."""
        return jax.default_backend() != "cpu" and count_devices() == 1 and not is_cluster_set()

    @property
    def batch(self) -> list[int]:
        """The folds whose fits advance together; the fit to all records is one of them where it has their shape."""
        return [*range(FOLDS), ALL] if self.uses_all_records else list(range(FOLDS))

    def run(
        self, jobs: Sequence[FitJob], likely: Sequence[CandidatePath] = ()
    ) -> Iterator[tuple[FitJob, WeightPath | RevarbError]]:
        """Run the jobs, as far as they are not stored; yield their results as they finish.

        After Ctrl-C those that were not finished are missing. `likely` are paths that may be fitted next: for an
        accelerator their programs are prepared meanwhile.
        """
        missing = []
        for job in jobs:
            if (known := self._read(job)) is None:
                missing.append(job)
            else:
                self.progress.skip([job])
                yield job, known
        together = [job for job in missing if self.batched and job.path.has_weights]
        alone = [job for job in missing if job not in together]
        for part, start in ((together, self._run_batched), (alone, self._run_alone)):
            for number, result in start(part, likely) if part else ():
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

    def _run_batched(self, jobs: Sequence[FitJob], likely: Sequence[CandidatePath]) -> Iterator[Outcome]:
        # Fits that advance with the one to all records have its iterations.
        report = stop_on_interrupt(self.progress.make_report(jobs), self.progress.pressed)
        fits = [(job.path.spec, job.fold) for job in jobs]
        return fit_paths_batched(fits, self.records, self.blocks, self.seed, report)

    def _run_alone(self, jobs: Sequence[FitJob], likely: Sequence[CandidatePath]) -> Iterator[Outcome]:
        report, pressed = self.progress.make_report(jobs), self.progress.pressed
        specs = [job.path.spec if job.fold == ALL else job.path.trial for job in jobs]
        tasks = [(spec, self.records, self.blocks, job.fold, self.seed) for job, spec in zip(jobs, specs, strict=True)]
        in_turn = not is_cluster_set() and (self.workers == 1 or len(jobs) == 1)
        if in_turn or count_devices() > 1:
            return run_in_turn(_fit_job, tasks, report, pressed)
        return run_in_processes(_fit_job, tasks, self.workers, report, pressed, lost="fits of candidates")


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
