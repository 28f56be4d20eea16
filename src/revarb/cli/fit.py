"""`revarb fit`: from records to a model."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app, figure_target, print_line, print_written, screen
from revarb.config.plain_values import read_toml
from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.data.tables.records import read_records
from revarb.errors import InputError
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.journal import keep_journals
from revarb.optim.status import Status
from revarb.runtime.figure_style import save_figure
from revarb.runtime.interrupts import capture_interrupts
from revarb.training.stretches import MIN_ROWS, cut_stretches


@app.command()
def fit(
    train: Annotated[
        list[Path], typer.Argument(metavar="TRAIN...", help="CSV or Parquet file(s); each is one record.")
    ],
    outputs: Annotated[list[str], typer.Option("-y", "--output-column", help="Output column; repeat for several.")],
    model_file: Annotated[Path, typer.Option("-o", "--out", help="Where to write the model.")],
    inputs: Annotated[list[str] | None, typer.Option("-u", "--input-column", help="Input column; repeat.")] = None,
    lags: Annotated[int | None, typer.Option(help="State lags L.")] = None,
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
    jobs: Annotated[int | None, typer.Option(help="Processes that share the restarts; -1: one per core.")] = None,
    dt: Annotated[float | None, typer.Option(help="Sampling interval, for pictures; default: 1.")] = None,
    time_column: Annotated[
        str | None, typer.Option("--time", help="Column of times; must be even, and gives dt.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue where the same command was killed.")] = False,
) -> None:
    """Fit a model to one or more records and draw the training fit and the latent paths beside it.

    Four further fits on parts of the records calibrate the noise and the bands (see --no-calibrate). With --restarts
    the file contains all fits, a simulation is their mixture, and the picture shows the best one. A fit of more than a
    minute can be resumed: the same command with --resume gives the same model.
    """
    spec = _make_spec(
        config, lags=lags, input_lags=input_lags, input_delay=input_delay, hidden=hidden, inducing=inducing,
        latent_dim=latent_dim, calibrate=False if uncalibrated else None,
    )  # fmt: skip
    records = read_records(train, inputs=inputs or [], outputs=outputs, time=time_column, dt=dt)
    picture = figure_target(model_file, ".fit.png", read=train)
    started = time.perf_counter()
    if restarts is None and jobs is not None:
        raise InputError("--jobs is for --restarts: one fit uses all cores already")
    with keep_journals():  # until the model is on disk
        if restarts is None:
            members = (model := spec.fit(records, seed=seed, progress=True, resume=resume),)
        else:
            model = spec.fit(records, seed=seed, restarts=restarts, jobs=jobs, progress=True, resume=resume)
            members = model.members
        seconds = time.perf_counter() - started
        with capture_interrupts():
            model.save(model_file)
            save_figure(picture, model.plot_fit(records))
    _print_fit(members, sum(len(record) for record in records), len(records), seconds)
    screen.print(_describe_calibration(members, records), soft_wrap=True)
    if model.status is Status.INTERRUPTED:
        print_line(
            "interrupted",
            f"{len(members)} of {restarts} fits were kept" if restarts else "the best model so far was kept",
        )
    print_written(model_file, picture)


def _print_fit(members: Sequence[FittedRGP], samples: int, records: int, seconds: float) -> None:
    screen.print(f"fitted {records} record(s), {samples} samples in {seconds:.1f} s")
    for member in members:
        ended = f"{member.status.value} after {len(member.history)} iterations"
        screen.print(f"  seed {member.seed}: {ended}, bound {member.bound:.2f}")


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


def _make_spec(config: Path | None, **options: int | None) -> RGP:
    # Options that were not given stay as the configuration file has them, or else as RGP does.
    values = {} if config is None else read_toml(config)
    return RGP.from_dict({**values, **{name: value for name, value in options.items() if value is not None}})
