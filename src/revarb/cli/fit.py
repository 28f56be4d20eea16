"""`revarb fit`: from records to a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from revarb.cli import options
from revarb.cli.application import app, figure_target
from revarb.errors import InputError
from revarb.runtime.interrupts import exit_on_interrupt


@app.command()
def fit(
    train: Annotated[list[Path], typer.Argument(metavar="TRAIN", help="CSV or Parquet file(s); each is one record.")],
    model_file: Annotated[Path, typer.Option("-o", "--out", help="Where to write the model.")],
    inputs: options.InputColumns = None,
    outputs: options.FitOutputColumns = None,
    trained: Annotated[
        Path | None,
        typer.Option("--from", metavar="MODEL", help="Refit this model to TRAIN, with the columns of its own fit."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="arx|gp-narx|mlp-narx|lstm|gpssm|reduced-rank-gpssm",
            help="Fit this model instead of a recurrent GP or a choice.",
        ),
    ] = None,
    lags: options.Lags = None,
    input_lags: options.InputLags = None,
    input_delay: options.InputDelay = None,
    hidden: options.Hidden = None,
    inducing: Annotated[int | None, typer.Option(help="Inducing inputs M per layer; default: 100.")] = None,
    latent_dim: options.LatentDim = None,
    states: Annotated[
        int | None, typer.Option(help="States of a GP state-space model (--model gpssm: 4, reduced-rank-gpssm: 2).")
    ] = None,
    calibrate: Annotated[
        bool | None,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Set the noise and the bands on held-out blocks, by four more fits; default: yes, with --from no.",
        ),
    ] = None,
    config: options.Config = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the start; default: 0.")] = None,
    restarts: Annotated[
        int | None, typer.Option(help="Number of fits, with seeds SEED, SEED+1, …; all are kept.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Processes that share the fits; -1: one per core. Default of a choice: one per core, at most eight."
        ),
    ] = None,
    members: Annotated[
        int | None, typer.Option(help="Keep the mixture of this many of the best candidates of a choice.", min=1)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Choose among fewer candidates, in a quarter of the time.")
    ] = False,
    linear: Annotated[bool | None, typer.Option("--linear", help="A linear part in every layer.")] = None,
    recipe: Annotated[str | None, typer.Option(help="R0 (default), fixed, smooth or linear.")] = None,
    noise: Annotated[
        str | None,
        typer.Option(metavar="gaussian|student-t", help="Noise of the outputs; student-t for records with outliers."),
    ] = None,
    dt: options.TimeStep = None,
    time_column: options.FitTimes = None,
    decimal: options.Decimal = None,
    separator: options.Separator = None,
    skip_rows: options.SkipRows = 0,
    split_gaps: options.SplitGaps = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue where the same command was killed, or interrupted by Ctrl-C."),
    ] = False,
) -> None:
    """Fit a model to one or more records, and draw the training fit.

    Without options that configure the model, everything is chosen: linear and nonlinear candidates simulate held-out
    blocks of the records, and the simplest one that is as good as the best is taken. A table and a second picture show
    what was tried.

    With --lags (or --hidden, --config, …) that model is fitted, with the defaults below for the other options. Four
    further fits on parts of the records calibrate the noise and the bands (see --no-calibrate). With --restarts the
    file contains all fits, a simulation is their mixture, and the picture shows the best one.

    With --from a model that was fitted before is trained on TRAIN, from its parameters and in a fifth of the time. It
    knows these records only: pass old and new ones. Its bands stay calibrated as they were (see --calibrate).

    With --model another model is fitted, such as the one that `revarb compare` recommends, with --lags, --input-lags
    and --input-delay where it has them. ARX chooses its lags up to these.

    Ctrl-C writes the best model so far; rerun with --resume to continue, with the result of an uninterrupted fit. What
    was killed after more than a minute can be resumed too.
    """
    given = options.collect_given(
        lags=lags, input_lags=input_lags, input_delay=input_delay, hidden=hidden, inducing=inducing,
        latent_dim=latent_dim, states=states, calibrate=calibrate, linear=linear, recipe=recipe, noise=noise,
    )  # fmt: skip
    others = options.collect_given(
        config=None if config is None else str(config), restarts=restarts, jobs=jobs, members=members,
        quick=quick or None, resume=resume or None,
    )  # fmt: skip
    if trained is not None:
        _check_refit(given | others | options.collect_given(model=baseline, seed=seed))
    elif outputs is None:
        raise InputError("Missing option '-y' / '--output-column': name the output column(s)")
    elif baseline is None:
        _check_options(given, others)
    with exit_on_interrupt():
        from revarb.cli import fit_request
        from revarb.cli.tables import leave_out_short, read_files
        from revarb.data.csv_file import CsvForm
        from revarb.data.record_files import Times
        from revarb.models.configuration import Lagged
    form, times = CsvForm(decimal, separator, skip_rows), Times(time_column, dt, split_gaps)
    spec: Any = None
    source = None
    if trained is not None:
        source, times = fit_request.read_source(trained, train, inputs, outputs, times, form)
        spec, inputs, outputs = source.spec, list(source.input_names), list(source.output_names)
    elif baseline is not None:
        spec = fit_request.make_baseline(baseline, given | others)
    elif given or config is not None or restarts is not None:
        spec = fit_request.make_spec(config, given)
    by_file = read_files(train, inputs, outputs, times, form)
    least = spec.order_for(len(inputs or [])).first_row + 2 if isinstance(spec, Lagged) else 1
    records = leave_out_short(by_file, least)
    for ending in (".fit.png", *((".choice.png",) if spec is None else ())):  # before the work
        figure_target(model_file, ending, read=train if trained is None else [*train, trained])
    request = fit_request.FitRequest(records, seed or 0, jobs, resume, model_file)
    if source is not None:
        fit_request.refit(request, source, calibrate is True)
    elif baseline is not None:
        fit_request.fit_baseline(request, spec)
    elif spec is not None:
        fit_request.fit_spec(request, spec, restarts)  # pyright: ignore[reportArgumentType] (an RGP here)
    else:
        fit_request.choose(request, members or 1, "quick" if quick else "normal")


def _check_refit(given: dict[str, Any]) -> None:
    names = [name for name, value in given.items() if name != "calibrate" or value is False]
    if names:
        option = "--no-calibrate" if names[0] == "calibrate" else f"--{names[0].replace('_', '-')}"
        raise InputError(f"{option} cannot be used with --from, which keeps the model's configuration; leave one out")


def _check_options(given: dict[str, Any], others: dict[str, Any]) -> None:
    # Of a recurrent GP that is configured, or of a choice.
    if "states" in given:
        raise InputError("--states is for --model gpssm or reduced-rank-gpssm; the states of an RGP are --latent-dim")
    configured = bool(given) or "config" in others or "restarts" in others
    if list(given) == ["calibrate"] and "config" not in others and "restarts" not in others:
        option = "--calibrate" if given["calibrate"] else "--no-calibrate"
        raise InputError(f"{option} needs --lags or another option that configures the model")
    if not configured:
        return
    for option in ("members", "quick"):
        if option in others:
            raise InputError(f"--{option} is for a choice: leave out --lags and other options that configure the model")
    if "jobs" in others and "restarts" not in others:
        raise InputError("--jobs is for --restarts or for a choice: one fit uses all cores already")
