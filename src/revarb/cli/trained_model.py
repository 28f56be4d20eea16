"""Commands for a trained model: `revarb simulate`, `predict` and `check` on a table, `revarb export` as a program."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from revarb.cli import options
from revarb.cli.application import app, check_targets, print_line, print_written, say, screen
from revarb.errors import InputError, warn_user
from revarb.runtime.interrupts import capture_interrupts, exit_on_interrupt

if TYPE_CHECKING:
    import numpy as np

    from revarb import Series, Trajectory
    from revarb.data.table_file import Table
    from revarb.models.prediction import Predictor

FAR = 2.0  # standard deviations between the first measured output and that of a cold run


@app.command()
def simulate(
    model_file: options.ModelFile,
    test: Annotated[Path, Argument(metavar="TEST", help="CSV, Excel or Parquet file with the input columns.")],
    path_file: options.PathFile,
    method: Annotated[str | None, Option(help="moments (default of an RGP), mean, samples or network.")] = None,
    seed: Annotated[int, Option(help="Seed of method=samples.")] = 0,
    samples: Annotated[int, Option(help="Number of trajectories of method=samples, a column each.")] = 200,
    start: Annotated[
        str,
        Option(
            metavar="cold|measured|continue|FILE",
            help="cold; after the first measured samples of TEST; where training ended; or after a table measured "
            "just before TEST.",
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
        from revarb.cli.records import check_target, make_record, match_times, open_table
        from revarb.data.csv_file import CsvForm
    form = CsvForm(decimal, separator, skip_rows)
    table, warm = open_table(test, time_column, form), start not in ("cold", "measured", "continue")
    targets = check_target(path_file, [model_file, test, *([Path(start)] if warm else [])])
    with exit_on_interrupt():  # JAX, which takes seconds
        from inspect import signature

        from revarb import Window, load
        from revarb.cli.tables import write_path
    model = load(model_file)
    time_name = match_times(table, model, time_column)
    begin = _cut_window(table, model) if start == "measured" else start
    first = 0 if isinstance(begin, str) else len(begin)
    if warm:
        try:
            before = open_table(Path(start), time_column, form)
            match_times(before, model, time_column)
            begin = make_record(Window, before, model)
        except InputError as error:
            raise InputError(f"--start takes cold, measured, continue or a table measured before: {error}") from None
    measured = _read_measured(table, model.output_names)
    u, steps = (table.columns(model.input_names)[first:], None) if model.input_names else (None, len(table) - first)
    accepted = signature(model.simulate).parameters  # baselines start cold only, and most have no samples
    if start != "cold" and "start" not in accepted:
        raise InputError(f"--start {start}: a {type(model).__name__} starts cold only")
    arguments = {"steps": steps, "start": begin, "samples": samples, "seed": seed}
    arguments = {name: value for name, value in arguments.items() if name in accepted}
    path = model.simulate(u, model.methods[-1] if method is None else method, **arguments)
    where = "cold start" if path.start == "cold" else path.start
    write_path(path, table, time_name, measured, f"free simulation, {where}", targets, first)
    if path.start == "cold" and measured is not None and "start" in accepted:
        _hint_at_start(path, measured, model)


def _cut_window(table: "Table", model: Any) -> "Series":
    # The first samples of a table, from which a run can start.
    from revarb import Window
    from revarb.cli.records import make_record
    from revarb.simulation.starts import begin_measured

    if not all(name in table for name in model.output_names):
        raise InputError(
            f"--start measured: {table.path} does not have the outputs {list(model.output_names)}; start cold, or "
            "after a table that has them"
        )
    return begin_measured(model.preprocessor, make_record(Window, table, model), "measured")[1]


def _hint_at_start(path: "Trajectory", measured: "np.ndarray", model: Any) -> None:
    # A cold run begins at the mean of training, and the measured outputs may be far from there.
    import numpy as np

    distances = np.abs(measured[0] - path.mean[0]) / model.scaling.y_std
    limits = np.full(len(distances), FAR) if path.std is None else FAR * path.std[0] / model.scaling.y_std
    far = (distances > np.minimum(limits, FAR)) & ~np.isnan(distances)
    if far.any():
        name, distance = path.output_names[int(np.argmax(far))], distances[int(np.argmax(far))]
        print_line(
            "hint",
            f"the run starts cold, and {name!r} is {distance:.1f} standard deviations away at first; with "
            "--start measured it starts after the first samples",
        )


def _read_measured(table: "Table", names: tuple[str, ...]) -> "np.ndarray | None":
    if not all(name in table for name in names):
        return None
    try:
        return table.measured(names)
    except InputError as error:  # the measured output is optional
        warn_user(f"{error}; simulating without scores")
        return None


def _load_predictor(file: Path) -> "Predictor":
    from revarb import load
    from revarb.models.prediction import Predictor

    model = load(file)
    if not isinstance(model, Predictor):  # most baselines only simulate
        raise InputError(f"{file} contains a {type(model).__name__}, which cannot predict; use revarb simulate")
    return model


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
        from revarb.cli.records import check_target, make_record, match_times, open_table
        from revarb.data.csv_file import CsvForm
    table = open_table(record_file, time_column, CsvForm(decimal, separator, skip_rows))
    targets = check_target(path_file, [model_file, record_file])
    with exit_on_interrupt():  # JAX, which takes seconds
        from revarb import Series
        from revarb.cli.tables import write_path
    model = _load_predictor(model_file)
    time_name = match_times(table, model, time_column)
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
        from revarb.cli.records import make_record, match_times, open_table
        from revarb.data.csv_file import CsvForm
    if picture.suffix.lower() != ".png":
        raise InputError(f"-o {picture}: the picture is a PNG file; choose a name that ends in .png")
    check_targets(f"-o {picture}", [picture], [model_file, record_file])
    table = open_table(record_file, time_column, CsvForm(decimal, separator, skip_rows))
    with exit_on_interrupt():  # JAX, which takes seconds
        from dataclasses import replace

        from revarb import Series
        from revarb.runtime.figure_style import save_figure
    model = _load_predictor(model_file)
    match_times(table, model, time_column)
    residuals = model.residuals(make_record(Series, table, model), max_lag)
    for sentence in residuals.sentences:
        say(sentence, bold=True)
    screen.print(replace(residuals.summary(), title=record_file.name))
    with capture_interrupts():
        print_written(save_figure(picture, residuals.plot()))


@app.command()
def export(
    model_file: options.ModelFile,
    target: Annotated[
        Path, Option("-o", "--out", help="The file: .c (a header is written beside it), .fmu, .onnx or .casadi.")
    ],
    to: Annotated[
        str | None, Option(metavar="c|fmu|onnx|casadi", help="The format; default: by the ending of the file.")
    ] = None,
    single: Annotated[bool, Option("--float", help="C and FMU: compute in float instead of double.")] = False,
    with_std: Annotated[
        bool,
        Option(
            "--with-std",
            help="Also the standard deviation; C: by propagated moments; CasADi, ONNX: of one step from a known state.",
        ),
    ] = False,
    step_only: Annotated[
        bool, Option("--step", help="ONNX: the step alone, instead of a run over any number of rows.")
    ] = False,
    name: Annotated[
        str | None, Option(help="C and FMU: prefix of the functions; default: the name of the file.")
    ] = None,
    unit: Annotated[
        list[str] | None,
        Option(metavar="COLUMN=UNIT", help="C and FMU: unit of a column; default: what its name has in brackets."),
    ] = None,
) -> None:
    """Export one step of a model to C, FMU, ONNX or CasADi.

    From state and inputs to the next state and outputs, by the mean-only run. An ensemble is exported as the mean of
    its members.
    """
    with exit_on_interrupt():
        from revarb import load
        from revarb.export.exportable import find_format
    if str(target) == "-":
        raise InputError("-o -: an export cannot be written to the standard output; name a file")
    kind = find_format(target, to)  # before a large file is read
    check_targets(f"-o {target}", [target, *([target.with_suffix(".h")] if kind == "c" else [])], [model_file])
    written = load(model_file).export(
        target, kind, name=name, precision="float" if single else "double", with_std=with_std,
        units=_read_units(unit or []) or None, step_only=step_only,
    )  # fmt: skip
    for path in written:
        say(f"wrote {path}, {path.stat().st_size / 1000:.1f} kB")


def _read_units(given: Sequence[str]) -> dict[str, str]:
    units = {}
    for text in given:
        column, _, unit = text.rpartition("=")
        if not column or not unit:
            raise InputError(f"--unit takes COLUMN=UNIT, received {text!r}")
        units[column] = unit
    return units
