"""Candidates on held-out blocks: their fits without each fold, and what these simulate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.errors import ComputationError, RevarbError, warn_user
from revarb.fitting.held_out import (
    FOLDS,
    LAST,
    HeldOut,
    compute_held_out_error,
    measure_block_errors,
    simulate_records,
)
from revarb.fitting.weight_path import ALL, WeightPath
from revarb.models.base import Fitted
from revarb.models.choice import format_error
from revarb.selection.candidates import CandidateKey, CandidatePath
from revarb.selection.schedule import FitJob, Scheduler

AHEAD = (1, 2, 3)  # steps from filtered states that are scored where no cold run follows the record
MAX_SPREAD = 1.5  # of outputs over the training inputs forwards and backwards, in standard deviations of the output


@dataclass(frozen=True, eq=False)
class CandidateResult:
    """A candidate with its models without each fold, and their error on every block (NaN where it was not scored)."""

    key: CandidateKey
    folds: Mapping[int, Any]
    errors: Float64[np.ndarray, " B"]  # of cold runs, or of predictions where no cold run follows the record
    seconds: float

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return self.key.name

    @property
    def path(self) -> CandidatePath | None:
        """Its configuration with its fits; None for a linear model."""
        return self.key.path

    @property
    def complete(self) -> bool:
        """Whether it was scored on all blocks."""
        return len(self.folds) == FOLDS


@dataclass(eq=False)
class Validation:
    """All fits without a fold that have been made so far, and what they are judged by."""

    held_out: HeldOut
    scheduler: Scheduler
    aside: HeldOut | None = None  # blocks of long records that no fit sees, for the bands
    paths: dict[FitJob, WeightPath] = field(default_factory=dict)
    failures: dict[CandidatePath, str] = field(default_factory=dict)
    left_out: set[FitJob] = field(default_factory=set)  # fits of members that failed

    def fit(self, jobs: Sequence[FitJob]) -> None:
        """Run the jobs that have not been done yet; a candidate that fails without a fold is left out."""
        done = self.paths.keys() | self.left_out
        wanted = [job for job in jobs if job not in done and job.path not in self.failures]
        for job, result in self.scheduler.run(wanted):
            if not isinstance(result, RevarbError):
                self.paths[job] = result
                self._say_finished(job)
            elif job.fold == ALL:  # the next best candidate is taken
                self.left_out.add(job)
                warn_user(f"{job.path.name} could not be fitted to all records and is left out: {result}")
            elif job.fold == LAST:  # the bands are those of the other blocks
                self.left_out.add(job)
            else:
                self.failures[job.path] = str(result)

    def _say_finished(self, job: FitJob) -> None:
        # A line for a path whose folds are all fitted, or that is fitted to all records.
        if job.fold == ALL:
            self.scheduler.progress.say(f"{job.label}: {self.paths[job].seconds:.1f} s")
        elif job.fold != LAST and all(FitJob(job.path, fold) in self.paths for fold in range(FOLDS)):
            results = self.score(job.path)
            error = min((compute_held_out_error(each.errors) for each in results), default=np.inf)
            seconds = results[0].seconds if results else 0.0
            said = f"held-out error {format_error(error)}, {seconds:.1f} s of fits"
            self.scheduler.progress.say(f"{job.path.label}: {said}")

    def score(self, path: CandidatePath) -> list[CandidateResult]:
        """The candidates of a path, one per weight that all of its fits have reached."""
        found = {job.fold: each for job, each in self.paths.items() if job.path == path and 0 <= job.fold < FOLDS}
        if not found or path in self.failures:
            return []
        reached = min(len(each.models) for each in found.values())
        seconds = sum(each.seconds for each in found.values())
        results = []
        for number, weight in enumerate(path.weights[:reached]):
            folds = {fold: each.models[number] for fold, each in found.items()}
            errors = measure_block_errors(folds, self.held_out)
            results.append(CandidateResult(path.at(weight), folds, errors, seconds))
        return results

    def get_model(self, key: CandidateKey, fold: int) -> Any:
        """The model of a candidate without a fold; None where its path was not fitted, or not up to its weight."""
        assert key.path is not None
        known = self.paths.get(FitJob(key.path, fold))
        number = key.path.weights.index(key.weight)
        return known.models[number] if known is not None and number < len(known.models) else None


def is_stable(result: CandidateResult, records: Sequence[Series]) -> bool:
    """Whether all of its models without a fold stay bounded."""
    return all(stays_bounded(model, records) for model in result.folds.values())


def stays_bounded(model: Any, records: Sequence[Series], scaling: Standardiser | None = None) -> bool:
    """Whether the training inputs, and then these in reverse, do not drive its outputs far beyond what was measured.

    Held-out errors do not show that. The run is twice as long, and the reversed inputs have the same size and spectrum,
    and a different order. Units are those of the model, or of `scaling`.
    """
    longer = [
        replace(record, u=np.concatenate([record.u, record.u[::-1]]), y=np.concatenate([record.y, record.y[::-1]]))
        for record in records
    ]
    if scaling is None:
        scaling = model.scaling if isinstance(model, Fitted) else Standardiser.from_records(records)
    return _measure_spread(model, longer, scaling) <= MAX_SPREAD


def _measure_spread(model: Any, records: Sequence[Series], scaling: Standardiser) -> float:
    # Largest root mean square over the outputs of z-scored runs; infinite where they diverge.
    with np.errstate(over="ignore", invalid="ignore"):
        joined = (np.concatenate(simulate_records(model, records)) - scaling.y_mean) / scaling.y_std
        spread = float(np.max(np.sqrt(np.mean(joined**2, axis=0))))
    return spread if np.isfinite(spread) else float("inf")


def can_predict(result: CandidateResult) -> bool:
    """Whether its models can predict; a user's own kind of model need not."""
    return all(hasattr(model, "predict") for model in result.folds.values())


def score_predictions(result: CandidateResult, held_out: HeldOut) -> CandidateResult:
    """The candidate with the errors of predictions 1 to 3 steps ahead from filtered states, in place of cold runs."""
    errors = np.full(len(held_out.blocks), np.nan)
    for fold, model in result.folds.items():
        squares = {
            number: _square_errors(model, held_out.records[number], held_out)
            for number in {block.record for block in held_out.blocks if block.fold == fold}
        }
        for number, block in enumerate(held_out.blocks):
            if block.fold == fold:
                errors[number] = np.sqrt(np.nanmean(squares[block.record][block.rows]))
    return replace(result, errors=errors)


def _square_errors(model: Any, record: Series, held_out: HeldOut) -> np.ndarray:
    # Mean over the numbers of steps; infinite where the filter diverges.
    try:
        paths = [model.predict(record, steps).mean for steps in AHEAD]
    except ComputationError:
        return np.full(record.y.shape, np.inf)
    return np.mean([((path - record.y) / held_out.scaling.y_std) ** 2 for path in paths], axis=0)
