"""Compare models on records; write the table, the page and the pictures."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from revarb.cli.application import command_line, print_written, screen, stop_interrupted
from revarb.cli.work.fit import make_spec
from revarb.data.series import Series
from revarb.errors import InputError
from revarb.evaluation.comparison import compare
from revarb.evaluation.comparison.comparison import Comparison, ComparisonInterrupted, default_models, family_models
from revarb.evaluation.results_file import write_results
from revarb.models.base import ModelSpec
from revarb.optim.journal import keep_journals
from revarb.report.page import comparison_page, comparison_section
from revarb.report.reliability_figures import draw_reliability
from revarb.report.tables import NOTES, comparison_grid, list_failures, output_grid, terminal_table
from revarb.runtime.figure_style import save_figure
from revarb.runtime.files import check_writable, make_folder, write_atomic
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.machine import describe_machine


class Files(NamedTuple):
    """The tables to fit to and to simulate, and the folder of the results."""

    train: Sequence[Path]
    test: Sequence[Path]
    folder: Path

    @property
    def read(self) -> list[Path]:
        """All tables, those to fit to first."""
        return [*self.train, *self.test]


def list_models(
    config: Path | None, given: Mapping[str, int | str], jobs: int, only: Sequence[str] | None, family: int
) -> dict[str, ModelSpec]:
    """The models by their names in the table: REVARB as described, and all others with its lags.

    With `family`, a number of outputs, the GP state-space models too.
    """
    spec = make_spec(config, given)
    relatives = family_models(spec.input_delay, family) if family else {}
    models = {**default_models(spec.lags, spec.input_lags, spec.input_delay, jobs), "REVARB": spec, **relatives}
    for name in only or []:
        if name not in models:
            raise InputError(f"--only {name}: there is no such model; there are {', '.join(models)}")
    return {name: spec for name, spec in models.items() if not only or name in only}


def compare_records(
    files: Files,
    trains: Sequence[Series],
    tests: Sequence[Series],
    models: Mapping[str, ModelSpec],
    seeds: int,
    jobs: int,
    resume: bool,
) -> None:
    """Compare the models, print the table, and write it; after Ctrl-C that of the models which are done."""
    targets = _targets(make_folder(files.folder), list(models), len(tests[0].output_names), files.read)
    name = files.test[0].name
    with keep_journals():  # until the table is on disk
        stopped = False
        try:
            comparison = compare(trains, tests, models, seeds, jobs=jobs, progress=True, resume=resume)
        except ComparisonInterrupted as interrupted:
            comparison, stopped = interrupted.comparison, True
        with capture_interrupts():
            _print(name, comparison, seeds)
            print_written(*_write(targets, name, comparison, command_line.get()))
    if stopped:
        total = len(models) * seeds
        done = total - len(comparison.missing)
        stop_interrupted(f"{done} of {total} fits were compared; the same command with --resume goes on")


def _print(name: str, comparison: Comparison, seeds: int) -> None:
    screen.print(comparison.verdict, style="bold", soft_wrap=True)
    if comparison.incomplete is not None:
        screen.print(comparison.incomplete, style="bold", soft_wrap=True)
    title = f"free simulation of {name}, first {comparison.skip} rows left out, {seeds} seed(s)"
    apart = output_grid(comparison.rows)
    screen.print(terminal_table(comparison_grid(title, comparison.lines, mixed=apart is not None)))
    if apart is not None:
        screen.print(terminal_table(apart))
    for sentence in (*list_failures(comparison.lines), *NOTES):
        screen.print(sentence, soft_wrap=True)


class _Targets(NamedTuple):
    """The files to write."""

    json: Path
    page: Path
    reliability: Path
    outputs: list[Path]
    models: dict[str, Path]


def _targets(folder: Path, models: Sequence[str], outputs: int, read: Sequence[Path]) -> _Targets:
    # Checked before the work: all files can be written, and none is an input.
    endings = [""] if outputs == 1 else [f"_{number}" for number in range(outputs)]
    targets = _Targets(
        folder / "compare.json",
        folder / "compare.html",
        folder / "reliability.png",
        [folder / f"compare{ending}.png" for ending in endings],
        {model: folder / f"{_name_file(model)}.png" for model in models},
    )
    for target in (targets.json, targets.page, targets.reliability, *targets.outputs, *targets.models.values()):
        if check_writable(target).resolve() in [path.resolve() for path in read]:
            raise InputError(f"--out {folder} would overwrite {target}, which is read; choose another folder")
    return targets


def _name_file(model: str) -> str:
    # "revarb (chosen)" is revarb-chosen.png
    return re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")


def _write(targets: _Targets, name: str, comparison: Comparison, command: str) -> list[Path]:
    meta = {"table": "compare", "command": command, "verdict": comparison.verdict, "skip": comparison.skip}
    overview = comparison.verdict
    if comparison.incomplete is not None:
        meta["incomplete"] = comparison.incomplete
        overview = f"{comparison.incomplete} {overview}"
    section = comparison_section(f"Free simulation of {name}", comparison)
    page = comparison_page(f"Which model for {name}?", overview, [section], {"command": command, **describe_machine()})
    written = [write_results(targets.json, meta, comparison.rows), write_atomic(targets.page, page.encode())]
    record, paths = comparison.test[0], comparison.by_model()
    for column, target in enumerate(targets.outputs if paths else []):
        written.append(save_figure(target, comparison.plot(column)))
    if reliability := comparison.reliability():
        written.append(save_figure(targets.reliability, draw_reliability(reliability)))
    for model, several in paths.items():
        figure = several[-1].plot(record.y, f"{model}: free simulation of {name}")
        written.append(save_figure(targets.models[model], figure))
    return written
