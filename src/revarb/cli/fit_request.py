"""What `revarb fit` carries out: fit a configuration or a baseline, refit a model, or choose one; write the files."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import jax

from revarb import ARX, GPNARX, GPSSM, LSTM, MLPNARX, RGP, FittedRGP, ReducedRankGPSSM, Series, load
from revarb import fit as choose_model
from revarb.baselines.state_space.fitted_state_space import FittedStateSpace
from revarb.cli import fit_report
from revarb.cli.application import print_written, screen, stop_interrupted
from revarb.cli.options import RESUME
from revarb.data.csv_file import CsvForm
from revarb.data.record_files import Times
from revarb.data.table_file import Table
from revarb.errors import ComputationError, InputError, warn_user
from revarb.models.base import Fitted
from revarb.models.configuration import read_toml
from revarb.models.status import Status
from revarb.runtime.figure_style import save_figure
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.unfinished import keep_journals

BASELINES = {
    "arx": ARX,
    "gp-narx": GPNARX,
    "mlp-narx": MLPNARX,
    "lstm": LSTM,
    "gpssm": GPSSM,
    "reduced-rank-gpssm": ReducedRankGPSSM,
}
OPTIONS = ("lags", "input_lags", "input_delay", "inducing", "states")  # those of `revarb fit` that a baseline may have


class FitRequest(NamedTuple):
    """The records, how to fit them, and the files to write."""

    records: Sequence[Series]
    seed: int
    jobs: int | None
    resume: bool
    model_file: Path

    @property
    def size(self) -> str:
        """How much data there is, for messages."""
        return f"{len(self.records)} record(s), {sum(len(record) for record in self.records)} samples"


def make_spec(config: Path | None, given: Mapping[str, Any]) -> RGP:
    """The configured model; options that were not given are as in the configuration file, or else RGP's own."""
    values = {} if config is None else read_toml(config)
    return RGP.from_dict({**values, **given})


def make_baseline(name: str, given: Mapping[str, Any]) -> Any:
    """The configuration of the model of this name; options that it does not have are refused."""
    if name not in BASELINES:
        raise InputError(
            f"--model {name}: there is no such model; there are {', '.join(BASELINES)}, and without --model an RGP"
        )
    known = [field.name for field in fields(BASELINES[name])]
    taken = [option for option in OPTIONS if option in known]
    for option in given:
        if option not in taken:
            flag = "--no-calibrate" if option == "calibrate" else _name_option(option)
            raise InputError(
                f"{flag} is not for --model {name}, which takes {', '.join(map(_name_option, taken))} and --seed"
            )
    return BASELINES[name](**given)


def _name_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def read_source(
    file: Path,
    train: Sequence[Path],
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    times: Times,
    form: CsvForm,
) -> tuple[FittedRGP, Times]:
    """The model to refit, and how to read its records; columns that are given must be its own."""
    model = load(file)
    if not isinstance(model, FittedRGP):
        raise InputError(
            f"--from {file}: a {type(model).__name__} cannot be refitted, only a single recurrent GP; fit it again"
        )
    for option, given, own in (("-u", inputs, model.input_names), ("-y", outputs, model.output_names)):
        if given is not None and tuple(given) != own:
            raise InputError(
                f"{option} {' '.join(given)}: the columns of {file} are {list(own)}; leave out {option} with --from"
            )
    column, remembered = times.column, model.preprocessor.time_name
    if column is None and remembered is not None and all(remembered in Table(path, form) for path in train):
        column = remembered
    dt = model.dt if column is None and times.dt is None else times.dt
    return model, times._replace(column=column, dt=dt)


def fit_spec(request: FitRequest, spec: RGP, restarts: int | None) -> None:
    """Fit the configured model, once or with several seeds."""
    started = time.perf_counter()
    several = {} if restarts is None else {"restarts": restarts, "jobs": request.jobs}
    with keep_journals():  # until the model is on disk
        model = spec.fit(request.records, seed=request.seed, progress=True, resume=request.resume, **several)
        seconds = time.perf_counter() - started
        written = _write(request, model)
    members = fit_report.list_members(model)
    screen.print(f"fitted {request.size} in {seconds:.1f} s")
    for member in members:
        ended = f"{member.status.label} after {len(member.history)} iterations"
        screen.print(f"  seed {member.seed}: {ended}, bound {member.bound:.2f}")
    screen.print(fit_report.describe_calibration(members, request.records), soft_wrap=True)
    fit_report.print_quality(model)
    # Restarts that are batched on an accelerator, and fits on several hosts, cannot be resumed.
    resumable = jax.process_count() == 1 and (restarts is None or jax.default_backend() == "cpu")
    kept = f"{len(members)} of {restarts} fits were kept" if restarts else "the best model so far was kept"
    _finish(model, written, kept + (RESUME if resumable else ""))


def refit(request: FitRequest, trained: FittedRGP, calibrated: bool) -> None:
    """Refit a trained model."""
    started = time.perf_counter()
    model = trained.refit(request.records, progress=True, calibrate=calibrated)
    seconds = time.perf_counter() - started
    written = _write(request, model)
    ended = f"{model.status.label} after {len(model.history)} iterations, bound {model.bound:.2f}"
    screen.print(f"refitted to {request.size} in {seconds:.1f} s: {ended}", soft_wrap=True)
    kept = model.calibration is trained.calibration
    if kept:
        screen.print(f"{'not ' if model.calibration is None else ''}calibrated, as before")
    else:
        screen.print(fit_report.describe_calibration([model], request.records), soft_wrap=True)
    fit_report.print_quality(model, with_verdict=not kept, refitted=True)
    _finish(model, written, "the best model so far was kept")


def choose(request: FitRequest, members: int, effort: str) -> None:
    """Choose the model, or a mixture of `members` of them."""
    started = time.perf_counter()
    with keep_journals():  # until the model is on disk
        model = choose_model(
            request.records, request.seed, request.jobs, progress=True, members=members, effort=effort,
            resume=request.resume,
        )  # fmt: skip
        seconds, choice = time.perf_counter() - started, model.choice
        assert choice is not None
        compared = choice.taken_candidate.error is not None  # not where the records are too short to hold anything out
        written = _write(request, model, with_choice=compared)
    screen.print(f"chosen on {request.size} in {seconds:.1f} s")
    screen.print(choice.summary())
    if compared:
        screen.print(fit_report.describe_bands(model, request.records), soft_wrap=True)
    fit_report.print_quality(model)
    _finish(model, written, "the best candidate so far was kept" + (RESUME if compared else ""))


def fit_baseline(request: FitRequest, spec: Any) -> None:
    """Fit a model of another kind; what Ctrl-C leaves of it is written too."""
    started = time.perf_counter()
    model = spec.fit(request.records, seed=request.seed, progress=True)
    seconds = time.perf_counter() - started
    written = _write(request, model)
    screen.print(f"fitted {request.size} in {seconds:.1f} s: {model.status.label}")
    screen.print(fit_report.describe_baseline(model, spec, request.records), style="bold", soft_wrap=True)
    # Of a stochastic bound, or of a Markov chain, no point is known to be the best one.
    which = "the last model" if isinstance(model, FittedStateSpace) else "the best model so far"
    _finish(model, written, f"{which} was kept")


def _write(request: FitRequest, model: Fitted, with_choice: bool = False) -> list[Path]:
    picture = request.model_file.with_suffix(".fit.png")
    with capture_interrupts():
        written = [model.save(request.model_file)]
        try:
            written.append(save_figure(picture, model.plot_fit(request.records)))
        except ComputationError as error:  # a model that is bad at long runs may still predict
            warn_user(f"there is no picture of the fit: {error}")
        except InputError:
            # After Ctrl-C the model that is kept may be a fit to parts of long records: it is drawn without them.
            if not isinstance(model, FittedRGP) or model.status is not Status.INTERRUPTED:
                raise
            written.append(save_figure(picture, model.plot_fit()))
        if with_choice and model.choice is not None:
            written.append(save_figure(request.model_file.with_suffix(".choice.png"), model.choice.plot()))
    return written


def _finish(model: Fitted, written: Sequence[Path], kept: str) -> None:
    print_written(*written)
    if model.status is Status.INTERRUPTED:
        stop_interrupted(kept)
