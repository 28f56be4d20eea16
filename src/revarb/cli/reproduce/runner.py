"""The work of the `revarb reproduce` commands: checks, progress, tables, and files."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from revarb.cli.application import command_line, print_written, screen
from revarb.errors import InputError
from revarb.evaluation.results_file import write_results
from revarb.experiments.experiment import AnyPart, Experiment, Part
from revarb.report.tables import terminal_table
from revarb.runtime.figure_style import save_figure
from revarb.runtime.files import check_writable, make_folder, write_atomic
from revarb.runtime.machine import describe_machine
from revarb.runtime.progress import progress_bar


class Targets(NamedTuple):
    """Files and folder to write to; None for what is not wanted."""

    json_file: Path | None = None
    page_file: Path | None = None
    pictures: Path | None = None

    def check(self) -> None:
        """Create the folders and check that the files can be written, before the work begins."""
        for target in (self.json_file, self.page_file):
            if target is not None:
                make_folder(target.parent)
                check_writable(target)
        if self.json_file is not None and self.json_file == self.page_file:
            raise InputError(f"--json and --page both name {self.json_file}; give each its own file")
        if self.pictures is not None:
            make_folder(self.pictures)


def run_experiment(experiment: Experiment[AnyPart], seeds: int, jobs: int, targets: Targets) -> None:
    """Run an experiment: print its tables as they are finished, then write the files that are wanted."""
    targets.check()
    parts: list[AnyPart] = []
    with progress_bar(experiment.title, experiment.count_steps(seeds), show=True) as update:
        steps = itertools.count(1)
        for part in experiment.run(seeds, jobs, lambda text: update(next(steps), text)):
            _print_part(part)
            parts.append(part)
    _print_sentences(experiment.notes(seeds))
    if targets.json_file is not None:
        meta = {"table": experiment.name, "protocol": experiment.protocol, "seeds": seeds}
        write_rows(targets.json_file, meta, [row for part in parts for row in part.rows])
    if targets.pictures is not None:
        for part in parts:
            write_figures(targets.pictures, part.figures())
    if targets.page_file is not None:
        _write_page(targets.page_file, experiment.page(parts, {"command": command_line.get(), **describe_machine()}))


def write_rows(target: Path, meta: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a results file with the command that made it, and name it."""
    print_written(write_results(target, {**meta, "command": command_line.get()}, rows))


def _print_part(part: Part) -> None:
    for grid in part.grids():
        screen.print(terminal_table(grid))
    _print_sentences(part.sentences())


def _print_sentences(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        screen.print(sentence, soft_wrap=True)


def write_figures(folder: Path, figures: Mapping[str, Figure]) -> None:
    """Write figures as PNG files, and name these."""
    for name, figure in figures.items():
        print_written(save_figure(folder / f"{name}.png", figure))


def _write_page(target: Path, page: str | None) -> None:
    if page is not None:
        print_written(write_atomic(target, page.encode()))
