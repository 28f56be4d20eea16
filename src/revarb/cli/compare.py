"""`revarb compare`: every model on the user's own records."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from revarb.cli.application import app, command_line, print_written, screen
from revarb.data.tables.records import read_records
from revarb.errors import InputError
from revarb.evaluation.comparison import compare
from revarb.evaluation.comparison.comparison import Comparison, default_models
from revarb.evaluation.results_file import write_results
from revarb.report.page import comparison_page, comparison_section
from revarb.report.reliability_figures import draw_reliability
from revarb.report.tables import NOTES, comparison_grid, list_failures, terminal_table
from revarb.runtime.figure_style import save_figure
from revarb.runtime.files import check_writable, make_folder, write_atomic
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.machine import describe_machine


@app.command("compare")
def compare_models(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="CSV or Parquet file, to fit to.")],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="A file with the same columns, to simulate.")],
    outputs: Annotated[list[str], typer.Option("-y", "--output-column", help="Output column; repeat for several.")],
    inputs: Annotated[list[str] | None, typer.Option("-u", "--input-column", help="Input column; repeat.")] = None,
    more_train: Annotated[list[Path] | None, typer.Option(help="A further training record; repeat.")] = None,
    more_test: Annotated[list[Path] | None, typer.Option(help="A further test record; repeat.")] = None,
    lags: Annotated[int, typer.Option(help="State (or output) lags L; not of the chosen model.")] = 10,
    input_lags: Annotated[int, typer.Option(help="Input lags L_u; not of the chosen model.")] = 10,
    input_delay: Annotated[
        int, typer.Option(help="Age of the newest input: 1; 0: feedthrough. Not of the chosen model.")
    ] = 1,
    only: Annotated[list[str] | None, typer.Option(help="Only this model, by its name in the table; repeat.")] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds per model.", min=1)] = 3,
    jobs: Annotated[int, typer.Option(help="Number of processes.", min=1)] = 1,
    dt: Annotated[float | None, typer.Option(help="Sampling interval, for pictures; default: 1.")] = None,
    time_column: Annotated[
        str | None, typer.Option("--time", help="Column of times; must be even, and gives dt.")
    ] = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder for the table, the page and the pictures.")] = Path(
        "revarb-compare"
    ),
) -> None:
    """Which model is best on your records? All with the same records, start and scores.

    The models are the training mean, ARX, MLP-NARX, LSTM, GP-NARX, REVARB with the given lags, and "revarb (chosen)",
    which `revarb fit` takes without --lags: it chooses its own lags, on held-out stretches of TRAIN.
    """
    models = _choose(default_models(lags, input_lags, input_delay, jobs), only)
    train_files, test_files = [train, *(more_train or [])], [test, *(more_test or [])]
    records = read_records([*train_files, *test_files], inputs=inputs or [], outputs=outputs, time=time_column, dt=dt)
    trains, tests = records[: len(train_files)], records[len(train_files) :]
    targets = _targets(make_folder(folder), list(models), len(outputs), [*train_files, *test_files])
    comparison = compare(trains, tests, models, seeds, jobs=jobs, progress=True)
    screen.print(comparison.verdict, style="bold", soft_wrap=True)
    title = f"free simulation of {test.name}, first {comparison.skip} rows left out, {seeds} seed(s)"
    screen.print(terminal_table(comparison_grid(title, comparison.lines)))
    for sentence in (*list_failures(comparison.lines), *NOTES):
        screen.print(sentence, soft_wrap=True)
    with capture_interrupts():
        print_written(*_write(targets, test.name, comparison, command_line.get()))


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


def _choose(models: dict, only: list[str] | None) -> dict:
    for name in only or []:
        if name not in models:
            raise InputError(f"--only {name}: there is no such model; there are {', '.join(models)}")
    return {name: spec for name, spec in models.items() if not only or name in only}


def _write(targets: _Targets, name: str, comparison: Comparison, command: str) -> list[Path]:
    meta = {"table": "compare", "command": command, "verdict": comparison.verdict, "skip": comparison.skip}
    section = comparison_section(f"Free simulation of {name}", comparison)
    page = comparison_page(
        f"Which model for {name}?", section.verdict, [section], {"command": command, **describe_machine()}
    )
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
