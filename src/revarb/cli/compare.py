"""`revarb compare`: every model on the user's own records."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app
from revarb.cli.options import (
    INPUT_DELAY,
    Decimal,
    FitTimes,
    InputColumns,
    OutputColumns,
    Separator,
    SkipRows,
    SplitGaps,
    TimeStep,
    collect_given,
)
from revarb.runtime.interrupts import exit_on_interrupt


@app.command("compare")
def compare_models(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="CSV or Parquet file, to fit to.")],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="A file with the same columns, to simulate.")],
    outputs: OutputColumns,
    inputs: InputColumns = None,
    more_train: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A further training record; repeat.")
    ] = None,
    more_test: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="A further test record; repeat.")] = None,
    lags: Annotated[int | None, typer.Option(help="State (or output) lags L; default: 10.")] = None,
    input_lags: Annotated[int | None, typer.Option(help="Input lags L_u; default: 10.")] = None,
    input_delay: Annotated[int | None, typer.Option(help=f"{INPUT_DELAY}; default: 1.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Hidden layers H of REVARB; default: 2.")] = None,
    latent_dim: Annotated[int | None, typer.Option(help="Latent states per layer of REVARB; default: 1.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with fields of RGP and a table [recipe], for REVARB.")
    ] = None,
    family: Annotated[
        bool, typer.Option("--family", help="Also compare GP state-space models: GPSSM and reduced-rank GPSSM.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this model, by its name in the table; repeat.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds per model.", min=1)] = 3,
    jobs: Annotated[int, typer.Option(help="Number of processes.", min=1)] = 1,
    dt: TimeStep = None,
    time_column: FitTimes = None,
    decimal: Decimal = None,
    separator: Separator = None,
    skip_rows: SkipRows = 0,
    split_gaps: SplitGaps = False,
    folder: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for the table, the page and the pictures.")
    ] = Path("revarb-compare"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the models that the same command finished before Ctrl-C or a kill.")
    ] = False,
) -> None:
    """Compare models on your own records: which one is best?

    All models have the same records, start and scores. They are the training mean, ARX, MLP-NARX, LSTM, GP-NARX, REVARB
    with the given lags, and "revarb (chosen)", which `revarb fit` takes without --lags: it chooses its own lags, on
    held-out stretches of TRAIN.

    Ctrl-C writes the table of the models that are done; the same command with --resume goes on with the others.
    """
    given = collect_given(
        lags=lags, input_lags=input_lags, input_delay=input_delay, hidden=hidden, latent_dim=latent_dim
    )  # fmt: skip
    with exit_on_interrupt():
        from revarb.cli.work.compare import Files, compare_records, list_models
        from revarb.cli.work.reading import count_rows_to_compare, leave_out_short, read_files
        from revarb.data.tables.csv_form import CsvForm
        from revarb.data.tables.records import Times
    models = list_models(config, given, jobs, only, len(outputs) if family else 0)
    files = Files([train, *(more_train or [])], [test, *(more_test or [])], folder)
    form, times = CsvForm(decimal, separator, skip_rows), Times(time_column, dt, split_gaps)
    by_file = read_files(files.read, inputs or [], outputs, times, form)
    least, count = count_rows_to_compare(list(models.values()), len(inputs or [])), len(files.train)
    trains, tests = leave_out_short(by_file[:count], least), leave_out_short(by_file[count:], least)
    compare_records(files, trains, tests, models, seeds, jobs, resume)
