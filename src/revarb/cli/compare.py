"""`revarb compare`: every model on the user's own records."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from revarb.cli import options
from revarb.cli.application import app, check_targets, command_line, print_written, say, screen, stop_interrupted
from revarb.errors import InputError
from revarb.runtime.files import make_folder, write_atomic
from revarb.runtime.interrupts import capture_interrupts, exit_on_interrupt

if TYPE_CHECKING:
    from revarb import RGP, Comparison
    from revarb.models.base import ModelSpec


@app.command("compare")
def compare_models(
    train: Annotated[Path, Argument(metavar="TRAIN", help="CSV, Excel or Parquet file, to fit to.")],
    test: Annotated[Path, Argument(metavar="TEST", help="A file with the same columns, to simulate.")],
    outputs: options.OutputColumns,
    inputs: options.InputColumns = None,
    more_train: Annotated[list[Path] | None, Option(metavar="FILE", help="A further training record; repeat.")] = None,
    more_test: Annotated[list[Path] | None, Option(metavar="FILE", help="A further test record; repeat.")] = None,
    lags: options.Lags = None,
    input_lags: options.InputLags = None,
    input_delay: options.InputDelay = None,
    hidden: options.Hidden = None,
    latent_dim: options.LatentDim = None,
    config: options.Config = None,
    family: Annotated[
        bool, Option("--family", help="Also compare GP state-space models: GPSSM and reduced-rank GPSSM.")
    ] = False,
    only: Annotated[
        list[str] | None, Option(metavar="NAME", help="Only this model, by its name in the table; repeat.")
    ] = None,
    seeds: Annotated[int, Option(help="Number of seeds per model.", min=1)] = 3,
    jobs: Annotated[int, Option(help="Number of processes.", min=1)] = 1,
    dt: options.TimeStep = None,
    time_column: options.FitTimes = None,
    decimal: options.Decimal = None,
    separator: options.Separator = None,
    skip_rows: options.SkipRows = 0,
    split_gaps: options.SplitGaps = False,
    sort_time: options.SortTime = False,
    folder: Annotated[Path, Option("-o", "--out", help="Folder for the table, the page and the pictures.")] = Path(
        "revarb-compare"
    ),
    resume: Annotated[
        bool, Option("--resume", help="Keep the models that the same command finished before Ctrl-C or a kill.")
    ] = False,
) -> None:
    """Compare models on your own records: which one is best?

    All models have the same records, start and scores. They are the training mean, ARX, MLP-NARX, LSTM, GP-NARX, REVARB
    with the given lags, and "revarb (chosen)", which `revarb fit` takes without --lags: it chooses its own lags, on
    held-out blocks of TRAIN.

    Ctrl-C writes the table of the models that are done; rerun with --resume to add the others.
    """
    with exit_on_interrupt():
        from revarb.cli.records import leave_out_short, read_files
        from revarb.data.csv_file import CsvForm
        from revarb.data.record_files import Times
    trains, tests = [train, *(more_train or [])], [test, *(more_test or [])]
    form, times = CsvForm(decimal, separator, skip_rows), Times(time_column, dt, split_gaps, sort_time)
    by_file = read_files([*trains, *tests], inputs, outputs, times, form)  # before JAX is imported
    with exit_on_interrupt():
        from revarb import compare
        from revarb.analysis.comparison import ComparisonInterrupted
        from revarb.cli.fit_request import make_spec
        from revarb.runtime.unfinished import keep_journals
    spec = make_spec(config, options.collect_given(
        lags=lags, input_lags=input_lags, input_delay=input_delay, hidden=hidden, latent_dim=latent_dim
    ))  # fmt: skip
    models = _list_models(spec, jobs, only, len(outputs) if family else 0)
    least = _count_rows(models, len(inputs or []))
    fitted, simulated = (leave_out_short(part, least) for part in (by_file[: len(trains)], by_file[len(trains) :]))
    _check_targets(make_folder(folder), list(models), len(outputs), [*trains, *tests])
    with keep_journals():  # until the table is on disk
        stopped = False
        try:
            comparison = compare(fitted, simulated, models, seeds, jobs=jobs, progress=True, resume=resume)
        except ComparisonInterrupted as interrupted:
            comparison, stopped = interrupted.comparison, True
        with capture_interrupts():
            _print(test.name, comparison, seeds)
            print_written(*_write(folder, test.name, comparison))
    if stopped:
        total = len(models) * seeds
        stop_interrupted(f"{total - len(comparison.missing)} of {total} fits were compared{options.RESUME}")


def _list_models(spec: "RGP", jobs: int, only: Sequence[str] | None, family: int) -> dict[str, "ModelSpec"]:
    # By their names in the table: REVARB as configured, and all others with its lags. With `family`, a number of
    # outputs, the GP state-space models too.
    from revarb.analysis.runs import default_models, family_models

    relatives = family_models(spec.input_delay, family) if family else {}
    models = {**default_models(spec, jobs), **relatives}
    for name in only or []:
        if name not in models:
            raise InputError(f"--only {name}: there is no such model; there are {', '.join(models)}")
    return {name: spec for name, spec in models.items() if not only or name in only}


def _count_rows(models: Mapping[str, "ModelSpec"], inputs: int) -> int:
    # The fewest samples of a record that all models can be fitted to, and of which some can be scored.
    from revarb import Chosen
    from revarb.data.windows import Order
    from revarb.models.configuration import Lagged
    from revarb.selection.candidates import DELAYS
    from revarb.selection.records import MORE_LAGS

    orders = [model.order_for(inputs) for model in models.values() if isinstance(model, Lagged)]
    if any(isinstance(model, Chosen) for model in models.values()):
        orders.append(Order(MORE_LAGS, MORE_LAGS if inputs else 0, max(DELAYS)))
    return max((order.skip + 2 for order in orders), default=1)


def _check_targets(folder: Path, models: Sequence[str], outputs: int, read: Sequence[Path]) -> None:
    names = ["compare.json", "compare.html", "reliability.png"]
    names += [*_name_output_pictures(outputs), *map(_name_picture, models)]
    check_targets(f"--out {folder}", [folder / name for name in names], read)


def _name_output_pictures(outputs: int) -> list[str]:
    return ["compare.png"] if outputs == 1 else [f"compare_{number}.png" for number in range(outputs)]


def _name_picture(model: str) -> str:
    # "revarb (chosen)" is revarb-chosen.png
    return f"{re.sub('[^a-z0-9]+', '-', model.lower()).strip('-')}.png"


def _print(name: str, comparison: "Comparison", seeds: int) -> None:
    from revarb.analysis.report import NOTES, comparison_grids, list_failures
    from revarb.cli.tables import terminal_table

    say(comparison.verdict, bold=True)
    if comparison.incomplete is not None:
        say(comparison.incomplete, bold=True)
    title = f"free simulation of {name}, first {comparison.skip} rows left out, {seeds} seed(s)"
    for grid in comparison_grids(title, comparison):
        screen.print(terminal_table(grid))
    for sentence in (*list_failures(comparison.lines), *NOTES):
        say(sentence)


def _write(folder: Path, name: str, comparison: "Comparison") -> list[Path]:
    from revarb.analysis.figures import draw_reliability
    from revarb.analysis.report import comparison_page, write_results
    from revarb.runtime.figure_style import save_figure
    from revarb.runtime.machine import describe_machine

    command = command_line.get()
    meta = {"table": "compare", "command": command, "verdict": comparison.verdict, "skip": comparison.skip}
    if comparison.incomplete is not None:
        meta["incomplete"] = comparison.incomplete
    about = {"command": command, **describe_machine()}
    page = comparison_page(f"Which model for {name}?", f"Free simulation of {name}", comparison, about)
    written = [
        write_results(folder / "compare.json", meta, comparison.rows),
        write_atomic(folder / "compare.html", page.encode()),
    ]
    record, paths = comparison.test[0], comparison.by_model()
    figures = {}
    if paths:
        pictures = _name_output_pictures(len(record.output_names))
        figures = {picture: comparison.plot(column) for column, picture in enumerate(pictures)}
    if reliability := comparison.reliability():
        figures["reliability.png"] = draw_reliability(reliability)
    for model, several in paths.items():
        figures[_name_picture(model)] = several[-1].plot(record.y, f"{model}: free simulation of {name}")
    return [*written, *(save_figure(folder / picture, figure) for picture, figure in figures.items())]
