"""`revarb fit`: from records to a model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app
from revarb.cli.options import (
    INPUT_DELAY,
    Decimal,
    FitOutputColumns,
    FitTimes,
    InputColumns,
    Separator,
    SkipRows,
    SplitGaps,
    TimeStep,
    collect_given,
)
from revarb.errors import InputError
from revarb.runtime.interrupts import exit_on_interrupt


@app.command()
def fit(
    train: Annotated[list[Path], typer.Argument(metavar="TRAIN", help="CSV or Parquet file(s); each is one record.")],
    model_file: Annotated[Path, typer.Option("-o", "--out", help="Where to write the model.")],
    inputs: InputColumns = None,
    outputs: FitOutputColumns = None,
    trained: Annotated[
        Path | None,
        typer.Option("--from", metavar="MODEL", help="Refit this model to TRAIN; it says what the columns are."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="arx|gp-narx|mlp-narx|lstm|gpssm|reduced-rank-gpssm",
            help="Fit this model instead of a recurrent GP or a choice.",
        ),
    ] = None,
    lags: Annotated[int | None, typer.Option(help="State lags L; default: 10.")] = None,
    input_lags: Annotated[int | None, typer.Option(help="Input lags L_u; default: 10.")] = None,
    input_delay: Annotated[int | None, typer.Option(help=f"{INPUT_DELAY}; default: 1.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Hidden layers H; default: 2.")] = None,
    inducing: Annotated[int | None, typer.Option(help="Inducing inputs M per layer; default: 100.")] = None,
    latent_dim: Annotated[int | None, typer.Option(help="Latent states per layer; default: 1.")] = None,
    states: Annotated[
        int | None, typer.Option(help="States of a GP state-space model (--model gpssm: 4, reduced-rank-gpssm: 2).")
    ] = None,
    calibrate: Annotated[
        bool | None,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Set the noise and the bands on held-out stretches, by four more fits; default: yes, with --from no.",
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with fields of RGP and a table [recipe].")] = None,
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
    dt: TimeStep = None,
    time_column: FitTimes = None,
    decimal: Decimal = None,
    separator: Separator = None,
    skip_rows: SkipRows = 0,
    split_gaps: SplitGaps = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue where the same command was killed, or interrupted by Ctrl-C."),
    ] = False,
) -> None:
    """Fit a model to one or more records, and draw the training fit.

    Without options that say what the model is, everything is chosen: linear and nonlinear candidates simulate held-out
    stretches of the records, and the simplest one that is as good as the best is taken. A table and a second picture
    show what was tried.

    With --lags (or --hidden, --config, …) that model is fitted, with the defaults below for what is not said. Four
    further fits on parts of the records calibrate the noise and the bands (see --no-calibrate). With --restarts the
    file contains all fits, a simulation is their mixture, and the picture shows the best one.

    With --from a model that was fitted before is trained on TRAIN, from its parameters and in a fifth of the time. It
    knows these records only: pass old and new ones. Its bands stay calibrated as they were (see --calibrate).

    With --model another model is fitted, such as the one that `revarb compare` recommends, with --lags, --input-lags
    and --input-delay where it has them. ARX chooses its lags up to these.

    Ctrl-C writes the best model so far; the same command with --resume goes on and gives the model of an uninterrupted
    fit. What was killed after more than a minute can be resumed too.
    """
    given = collect_given(
        lags=lags, input_lags=input_lags, input_delay=input_delay, hidden=hidden, inducing=inducing,
        latent_dim=latent_dim, states=states, calibrate=calibrate, linear=linear, recipe=recipe, noise=noise,
    )  # fmt: skip
    others = collect_given(
        config=None if config is None else str(config), restarts=restarts, jobs=jobs, members=members,
        quick=quick or None, resume=resume or None,
    )  # fmt: skip
    if trained is not None:
        _check_refit(given | others | collect_given(model=baseline, seed=seed))
    elif outputs is None:
        raise InputError("Missing option '-y' / '--output-column': name the output column(s)")
    if states is not None and baseline is None:
        raise InputError("--states is for --model gpssm or reduced-rank-gpssm; the states of an RGP are --latent-dim")
    if baseline is not None:
        given |= others
    elif list(given) == ["calibrate"] and config is None and restarts is None and trained is None:
        option = "--calibrate" if calibrate else "--no-calibrate"
        raise InputError(f"{option} needs --lags or another option that says what the model is")
    chosen = baseline is None and trained is None and not given and config is None and restarts is None
    _check_combination(chosen or baseline is not None, restarts, jobs, members, quick)
    with exit_on_interrupt():
        from revarb.cli.work.baseline import fit_baseline, make_baseline
        from revarb.cli.work.fit import Work, check_targets, choose, fit_spec, make_spec, refit
        from revarb.cli.work.reading import count_rows_to_fit, leave_out_short, read_files
        from revarb.cli.work.refit import read_source
        from revarb.data.tables.csv_form import CsvForm
        from revarb.data.tables.records import Times
    form, times = CsvForm(decimal, separator, skip_rows), Times(time_column, dt, split_gaps)
    other = None if baseline is None else make_baseline(baseline, given)
    spec = None if chosen or other is not None or trained is not None else make_spec(config, given)
    source = None if trained is None else read_source(trained, train, inputs, outputs, times, form)
    if source is not None:
        spec, inputs, outputs, times = source.model.spec, source.inputs, source.outputs, source.times
    by_file = read_files(train, inputs or [], outputs or [], times, form)
    records = leave_out_short(by_file, count_rows_to_fit(other or spec, len(inputs or [])))
    read = train if trained is None else [*train, trained]
    work = Work(records, seed or 0, jobs, resume, *check_targets(model_file, read, chosen))
    if source is not None:
        refit(work, source.model, calibrate is True)
    elif other is not None:
        fit_baseline(work, other)
    elif spec is not None:
        fit_spec(work, spec, restarts)
    else:
        choose(work, members or 1, "quick" if quick else "normal")


def _check_refit(given: Mapping[str, int | str]) -> None:
    names = [name for name, value in given.items() if name != "calibrate" or value is False]
    if names:
        option = "--no-calibrate" if names[0] == "calibrate" else f"--{names[0].replace('_', '-')}"
        raise InputError(f"{option} does not go with --from: the model says what it is; leave one of them out")


def _check_combination(chosen: bool, restarts: int | None, jobs: int | None, members: int | None, quick: bool) -> None:
    if chosen:
        return
    for option, given in (("--members", members is not None), ("--quick", quick)):
        if given:
            raise InputError(
                f"{option} is for a choice: leave out --lags and the other options that say what the model is"
            )
    if restarts is None and jobs is not None:
        raise InputError("--jobs is for --restarts or for a choice: one fit uses all cores already")
