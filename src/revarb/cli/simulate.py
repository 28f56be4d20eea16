"""`revarb simulate`, `revarb predict` and `revarb check`: a trained model on a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from revarb.cli import options
from revarb.cli.application import app, check_targets, print_written, say, screen
from revarb.errors import InputError, warn_user
from revarb.runtime.interrupts import capture_interrupts, exit_on_interrupt

if TYPE_CHECKING:
    import numpy as np

    from revarb.data.table_file import Table


@app.command()
def simulate(
    model_file: options.ModelFile,
    test: Annotated[Path, Argument(metavar="TEST", help="CSV or Parquet file with the input columns.")],
    path_file: options.PathFile,
    method: Annotated[str | None, Option(help="moments (default of an RGP), mean, samples or network.")] = None,
    seed: Annotated[int, Option(help="Seed of method=samples.")] = 0,
    samples: Annotated[int, Option(help="Number of trajectories of method=samples, a column each.")] = 200,
    start: Annotated[
        str,
        Option(
            metavar="cold|continue|FILE",
            help="cold; continue where training ended; or a table measured just before TEST.",
        ),
    ] = "cold",
    time_column: options.ModelTimes = None,
    decimal: options.Decimal = None,
    separator: options.Separator = None,
    skip_rows: options.SkipRows = 0,
) -> None:
    """Simulate a model on new inputs; draw the result and score it.

    The scores need a file that has the measured outputs too.
    """
    with exit_on_interrupt():
        from inspect import signature

        from revarb import Window, load
        from revarb.cli.tables import check_target, make_record, open_table, write_path
        from revarb.data.csv_file import CsvForm
    form, model = CsvForm(decimal, separator, skip_rows), load(model_file)
    table, time_name = open_table(test, model, time_column, form)
    begin: Any = start
    read = [model_file, test]
    if start not in ("cold", "continue"):
        try:
            begin = make_record(Window, open_table(Path(start), model, time_column, form)[0], model)
        except InputError as error:
            raise InputError(f"--start takes cold, continue or a table measured just before: {error}") from None
        read.append(Path(start))
    targets = check_target(path_file, read)
    measured = _read_measured(table, model.output_names)
    u, steps = (table.columns(model.input_names), None) if model.input_names else (None, len(table))
    accepted = signature(model.simulate).parameters  # baselines start cold only, and most have no samples
    if start != "cold" and "start" not in accepted:
        raise InputError(f"--start {start}: a {type(model).__name__} starts cold only")
    arguments = {"steps": steps, "start": begin, "samples": samples, "seed": seed}
    arguments = {name: value for name, value in arguments.items() if name in accepted}
    path = model.simulate(u, model.methods[-1] if method is None else method, **arguments)
    where = "cold start" if path.start == "cold" else path.start
    write_path(path, table, time_name, measured, f"free simulation, {where}", targets)


def _read_measured(table: "Table", names: tuple[str, ...]) -> "np.ndarray | None":
    if not all(name in table for name in names):
        return None
    try:
        return table.measured(names)
    except InputError as error:  # the measured output is optional
        warn_user(f"{error}; simulating without scores")
        return None


@app.command()
def predict(
    model_file: options.ModelFile,
    record_file: options.RecordFile,
    path_file: options.PathFile,
    horizon: Annotated[int, Option(help="How many samples ahead.")] = 1,
    time_column: options.ModelTimes = None,
    decimal: options.Decimal = None,
    separator: options.Separator = None,
    skip_rows: options.SkipRows = 0,
) -> None:
    """Predict a measured record, HORIZON samples ahead.

    Every sample is predicted from those up to HORIZON before it. Outputs may be missing. Draws and scores the
    predictions.
    """
    with exit_on_interrupt():
        from revarb import Series, load
        from revarb.cli.tables import check_target, make_record, open_table, write_path
        from revarb.data.csv_file import CsvForm
    model = load(model_file)
    if not hasattr(model, "predict"):  # most baselines only simulate
        raise InputError(f"{model_file} contains a {type(model).__name__}, which cannot predict; use revarb simulate")
    targets = check_target(path_file, [model_file, record_file])
    table, time_name = open_table(record_file, model, time_column, CsvForm(decimal, separator, skip_rows))
    record = make_record(Series, table, model)
    path = model.predict(record, horizon)
    write_path(path, table, time_name, record.y, f"prediction, {path.start}", targets)


@app.command()
def check(
    model_file: options.ModelFile,
    record_file: options.RecordFile,
    picture: Annotated[Path, Option("-o", "--out", help="Where to write the picture (PNG).")] = Path("check.png"),
    max_lag: Annotated[
        int | None, Option(help="Largest lag of the correlations; default: 25, or more if the model has more.")
    ] = None,
    time_column: options.ModelTimes = None,
    decimal: options.Decimal = None,
    separator: options.Separator = None,
    skip_rows: options.SkipRows = 0,
) -> None:
    """Check a model by its residuals on a measured record.

    The residuals are the errors one step ahead. Says whether they are white and independent of the inputs, and if not,
    what to try. Draws autocorrelation, cross-correlation with every input, and histogram. Outputs may be missing.
    """
    with exit_on_interrupt():
        from dataclasses import replace

        from revarb import Series, load
        from revarb.cli.tables import make_record, open_table
        from revarb.data.csv_file import CsvForm
        from revarb.runtime.figure_style import save_figure
    if picture.suffix.lower() != ".png":
        raise InputError(f"-o {picture}: the picture is a PNG file; choose a name that ends in .png")
    check_targets(f"-o {picture}", [picture], [model_file, record_file])
    model = load(model_file)
    if not hasattr(model, "residuals"):  # most baselines only simulate
        raise InputError(f"{model_file} contains a {type(model).__name__}, which cannot predict and has no residuals")
    table, _ = open_table(record_file, model, time_column, CsvForm(decimal, separator, skip_rows))
    residuals = model.residuals(make_record(Series, table, model), max_lag)
    for sentence in residuals.sentences:
        say(sentence, bold=True)
    screen.print(replace(residuals.summary(), title=record_file.name))
    with capture_interrupts():
        print_written(save_figure(picture, residuals.plot()))
