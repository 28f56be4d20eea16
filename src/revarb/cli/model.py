"""`revarb fit`, `revarb simulate`, `revarb demo`: from a record to a model to a trajectory."""

import time
import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from revarb import datasets, experiments
from revarb.baselines import Mean
from revarb.cli.app import app, complain, read_records, read_toml, say_written, screen
from revarb.errors import InputError
from revarb.files import check_target, make_folder, write_whole
from revarb.fitted import FittedRGP
from revarb.interrupts import held_interrupts
from revarb.journal import kept_journals
from revarb.load import load
from revarb.optimise import Status
from revarb.report.figures import fit_figure, simulation_figure
from revarb.report.tables import score_table
from revarb.results import write_results
from revarb.rgp import RGP
from revarb.scores import scores
from revarb.table import Table, is_same_interval, sampling_interval, write_table
from revarb.trajectory import Trajectory

DEMO_RECORD = 3  # experiments/demo.toml says why
KEPT = "the best model so far was kept"


@app.command()
def fit(
    train: Annotated[list[Path], typer.Argument(help="CSV or Parquet file(s); each is one record.")],
    outputs: Annotated[list[str], typer.Option("-y", "--output-column", help="Output column; repeat for several.")],
    model_file: Annotated[Path, typer.Option("-o", "--out", help="Where to write the model.")],
    inputs: Annotated[list[str] | None, typer.Option("-u", "--input-column", help="Input column; repeat.")] = None,
    lags: Annotated[int | None, typer.Option(help="State lags L.")] = None,
    input_lags: Annotated[int | None, typer.Option(help="Input lags L_u.")] = None,
    input_delay: Annotated[int | None, typer.Option(help="Age of the newest input: 1; 0 for feedthrough.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Hidden layers H.")] = None,
    inducing: Annotated[int | None, typer.Option(help="Inducing inputs M per layer.")] = None,
    latent_dim: Annotated[int | None, typer.Option(help="Latent states per layer.")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with fields of RGP and a [recipe].")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the start.")] = 0,
    restarts: Annotated[int | None, typer.Option(help="Fit so often, with seeds SEED, SEED+1, …; keep all.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes that share the restarts; -1: one per core.")] = None,
    dt: Annotated[float | None, typer.Option(help="Sampling interval, for pictures; default: 1.")] = None,
    time_column: Annotated[
        str | None, typer.Option("--time", help="Column of times; must be even, and gives dt.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the same command was killed.")] = False,
) -> None:
    """Fit a model to one or more records; draws the training fit and the latent paths next to the model.

    With --restarts the file holds all fits; a simulation is then their mixture, and the picture shows the best one.
    A fit of more than a minute can be resumed: the same command with --resume gives the model it would have given.
    """
    spec = _configured(
        config, lags=lags, input_lags=input_lags, input_delay=input_delay, hidden=hidden, inducing=inducing,
        latent_dim=latent_dim,
    )  # fmt: skip
    records = read_records(train, inputs or [], outputs, dt, time_column)
    picture = _picture_beside(model_file, ".fit.png", read=train)
    begun = time.perf_counter()
    if restarts is None and jobs is not None:
        raise InputError("--jobs is for --restarts: one fit uses all cores already")
    with kept_journals():  # until the model is on disk
        if restarts is None:
            members = (model := spec.fit(records, seed=seed, progress=True, resume=resume),)
        else:
            model = spec.fit(records, seed=seed, restarts=restarts, jobs=jobs, progress=True, resume=resume)
            members = model.members
        seconds = time.perf_counter() - begun
        best = max(members, key=lambda member: member.bound)
        with held_interrupts():
            model.save(model_file)
            write_whole(picture, fit_figure(best, records))
    _say_fitted(members, sum(len(record) for record in records), len(records), seconds)
    if model.status is Status.INTERRUPTED:
        complain("interrupted", f"{len(members)} of {restarts} fits were kept" if restarts else KEPT)
    say_written(model_file, picture)


@app.command()
def simulate(
    model_file: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `revarb fit` wrote.")],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="CSV or Parquet file with the input columns.")],
    path_file: Annotated[Path, typer.Option("-o", "--out", help="Where to write the simulated trajectory (CSV).")],
    method: Annotated[str, typer.Option(help="moments, mean, samples or network.")] = "moments",
    seed: Annotated[int, typer.Option(help="Seed of method=samples.")] = 0,
    samples: Annotated[int, typer.Option(help="Number of trajectories of method=samples, a column each.")] = 200,
    time_column: Annotated[
        str | None, typer.Option("--time", help="Column of times; must be even, and as in the fit.")
    ] = None,
) -> None:
    """Simulate a model on new inputs; draws it, and scores it where the file has the measured output."""
    model = load(model_file)
    table = Table(test)
    if time_column is not None:
        _check_sampling(table, time_column, model.dt)
    picture = _picture_beside(path_file, ".png", read=(model_file, test))
    measured = _measured(table, model.output_names)
    u, steps = (table.columns(model.input_names), None) if model.input_names else (None, len(table))
    path = model.simulate(u, method=_method(method), steps=steps, samples=samples, seed=seed)
    with held_interrupts():
        write_table(path_file, _trajectory_columns(path))
        write_whole(picture, simulation_figure(path, measured, f"Free simulation of {test.name}"))
    if measured is not None and not np.isnan(measured[path.skip :]).all():
        screen.print(score_table({path.method: scores(path, measured)}))
    if path.warning is not None:
        complain("warning", path.warning)
    say_written(path_file, picture)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the data, the model and the pictures.")] = Path(
        "revarb-demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the start of the fit.")] = 0,
) -> None:
    """The Artificial benchmark end to end: 300 noisy samples in, 300 simulated samples with bands out."""
    make_folder(folder)
    split = datasets.load("artificial", seed=DEMO_RECORD)
    for name, record in (("train.csv", split.train), ("test.csv", split.test)):
        write_table(folder / name, {"u": record.u[:, 0], "y": record.y[:, 0]})
    settings = experiments.shipped_text("demo.toml")
    write_whole(folder / "rgp.toml", settings.encode())
    screen.print(
        f"fitting record {DEMO_RECORD} of the Artificial benchmark (Narendra & Li 1996), 300 noisy samples: one that "
        "goes well; rgp.toml says how others go",
        soft_wrap=True,
    )
    model = RGP.from_dict(tomllib.loads(settings)).fit(split.train, seed=seed, progress=True)
    model.save(folder / "model.rgp")
    write_whole(folder / "fit.png", fit_figure(model, [split.train]))
    paths = {method: model.simulate(split.test.u, method=method) for method in ("moments", "mean")}
    rows = {f"revarb, {name}": scores(path, split.test.y) for name, path in paths.items()}
    rows["training mean"] = scores(Mean().fit(split.train).simulate(split.test.u), split.test.y, skip=split.skip)
    screen.print(score_table(rows))
    meta = {"table": "demo", "command": f"revarb demo --out {folder}", "record": DEMO_RECORD, "seed": seed}
    write_results(folder / "scores.json", meta, [{"model": name, **asdict(row)} for name, row in rows.items()])
    title = "Artificial: free simulation of unseen inputs"
    write_whole(folder / "simulation.png", simulation_figure(paths["moments"], split.test.y, title))
    write_table(folder / "simulation.csv", _trajectory_columns(paths["moments"]))
    say_written(*sorted(folder.iterdir()))
    screen.print("the same by hand, on your own columns:", style="bold")
    screen.print(f"  revarb fit {folder}/train.csv -u u -y y --config {folder}/rgp.toml -o m.rgp", soft_wrap=True)
    screen.print(f"  revarb simulate m.rgp {folder}/test.csv -o path.csv", soft_wrap=True)


def _say_fitted(members: Sequence[FittedRGP], samples: int, records: int, seconds: float) -> None:
    screen.print(f"fitted {records} record(s), {samples} samples in {seconds:.1f} s")
    for member in members:
        ended = f"{member.status.value} after {len(member.history)} iterations"
        screen.print(f"  seed {member.seed}: {ended}, bound {member.bound:.2f}")


def _configured(config: Path | None, **options: int | None) -> RGP:
    # Options that were not given stay as the configuration file has them, or else as RGP does.
    values = {} if config is None else read_toml(config)
    return RGP.from_dict({**values, **{name: value for name, value in options.items() if value is not None}})


def _trajectory_columns(path: Trajectory) -> dict[str, np.ndarray]:
    columns: dict[str, np.ndarray] = {}
    band = None if path.std is None else path.interval(0.95)
    for column, name in enumerate(path.output_names):
        columns[f"{name}_mean"] = path.mean[:, column]
        if path.std is not None and band is not None:
            columns[f"{name}_std"] = path.std[:, column]
            columns[f"{name}_lower"], columns[f"{name}_upper"] = band[0][:, column], band[1][:, column]
        if path.samples is not None:
            columns |= {f"{name}_sample{k}": path.samples[k, :, column] for k in range(len(path.samples))}
    return columns


def _check_sampling(table: Table, column: str, dt: float) -> None:
    interval = sampling_interval(table, column)
    if not is_same_interval(interval, dt):
        raise InputError(
            f"{table.path} is sampled every {interval:g}, but the model was fitted with dt={dt:g}; resample the file, "
            "or fit with --time or --dt"
        )


def _method(name: str):
    if name not in ("moments", "mean", "samples", "network"):
        raise InputError(f"--method must be moments, mean, samples or network, received {name!r}")
    return name


def _picture_beside(target: Path, suffix: str, read: Sequence[Path]) -> Path:
    # Everything that is going to be written, checked before the work: it must not replace what is read, nor each other.
    picture = check_target(check_target(target).with_suffix(suffix))
    if picture.resolve() == target.resolve():
        raise InputError(f"-o {target} is where the picture goes; choose another ending")
    for path in read:
        if path.resolve() in (target.resolve(), picture.resolve()):
            raise InputError(f"-o {target} would overwrite {path}, which is read; choose another name")
    return picture


def _measured(table: Table, names: Sequence[str]) -> np.ndarray | None:
    if not all(name in table for name in names):
        return None
    try:
        return table.columns(names, missing=True)
    except InputError as error:  # the measured output is welcome, not needed
        warnings.warn(f"{error}; simulating without scores", stacklevel=2)
        return None
