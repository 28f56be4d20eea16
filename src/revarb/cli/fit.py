"""`revarb fit`: from records to a model."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from revarb.cli import options
from revarb.cli.application import app, find_picture
from revarb.errors import InputError
from revarb.runtime.interrupts import exit_on_interrupt

ELSEWHERE = ("config", "restarts", "jobs", "resume")  # options that are no fields of RGP
OF_CHOICE = ("members", "quick", "time_limit")
UNCONFIGURED = {"calibrate", "jobs", "resume", *OF_CHOICE}  # options that describe no model by themselves


@app.command()
def fit(
    train: Annotated[list[Path], Argument(metavar="TRAIN", help="CSV, Excel or Parquet file(s); each is one record.")],
    model_file: Annotated[Path, Option("-o", "--out", help="Where to write the model.")],
    inputs: options.InputColumns = None,
    outputs: options.FitOutputColumns = None,
    trained: Annotated[
        Path | None,
        Option("--from", metavar="MODEL", help="Refit this model to TRAIN, with the columns of its own fit."),
    ] = None,
    baseline: Annotated[
        str | None,
        Option(
            "--model",
            metavar="arx|gp-narx|mlp-narx|lstm|gpssm|reduced-rank-gpssm",
            help="Fit this model instead of a recurrent GP or a choice.",
        ),
    ] = None,
    lags: options.Lags = None,
    input_lags: options.InputLags = None,
    input_delay: options.InputDelay = None,
    hidden: options.Hidden = None,
    inducing: Annotated[int | None, Option(help="Inducing inputs M per layer; default: 100.")] = None,
    latent_dim: options.LatentDim = None,
    states: Annotated[
        int | None, Option(help="States of a GP state-space model (--model gpssm: 4, reduced-rank-gpssm: 2).")
    ] = None,
    calibrate: Annotated[
        bool | None,
        Option(help="Set the noise and the bands on held-out blocks, by four more fits; default: yes, with --from no."),
    ] = None,
    config: options.Config = None,
    seed: Annotated[int | None, Option(help="Seed of the start; default: 0.")] = None,
    restarts: Annotated[int | None, Option(help="Number of fits, with seeds SEED, SEED+1, …; all are kept.")] = None,
    jobs: Annotated[
        int | None,
        Option(
            help="Processes that share the fits; -1: one per core. Default of a choice: one per core, at most eight."
        ),
    ] = None,
    members: Annotated[
        int | None,
        Option(help="At most so many candidates are mixed; 1: no mixture; default: 5.", min=1),
    ] = None,
    quick: Annotated[bool, Option("--quick", help="Choose among fewer candidates, in half of the time.")] = False,
    time_limit: Annotated[
        float | None,
        Option(
            metavar="SECONDS", help="Try no candidate that would not finish by then; linear models are always tried."
        ),
    ] = None,
    linear: Annotated[bool | None, Option("--linear", help="A linear part in every layer.")] = None,
    recipe: Annotated[str | None, Option(help="R0 (default), fixed, smooth or linear.")] = None,
    noise: Annotated[
        str | None,
        Option(metavar="gaussian|student-t", help="Noise of the outputs; student-t for records with outliers."),
    ] = None,
    dt: options.TimeStep = None,
    time_column: options.FitTimes = None,
    decimal: options.Decimal = None,
    separator: options.Separator = None,
    skip_rows: options.SkipRows = 0,
    split_gaps: options.SplitGaps = False,
    sort_time: options.SortTime = False,
    resume: Annotated[
        bool, Option("--resume", help="Continue where the same command was killed, or interrupted by Ctrl-C.")
    ] = False,
) -> None:
    """Fit a model to one or more records, and draw the training fit.

    Without options that configure the model, everything is chosen: linear and nonlinear candidates simulate held-out
    blocks of the records. The best ones (--members) are fitted to all records, without those that are clearly worse
    than the first, and the model is their mixture, with bands set on the same blocks. A linear model that is best is
    taken alone. A table and a second picture show what was tried. How long it takes is said before it starts; see
    --quick and --time-limit.

    With --lags (or --hidden, --config, …) that model is fitted, with the defaults below for the other options. Four
    further fits on parts of the records calibrate the noise and the bands (see --no-calibrate). With --restarts the
    file contains all fits, a simulation is their mixture, and the picture shows the best one.

    With --from a model that was fitted before is trained on TRAIN, from its parameters and in a fifth of the time; of a
    mixture all members are. It knows these records only: pass old and new ones. Its bands stay calibrated as they were
    (see --calibrate).

    With --model another model is fitted, such as the one that `revarb compare` recommends, with --lags, --input-lags
    and --input-delay where it has them. ARX chooses its lags up to these.

    Ctrl-C writes the best model so far; rerun with --resume to continue, with the result of an uninterrupted fit. What
    was killed after more than a minute can be resumed too.
    """
    given = options.collect_given(
        lags=lags, input_lags=input_lags, input_delay=input_delay, hidden=hidden, inducing=inducing,
        latent_dim=latent_dim, states=states, calibrate=calibrate, linear=linear, recipe=recipe, noise=noise,
        config=config, restarts=restarts, jobs=jobs, members=members, quick=quick or None, time_limit=time_limit,
        resume=resume or None,
    )  # fmt: skip
    configured = bool(given.keys() - UNCONFIGURED)
    if trained is not None:
        _check_refit(given | options.collect_given(model=baseline, seed=seed))
    elif outputs is None:
        raise InputError("Missing option '-y' / '--output-column': name the output column(s)")
    elif baseline is None:
        _check_options(given, configured)
    with exit_on_interrupt():
        from revarb.cli.records import leave_out_short, read_files, read_files_of_model
        from revarb.data.csv_file import CsvForm
        from revarb.data.record_files import Times
        from revarb.data.series import check_enough_rows
    form, times = CsvForm(decimal, separator, skip_rows), Times(time_column, dt, split_gaps, sort_time)
    chosen = trained is None and baseline is None and not configured
    for ending in (".fit.png", ".choice.png") if chosen else (".fit.png",):
        find_picture(model_file, ending, train if trained is None else [*train, trained])
    # The files are checked before JAX is imported, which takes seconds.
    if trained is not None:
        by_file = read_files_of_model(trained, train, inputs, outputs, times, form)
    else:
        by_file = read_files(train, inputs, outputs, times, form)
        check_enough_rows([record for records in by_file for record in records])
    with exit_on_interrupt():
        from revarb.cli import fit_request
        from revarb.models.configuration import Lagged
    spec, least = None, 1
    if trained is not None:
        source = fit_request.load_source(trained)
        least = source.order.first_row + 2
        carry_out = partial(fit_request.refit, trained=source, calibrated=calibrate is True)
    elif baseline is not None:
        spec = fit_request.make_baseline(baseline, given)
        carry_out = partial(fit_request.fit_baseline, spec=spec)
    elif configured:
        spec = fit_request.make_spec(config, {name: value for name, value in given.items() if name not in ELSEWHERE})
        carry_out = partial(fit_request.fit_spec, spec=spec, restarts=restarts)
    else:
        limits = options.collect_given(members=members, time_limit=time_limit, effort="quick" if quick else None)
        carry_out = partial(fit_request.choose, **limits)
    if isinstance(spec, Lagged):
        least = spec.order_for(len(inputs or [])).first_row + 2
    records = leave_out_short(by_file, least)
    carry_out(fit_request.FitRequest(records, seed or 0, jobs, resume, model_file))


def _check_refit(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if (name, value) != ("calibrate", True):
            raise InputError(
                f"{options.name_option(name, value)} cannot be used with --from, which keeps the model's "
                "configuration; leave one out"
            )


def _check_options(given: dict[str, Any], configured: bool) -> None:
    # Of a recurrent GP that is configured, or of a choice.
    if "states" in given:
        raise InputError("--states is for --model gpssm or reduced-rank-gpssm; the states of an RGP are --latent-dim")
    if "calibrate" in given and not configured:
        option = options.name_option("calibrate", given["calibrate"])
        raise InputError(f"{option} needs --lags or another option that configures the model")
    for option in OF_CHOICE:
        if option in given and configured:
            named = options.name_option(option)
            raise InputError(f"{named} is for a choice: leave out --lags and other options that configure the model")
    if configured and "jobs" in given and "restarts" not in given:
        raise InputError("--jobs is for --restarts or for a choice: one fit uses all cores already")
