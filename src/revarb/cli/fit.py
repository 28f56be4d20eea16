"""`revarb fit`: from records to a model."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import typer

from revarb.cli.application import app, figure_target, print_line, print_written, screen
from revarb.config.plain_values import read_toml
from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.data.tables.records import read_records
from revarb.errors import InputError
from revarb.models.choice import Choice
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.journal import keep_journals
from revarb.optim.status import Status
from revarb.runtime.figure_style import save_figure
from revarb.runtime.interrupts import capture_interrupts
from revarb.training.choose import fit as choose_model
from revarb.training.stretches import MIN_ROWS, cut_stretches

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Trained = FittedRGP | FittedARX | Ensemble


@app.command()
def fit(
    train: Annotated[
        list[Path], typer.Argument(metavar="TRAIN...", help="CSV or Parquet file(s); each is one record.")
    ],
    outputs: Annotated[list[str], typer.Option("-y", "--output-column", help="Output column; repeat for several.")],
    model_file: Annotated[Path, typer.Option("-o", "--out", help="Where to write the model.")],
    inputs: Annotated[list[str] | None, typer.Option("-u", "--input-column", help="Input column; repeat.")] = None,
    lags: Annotated[
        int | None,
        typer.Option(
            help="State lags L; without this and other options that describe the model, everything is chosen."
        ),
    ] = None,
    input_lags: Annotated[int | None, typer.Option(help="Input lags L_u.")] = None,
    input_delay: Annotated[int | None, typer.Option(help="Age of the newest input: 1; 0 for feedthrough.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Hidden layers H.")] = None,
    inducing: Annotated[int | None, typer.Option(help="Inducing inputs M per layer.")] = None,
    latent_dim: Annotated[int | None, typer.Option(help="Latent states per layer.")] = None,
    uncalibrated: Annotated[
        bool, typer.Option("--no-calibrate", help="Leave the noise and the bands as fitted; saves four fits.")
    ] = False,
    config: Annotated[Path | None, typer.Option(help="TOML file with fields of RGP and a table \\[recipe].")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the start.")] = 0,
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
    linear: Annotated[bool | None, typer.Option("--linear", help="A linear part in every layer.")] = None,
    recipe: Annotated[str | None, typer.Option(help="R0 (default), fixed, smooth or linear.")] = None,
    dt: Annotated[float | None, typer.Option(help="Sampling interval, for pictures; default: 1.")] = None,
    time_column: Annotated[
        str | None, typer.Option("--time", help="Column of times; must be even, and gives dt.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue where the same command was killed, or its choice interrupted by Ctrl-C."
        ),
    ] = False,
) -> None:
    """Fit a model to one or more records and draw the training fit beside it.

    Without options that say what the model is, everything is chosen: linear and nonlinear candidates simulate held-out
    stretches of the records, and the simplest one that is as good as the best is taken. A table and a second picture
    show what was tried.

    With --lags (or --hidden, --config, …) that model is fitted. Four further fits on parts of the records calibrate the
    noise and the bands (see --no-calibrate). With --restarts the file contains all fits, a simulation is their mixture,
    and the picture shows the best one. What takes more than a minute can be resumed: the same command with --resume
    gives the same model.
    """
    given = _collect(
        lags=lags, input_lags=input_lags, input_delay=input_delay, hidden=hidden, inducing=inducing,
        latent_dim=latent_dim, calibrate=False if uncalibrated else None, linear=linear, recipe=recipe,
    )  # fmt: skip
    if list(given) == ["calibrate"] and config is None and restarts is None:
        raise InputError("--no-calibrate needs --lags or another option that says what the model is")
    chosen = not given and config is None and restarts is None
    _check_combination(chosen, restarts, jobs, members)
    spec = None if chosen else _make_spec(config, given)
    records = read_records(train, inputs=inputs or [], outputs=outputs, time=time_column, dt=dt)
    work = _Work(records, seed, jobs, resume, *_check_targets(model_file, train, chosen))
    if spec is None:
        _choose(work, members or 1)
    else:
        _fit_spec(work, spec, restarts)


class _Work(NamedTuple):
    """The records, how to fit them, and the files to write."""

    records: Sequence[Series]
    seed: int
    jobs: int | None
    resume: bool
    model_file: Path
    fit_picture: Path
    choice_picture: Path | None

    @property
    def size(self) -> str:
        """How much data there is, for messages."""
        return f"{len(self.records)} record(s), {sum(len(record) for record in self.records)} samples"


def _collect(**options: int | str | None) -> dict[str, int | str]:
    # The options that were given; any of them says what the model is.
    return {name: value for name, value in options.items() if value is not None}


def _check_combination(chosen: bool, restarts: int | None, jobs: int | None, members: int | None) -> None:
    if chosen:
        return
    if members is not None:
        raise InputError("--members is for a choice: leave out --lags and the other options that say what the model is")
    if restarts is None and jobs is not None:
        raise InputError("--jobs is for --restarts or for a choice: one fit uses all cores already")


def _check_targets(model_file: Path, train: Sequence[Path], chosen: bool) -> tuple[Path, Path, Path | None]:
    # Before the work: all files can be written, and none is an input.
    fit_picture = figure_target(model_file, ".fit.png", read=train)
    return model_file, fit_picture, figure_target(model_file, ".choice.png", read=train) if chosen else None


def _fit_spec(work: _Work, spec: RGP, restarts: int | None) -> None:
    started = time.perf_counter()
    with keep_journals():  # until the model is on disk
        if restarts is None:
            model = spec.fit(work.records, seed=work.seed, progress=True, resume=work.resume)
        else:
            model = spec.fit(
                work.records, seed=work.seed, restarts=restarts, jobs=work.jobs, progress=True, resume=work.resume
            )  # fmt: skip
        seconds = time.perf_counter() - started
        written = _write(work, model)
    fits = _list_fits(model)
    _print_fit(fits, work.size, seconds)
    screen.print(_describe_calibration(fits, work.records), soft_wrap=True)
    _print_verdict(model)
    if model.status is Status.INTERRUPTED:
        kept = f"{len(fits)} of {restarts} fits were kept" if restarts else "the best model so far was kept"
        print_line("interrupted", kept)
    print_written(*written)


def _choose(work: _Work, members: int) -> None:
    started = time.perf_counter()
    with keep_journals():  # until the model is on disk
        found = choose_model(work.records, work.seed, work.jobs, progress=True, members=members, resume=work.resume)
        model, choice = cast("Trained", found), found.choice
        seconds = time.perf_counter() - started
        written = _write(work, model)
    screen.print(f"chosen on {work.size} in {seconds:.1f} s")
    assert choice is not None
    screen.print(choice.summary())
    if _is_compared(choice):
        screen.print(_describe_bands(model, work.records), soft_wrap=True)
    _print_verdict(model)
    if model.status is Status.INTERRUPTED:
        print_line("interrupted", "the best candidate so far was kept; the same command with --resume goes on")
    print_written(*written)


def _write(work: _Work, model: Trained) -> list[Path]:
    with capture_interrupts():
        written = [model.save(work.model_file), save_figure(work.fit_picture, _draw_fit(work, model))]
        if work.choice_picture is not None and model.choice is not None and _is_compared(model.choice):
            written.append(save_figure(work.choice_picture, model.choice.plot()))
    return written


def _draw_fit(work: _Work, model: Trained) -> "Figure":
    try:
        return model.plot_fit(work.records)
    except InputError:
        # After Ctrl-C the model that is kept may be a fit to parts of long records: then without the measured values.
        if isinstance(model, FittedARX) or model.status is not Status.INTERRUPTED:
            raise
        return model.plot_fit()


def _list_fits(model: Trained) -> tuple[FittedRGP, ...]:
    # The recurrent GPs that a model consists of; none of a linear one.
    if isinstance(model, Ensemble):
        return model.members
    return (model,) if isinstance(model, FittedRGP) else ()


def _is_compared(choice: Choice) -> bool:
    # False where the records were too short to hold anything out.
    return choice.taken_candidate.error is not None


def _describe_bands(model: Trained, records: Sequence[Series]) -> str:
    if isinstance(model, FittedARX):
        return "the bands of the linear model are set by its errors on the held-out stretches"
    return _describe_calibration(_list_fits(model), records)


def _print_fit(members: Sequence[FittedRGP], size: str, seconds: float) -> None:
    screen.print(f"fitted {size} in {seconds:.1f} s")
    for member in members:
        ended = f"{member.status.value} after {len(member.history)} iterations"
        screen.print(f"  seed {member.seed}: {ended}, bound {member.bound:.2f}")


def _print_verdict(model: Trained) -> None:
    if model.verdict is not None:
        screen.print(model.verdict, style="bold", soft_wrap=True)


def _describe_calibration(members: Sequence[FittedRGP], records: Sequence[Series]) -> str:
    # The result of the calibration over all members, or why there is none.
    found = [(member, member.calibration) for member in members if member.calibration is not None]
    if not found:
        return f"not calibrated: {_why_not(members[0], records)}"
    errors, latent, output, far = zip(
        *((known.error, known.latent_scale, known.output_noise / float(member.trained.chain.last_layer.sigma2),
           known.factors[-1]) for member, known in found),
        strict=True,
    )  # fmt: skip
    which = "" if len(found) == len(members) else f"{len(found)} of {len(members)} fits "
    return (
        f"{which}calibrated on {found[0][1].stretches} held-out stretches: median error {_range(errors, '.2f')} of the "
        f"output's std; noise variance: latent x {_range(latent, 'g')}, output x {_range(output, '.3g')}; "
        f"long-run band x {_range(far, '.2f')}"
    )


def _why_not(model: FittedRGP, records: Sequence[Series]) -> str:
    if not model.spec.calibrate:
        return "switched off"
    if model.status is Status.INTERRUPTED:
        return "interrupted"
    if not cut_stretches(records, model.preprocessor):
        several = "record is" if len(records) == 1 else "records are"
        return f"the {several} too short (fewer than {MIN_ROWS} samples once runs have settled)"
    return "a fit without one of the stretches failed"


def _range(values: Sequence[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def _make_spec(config: Path | None, given: dict[str, int | str]) -> RGP:
    # Options that were not given stay as the configuration file has them, or else as RGP does.
    values = {} if config is None else read_toml(config)
    return RGP.from_dict({**values, **given})
