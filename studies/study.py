"""The skeleton of a study: what it fits, rows that survive a crash, tables, targets, and the files that are written.

A study is a subclass of `Study` in a script of its own, with its settings at the top and its figure at the bottom.
"""

import argparse
import json
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from html import escape
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from joblib import Parallel, delayed
from matplotlib.figure import Figure
from rich.console import Console

import revarb
from studies.output import (
    describe_run,
    encode_figure,
    figure_html,
    grid_html,
    make_folder,
    make_page,
    write_file,
    write_results,
)
from studies.tables import Grid, Row, Rows, Target, list_failures, names_of, target_grid, terminal_table

PROTOCOL = "free simulation of the test part, cold start, scored after L + L_u samples, raw units"
ACCURACY = ("dataset", "model", "method", "start", "skip", "seed", "rmse", "nrmse", "nlpd", "coverage95", "status")
TIMES = ("fit_seconds", "simulate_seconds")


class Fit(NamedTuple):
    """A task of a study, and its key in the file of finished rows: one model with one seed on one record."""

    dataset: str
    model: str
    seed: int | None = 0
    case: str = ""  # what else tells tasks apart

    def __str__(self) -> str:
        seed = "" if self.seed is None else f"seed {self.seed}"
        return f"{self.dataset}: " + ", ".join(part for part in (self.model, self.case, seed) if part)


class Result(NamedTuple):
    """What a task gave: its rows, and what figures need of it, which is not kept on disk."""

    rows: Sequence[Row]
    drawn: Any = None


class Study(ABC):
    """A study with a number of seeds, in a number of processes."""

    name: ClassVar[str]
    title: ClassVar[str]
    protocol: ClassVar[str] = PROTOCOL
    notes: ClassVar[Sequence[str]] = ()
    columns: ClassVar[Sequence[str]] = ACCURACY  # that every row must have
    lists: ClassVar[Sequence[str]] = ()  # columns whose cells may be lists
    default_seeds: ClassVar[int] = 5
    concurrent: ClassVar[bool] = True  # tasks run beside each other; otherwise each one gets all processes

    def __init__(self, seeds: int | None = None, jobs: int = 1):
        self.seeds, self.jobs = self.default_seeds if seeds is None else seeds, jobs

    @abstractmethod
    def list_fits(self) -> list[Fit]:
        """All tasks, in the order of the rows."""

    @abstractmethod
    def run_fit(self, fit: Fit) -> Result:
        """Carry out a task."""

    @abstractmethod
    def tables(self, rows: Rows) -> list[Grid]:
        """The tables of these rows."""

    def targets(self, rows: Rows) -> list[Target]:
        """What the study must show, as far as these rows can be judged."""
        return []

    def figures(self, rows: Rows, drawn: Mapping[Fit, Any]) -> dict[str, Figure]:
        """Figures by the names of their files without ending; `drawn` has the results of tasks of this call."""
        return {}

    def caption(self, name: str) -> str:
        """The caption of a figure."""
        return name

    def order(self, fit: Fit) -> Any:
        """Tasks with a small value are carried out first."""
        return fit.seed or 0

    def check_ready(self) -> None:
        """Raise InputError before the work where something is missing for it."""
        return

    def headline(self, rows: Rows) -> str:
        """The result in a sentence or two."""
        targets = self.targets(rows)
        return f"{sum(target.met for target in targets)} of {len(targets)} targets are met." if targets else ""

    def page(self, rows: Rows, drawn: Mapping[Fit, Any], meta: Mapping[str, Any]) -> str | None:
        """A page of targets, tables and figures."""
        targets = self.targets(rows)
        grids = [*([target_grid(targets)] if targets else []), *self.tables(rows)]
        figures = [figure_html(self.caption(name), each) for name, each in self.figures(rows, drawn).items()]
        notes = (f"<p>{escape(note)}</p>" for note in self.notes)
        body = "".join([*map(grid_html, grids), *figures, *notes])
        return make_page(self.title, self.headline(rows), body, meta)

    def write_more(self, folder: Path, rows: Rows, drawn: Mapping[Fit, Any]) -> list[Path]:
        """Write further files beside the pictures."""
        return []

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add options of this study."""
        return

    def run(self, options: argparse.Namespace, command: str) -> None:
        """Carry out the study: print its tables and targets, and write the files that are wanted."""
        _check_files(options)
        self.check_ready()
        fits = select_fits(self, options.only)
        rows, drawn = run_fits(self, fits, RowsFile(options.rows))
        missed = _print_study(self, rows)
        meta = {"table": self.name, "protocol": self.protocol, "seeds": self.seeds, "missed": missed}
        meta |= describe_run(command)
        if options.json is not None:
            _print_written(write_results(options.json, meta, rows))
        if options.pictures is not None:
            for name, figure in self.figures(rows, drawn).items():
                _print_written(write_file(options.pictures / f"{name}.png", encode_figure(figure, "png")))
            _print_written(*self.write_more(options.pictures, rows, drawn))
        if options.page is not None and (page := self.page(rows, drawn, meta)) is not None:
            _print_written(write_file(options.page, page.encode()))


class RowsFile:
    """Finished tasks, a JSON line each; without a path nothing is kept."""

    def __init__(self, path: Path | None = None):
        self.path = path

    def read(self) -> dict[Fit, list[dict[str, Any]]]:
        """The rows of every task that this version of revarb finished; a last line that was cut off is ignored."""
        if self.path is None or not self.path.exists():
            return {}
        known, others = {}, 0
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
                fit, rows = Fit(*entry["fit"]), entry["rows"]
            except (ValueError, KeyError, TypeError):
                continue
            if entry.get("revarb") == revarb.__version__:
                known[fit] = rows
            else:
                others += 1
        if others:
            _print_line("warning", f"{self.path}: {others} task(s) of another version of revarb are ignored")
        return known

    def append(self, fit: Fit, rows: Rows) -> None:
        """Add a finished task."""
        if self.path is None:
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"fit": fit, "revarb": revarb.__version__, "rows": list(rows)}) + "\n")
        except OSError as error:
            raise revarb.InputError(f"cannot write {self.path}: {error.strerror or error}") from None


def select_fits(study: Study, only: Sequence[str] | None) -> list[Fit]:
    """The tasks of the records that are wanted, or all; an unknown record is refused."""
    fits = study.list_fits()
    known = names_of([fit._asdict() for fit in fits])
    for name in only or ():
        if name not in known:
            raise revarb.InputError(f"no record {name!r} in this table; there are {', '.join(known)}")
    return [fit for fit in fits if not only or fit.dataset in only]


def run_fits(
    study: Study, fits: Sequence[Fit] | None = None, finished: RowsFile | None = None
) -> tuple[list[Row], dict[Fit, Any]]:
    """Carry out the tasks (by default all) that are not in the file; rows in their order, and what figures need."""
    fits, finished = study.list_fits() if fits is None else fits, finished or RowsFile()
    rows: dict[Fit, Sequence[Row]] = {fit: own for fit, own in finished.read().items() if fit in fits}
    drawn, left = {}, sorted((fit for fit in fits if fit not in rows), key=study.order)
    for fit, result in _run_all(study, left):
        rows[fit] = result.rows
        if result.drawn is not None:
            drawn[fit] = result.drawn
        finished.append(fit, result.rows)
        _print_line(f"{len(rows)}/{len(fits)}", str(fit))
    return check_rows(study, [row for fit in fits for row in rows[fit]]), drawn


def _run_all(study: Study, fits: Sequence[Fit]) -> Iterator[tuple[Fit, Result]]:
    if study.jobs == 1 or not study.concurrent:
        yield from ((fit, study.run_fit(fit)) for fit in fits)
        return
    left = set(fits)
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the workers, which this process ends
    try:
        results = Parallel(n_jobs=study.jobs, return_as="generator_unordered")(
            delayed(_run_in_worker)(study, fit) for fit in fits
        )
    finally:
        signal.signal(signal.SIGINT, previous)
    try:
        for fit, result in results:  # pyright: ignore[reportGeneralTypeIssues]
            left.discard(fit)
            yield fit, result
    except BrokenProcessPool:
        raise revarb.ComputationError(
            f"a worker process died (out of memory?) before {len(left)} of {len(fits)} tasks were done, the first: "
            f"{min(left, key=study.order)}; use fewer jobs, and the same --rows file to keep the finished ones"
        ) from None


def _run_in_worker(study: Study, fit: Fit) -> tuple[Fit, Result]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return fit, study.run_fit(fit)


def check_rows(study: Study, rows: Rows) -> list[Row]:
    """The rows, with None for the scores that failed tasks do not have.

    Raises ComputationError unless every row is flat and has the columns of the study.
    """
    complete = [{**dict.fromkeys(study.columns), **row} if row.get("reason") else row for row in rows]
    for row in complete:
        missing = [column for column in study.columns if column not in row]
        nested = [name for name, value in row.items() if isinstance(value, dict | list) and name not in study.lists]
        if missing or nested:
            raise revarb.ComputationError(f"rows of {study.name} lack {missing} or are nested in {nested}: {row}")
    return complete


def no_failures(rows: Rows) -> Target:
    """The target that every fit and every run worked."""
    failures = list_failures(rows)
    return Target("no run failed", not failures, "; ".join(failures) or "none")


def _check_files(options: argparse.Namespace) -> None:
    # Before the work, which may take hours.
    if options.json is not None and options.json == options.page:
        raise revarb.InputError(f"--json and --page both name {options.json}; give each its own file")
    for file in (options.json, options.page, options.rows):
        if file is not None:
            make_folder(file.parent)
    if options.pictures is not None:
        make_folder(options.pictures)


def _print_study(study: Study, rows: Rows) -> list[str]:
    # Returns the targets that are missed.
    screen = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 110)
    for grid in study.tables(rows):
        screen.print(terminal_table(grid))
    protocol = f"protocol: {study.protocol}; median (smallest – largest) of {study.seeds} seed(s)"
    missed = [f"{each.what}; found {each.found}" for each in study.targets(rows) if not each.met]
    sentences = [*list_failures(rows), *(f"Missed: {each}." for each in missed), protocol, *study.notes]
    for sentence in filter(None, [*sentences, study.headline(rows)]):
        screen.print(sentence, soft_wrap=True)
    return missed


def _print_written(*paths: Path) -> None:
    for path in paths:
        print(f"wrote {path}")


def _print_line(kind: str, message: str) -> None:
    print(f"{kind}: {' '.join(message.split())}", file=sys.stderr)
