"""Fits of candidates without each fold, and their errors on the stretches that the fold leaves out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64

from revarb.config.rgp import RGP
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import InputError, RevarbError
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.runtime.mesh import count_devices
from revarb.training.batched_paths import fit_paths_together
from revarb.training.candidates import Structure, describe_order
from revarb.training.choice_store import ChoiceStore
from revarb.training.fold_paths import ALL, FoldPath, fit_path
from revarb.training.problem import Report, mask_if_possible
from revarb.training.segments import Segment, can_start_late, cut_late_segments, cut_segments, measure_cold_runs
from revarb.training.solve import count_steps
from revarb.training.stretches import FOLDS, Stretch, mask_fold
from revarb.training.workers import (
    Outcome,
    TaskReport,
    is_cluster_set,
    run_in_processes,
    run_in_turn,
    stop_on_interrupt,
)


class HeldOut(NamedTuple):
    """What the candidates are judged by: stretches of the records, and the runs that lead to them."""

    records: tuple[Series, ...]
    stretches: tuple[Stretch, ...]
    segments: tuple[Segment, ...]  # every stretch, with a run from the beginning of its record
    late: tuple[Segment, ...]  # the stretches of second halves, with a run from a later start
    late_numbers: tuple[int, ...]  # which stretches these are
    scaling: Standardiser


def hold_out(records: Sequence[Series], stretches: Sequence[Stretch], settle: int) -> HeldOut | None:
    """Prepare the runs over stretches with measured outputs, which are assigned to the folds in turn.

    A run from a later start needs `settle` rows before its stretch; in a short record there is none.
    None where there are too few of them, or where a fold leaves too little: a record, or an output that does not move.
    """
    measured = [each for each in stretches if np.isfinite(records[each.record].y[each.rows]).any()]
    measured = tuple(each._replace(fold=position % FOLDS) for position, each in enumerate(measured))
    if len(measured) < FOLDS:
        return None
    try:
        for fold in range(FOLDS):
            Standardiser.from_records(mask_fold(records, measured, fold))
    except InputError:
        return None
    late = [number for number, each in enumerate(measured) if can_start_late(records, each, settle)]
    return HeldOut(
        tuple(records),
        measured,
        tuple(cut_segments(records, measured)),
        tuple(cut_late_segments(records, [measured[number] for number in late])),
        tuple(late),
        Standardiser.from_records(records),
    )


def leave_out_suspects(held_out: HeldOut) -> HeldOut:
    """The same runs without the samples that look like outliers: none can be simulated, and one decides an error.

    Unchanged where nothing else of a stretch was measured.
    """
    trusted, stretches = mask_if_possible(held_out.records), held_out.stretches
    if not all(np.isfinite(trusted[each.record].y[each.rows]).any() for each in stretches):
        return held_out
    late = [stretches[number] for number in held_out.late_numbers]
    return held_out._replace(
        segments=tuple(cut_segments(trusted, stretches)),
        late=tuple(cut_late_segments(trusted, late)),
        scaling=Standardiser.from_records(trusted),
    )


@dataclass(frozen=True, eq=False)
class Scored:
    """A candidate with its error on every stretch (NaN where it was not scored) and its models without each fold."""

    name: str
    complexity: tuple[Any, ...]
    errors: Float64[np.ndarray, " S"]
    seconds: float
    folds: dict[int, FittedRGP] | dict[int, FittedARX]
    structure: Structure | None = None  # None: linear alone
    weight: float = 0.0
    order: Order | None = None  # of a linear model

    @property
    def complete(self) -> bool:
        """Whether it was scored on all stretches."""
        return len(self.folds) == FOLDS

    @property
    def delay(self) -> int:
        """Input delay of its models."""
        return next(iter(self.folds.values())).order.input_delay


class Unit(NamedTuple):
    """A path of fits: a structure without one fold, or to all records (`ALL`), alone or together with others."""

    structure: Structure
    fold: int
    together: bool = False

    @property
    def spec(self) -> RGP:
        """The configuration of its fits; those that advance with the fit to all records have its iterations."""
        return self.structure.spec if self.together or self.fold == ALL else self.structure.trial

    @property
    def name(self) -> str:
        """Its name in the store of unfinished choices."""
        return f"{self.structure.key}.{self.fold}{'.together' if self.together else ''}"

    @property
    def words(self) -> str:
        """What it is, for a progress bar."""
        part = "all records" if self.fold == ALL else f"fold {self.fold + 1}"
        return f"{self.structure.name}, {describe_order(self.structure.spec)}, {part}"


class Progress:
    """Counts the steps of all units that are planned, for one progress bar; Ctrl-C is seen here."""

    def __init__(self, update: Callable[[int, str], None], pressed: Sequence[int]):
        self._update, self.pressed = update, pressed
        self._done = 0

    def make_report(self, units: Sequence[Unit]) -> TaskReport:
        """A report for units that run side by side."""
        steps = [0] * len(units)

        def report(number: int, done: int, text: str) -> None:
            self._done += done - steps[number]
            steps[number] = done
            self._update(self._done, units[number].words)

        return report

    def make_final_report(self, name: str) -> Report:
        """A report for the fit of the candidate that was taken; Ctrl-C stops it."""

        def report(steps: int, text: str) -> None:
            self._update(self._done + steps, f"fitting {name}")
            if self.pressed:
                raise KeyboardInterrupt

        return report

    def skip_folds(self, structures: Sequence[Structure]) -> None:
        """Count the other folds of structures that were dropped after the first one."""
        self.skip([Unit(structure, fold) for structure in structures for fold in range(1, FOLDS)])

    def skip(self, units: Sequence[Unit]) -> None:
        """Count units that are not needed any more."""
        self._done += sum(count_steps(unit.spec) for unit in units)


@dataclass(eq=False)
class Trials:
    """All fits without a fold that have been made so far."""

    held_out: HeldOut
    seed: int
    workers: int
    store: ChoiceStore
    progress: Progress
    whole: bool = True  # whether the held-out stretches are those of all records, and not of parts of long ones
    paths: dict[Unit, FoldPath] = field(default_factory=dict)
    failures: dict[Structure, str] = field(default_factory=dict)

    def run(self, fits: Sequence[tuple[Structure, int]], likely: Sequence[Structure] = ()) -> None:
        """Fit structures without folds, as far as that has not been done; a structure that fails is left out.

        `likely` are those that may be fitted next: for an accelerator their programs are prepared meanwhile.
        """
        wanted = [Unit(structure, fold, self.together) for structure, fold in fits]
        wanted = [unit for unit in wanted if unit not in self.paths and unit.structure not in self.failures]
        for unit in wanted:
            if known := self.store.read(unit.name):
                self.paths[unit] = FoldPath(tuple(known[0]), known[1])
                self.progress.skip([unit])
        units = [unit for unit in wanted if unit not in self.paths]
        for number, result in self._fit(units, likely) if units else ():
            unit = units[number]
            if isinstance(result, RevarbError):
                if unit.fold != ALL:  # a last fit that fails is tried again, and the next best candidate taken
                    self.failures[unit.structure] = str(result)
            elif result.models:
                self.paths[unit] = result
                self.store.write(unit.name, result.models, result.seconds)

    @property
    def together(self) -> bool:
        """Whether all fits of a structure advance together: on an accelerator that no one else shares."""
        return jax.default_backend() != "cpu" and count_devices() == 1 and not is_cluster_set()

    @property
    def members(self) -> list[int]:
        """The folds whose fits advance together; the fit to all records is one of them where it has their shape."""
        return [*range(FOLDS), ALL] if self.whole else list(range(FOLDS))

    @property
    def finished(self) -> dict[Structure, FoldPath]:
        """The fits to all records that were made with those of the folds."""
        return {unit.structure: path for unit, path in self.paths.items() if unit.fold == ALL}

    def _fit(self, units: Sequence[Unit], likely: Sequence[Structure]) -> Iterator[Outcome]:
        held, report, pressed = self.held_out, self.progress.make_report(units), self.progress.pressed
        if self.together:
            return self._fit_together(units, likely, stop_on_interrupt(report, pressed))
        tasks = [(unit.spec, held.records, held.stretches, unit.fold, self.seed) for unit in units]
        alone = not is_cluster_set() and (self.workers == 1 or len(units) == 1)
        if alone or count_devices() > 1:
            return run_in_turn(fit_path, tasks, report, pressed)
        return run_in_processes(fit_path, tasks, self.workers, report, pressed, lost="fits of candidates")

    def _fit_together(
        self, units: Sequence[Unit], likely: Sequence[Structure], report: TaskReport
    ) -> Iterator[Outcome]:
        fits = [(unit.spec, unit.fold) for unit in units]
        later = [(structure.spec, fold) for structure in likely for fold in self.members]
        return fit_paths_together(fits, self.held_out.records, self.held_out.stretches, self.seed, report, later)

    def score(self, structure: Structure) -> list[Scored]:
        """The candidates of a structure, one per weight that all of its fits have reached."""
        paths = {
            unit.fold: path for unit, path in self.paths.items() if unit.structure == structure and unit.fold != ALL
        }
        if not paths or structure in self.failures:
            return []
        reached = min(len(path.models) for path in paths.values())
        seconds = sum(path.seconds for path in paths.values())
        return [
            Scored(
                structure.describe(weight),
                structure.complexity(weight),
                measure_folds({fold: path.models[number] for fold, path in paths.items()}, self.held_out),
                seconds,
                {fold: path.models[number] for fold, path in paths.items()},
                structure,
                weight,
            )
            for number, weight in enumerate(structure.weights[:reached])
        ]


def measure_folds(models: Mapping[int, FittedRGP | FittedARX], held_out: HeldOut) -> Float64[np.ndarray, " S"]:
    """Errors of cold runs on every stretch by the model that was fitted without it; NaN where there is none yet.

    Where a stretch has a run from a later start too, the geometric mean of both.
    """
    runs, count = (*held_out.segments, *held_out.late), len(held_out.segments)
    errors = np.full(len(runs), np.nan)
    for fold, model in models.items():
        # All runs every time, so that the folds share one compiled program.
        measured = measure_cold_runs(model.chain, model.preprocessor, held_out.scaling, runs)
        inside = [segment.fold == fold for segment in runs]
        errors[inside] = measured[inside]
    combined, late = errors[:count], list(held_out.late_numbers)
    combined[late] = np.sqrt(combined[late]) * np.sqrt(errors[count:])
    return combined
