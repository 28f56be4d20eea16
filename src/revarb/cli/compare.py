"""`revarb compare`: every model on the user's own records."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.app import app, read_record, say_written, screen
from revarb.comparison import Comparison, compare, default_models, verdict
from revarb.errors import InputError
from revarb.files import make_folder, write_whole
from revarb.interrupts import held_interrupts
from revarb.report.figures import comparison_figure, simulation_figure
from revarb.report.page import comparison_page, comparison_section
from revarb.report.tables import comparison_table
from revarb.results import machine, write_results
from revarb.table import Table


@app.command("compare")
def compare_models(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="CSV file with a header line, to fit to.")],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="CSV file with the same columns, to simulate.")],
    outputs: Annotated[list[str], typer.Option("-y", "--output-column", help="Output column; repeat for several.")],
    inputs: Annotated[list[str] | None, typer.Option("-u", "--input-column", help="Input column; repeat.")] = None,
    more_train: Annotated[list[Path] | None, typer.Option(help="A further training record; repeat.")] = None,
    more_test: Annotated[list[Path] | None, typer.Option(help="A further test record; repeat.")] = None,
    lags: Annotated[int, typer.Option(help="State (or output) lags L of the models that have them.")] = 10,
    input_lags: Annotated[int, typer.Option(help="Input lags L_u.")] = 10,
    input_delay: Annotated[int, typer.Option(help="Age of the newest input: 1; 0 for feedthrough.")] = 1,
    only: Annotated[list[str] | None, typer.Option(help="Only this model, by its name in the table; repeat.")] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds per model.", min=1)] = 3,
    jobs: Annotated[int, typer.Option(help="Number of processes.", min=1)] = 1,
    dt: Annotated[float, typer.Option(help="Sampling interval, for the time axis of pictures.")] = 1.0,
    folder: Annotated[Path, typer.Option("--out", help="Folder for the table, the page and the pictures.")] = Path(
        "revarb-compare"
    ),
) -> None:
    """Which model is best on your records? REVARB and its rivals: the same records, the same start, the same scores."""
    models = _chosen(default_models(lags, input_lags, input_delay), only)
    trains = [read_record(Table(path), inputs or [], outputs, dt) for path in [train, *(more_train or [])]]
    tests = [read_record(Table(path), inputs or [], outputs, dt) for path in [test, *(more_test or [])]]
    make_folder(folder)
    comparison = compare(trains, tests, models, seeds, jobs=jobs, progress=True)
    sentence = verdict(comparison.lines)
    screen.print(sentence, style="bold", soft_wrap=True)
    title = f"free simulation of {test.name}, first {comparison.skip} rows left out, {seeds} seed(s)"
    screen.print(comparison_table(title, comparison.lines))
    with held_interrupts():
        say_written(*_write(folder, test.name, comparison, sentence))


def _chosen(models: dict, only: list[str] | None) -> dict:
    for name in only or []:
        if name not in models:
            raise InputError(f"--only {name}: there is no such model; there are {', '.join(models)}")
    return {name: spec for name, spec in models.items() if not only or name in only}


def _write(folder: Path, name: str, comparison: Comparison, sentence: str) -> list[Path]:
    command = " ".join(["revarb", *sys.argv[1:]])
    meta = {"table": "compare", "command": command, "verdict": sentence, "skip": comparison.skip}
    section = comparison_section(f"Free simulation of {name}", sentence, comparison)
    page = comparison_page(f"Which model for {name}?", sentence, [section], {"command": command, **machine()})
    written = [
        write_results(folder / "compare.json", meta, comparison.rows),
        write_whole(folder / "compare.html", page.encode()),
    ]
    record = comparison.test[0]
    for column in range(len(record.output_names)):
        ending = "" if len(record.output_names) == 1 else f"_{column}"
        picture = comparison_figure(comparison.by_model(), record.y, column, "png")
        written.append(write_whole(folder / f"compare{ending}.png", picture))
    for model, paths in comparison.by_model().items():
        picture = simulation_figure(paths[-1], record.y, f"{model}: free simulation of {name}")
        written.append(write_whole(folder / f"{model.lower()}.png", picture))
    return written
