"""What `revarb fit` carries out: fit a configuration or a baseline, refit a model, or choose one; write the files."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import jax

from revarb import ARX, GPNARX, GPSSM, LSTM, MLPNARX, RGP, Ensemble, FittedRGP, ReducedRankGPSSM, Series, load
from revarb import fit as choose_model
from revarb.baselines.state_space.fitted_state_space import FittedStateSpace
from revarb.cli import fit_report
from revarb.cli.application import print_written, say, screen, stop_interrupted
from revarb.cli.options import RESUME, name_option
from revarb.errors import ComputationError, InputError, warn_user
from revarb.models.base import Fitted
from revarb.models.fitted_arx import FittedARX
from revarb.models.recipe import Status
from revarb.models.toml_file import read_toml
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

Refittable = FittedRGP | FittedARX | Ensemble


class FitRequest(NamedTuple):
    """The records, how to fit them, and the files to write."""

    records: Sequence[Series]
    seed: int
    jobs: int | None
    resume: bool
    model_file: Path


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
    for option, value in given.items():
        if option not in taken:
            raise InputError(
                f"{name_option(option, value)} is not for --model {name}, which takes "
                f"{', '.join(map(name_option, taken))} and --seed"
            )
    return BASELINES[name](**given)


def load_source(file: Path) -> Refittable:
    """The model to refit."""
    model = load(file)
    if not isinstance(model, Refittable):
        raise InputError(
            f"--from {file}: a {type(model).__name__} cannot be refitted, only an RGP, an ARX or their mixture; "
            "fit it again"
        )
    return model


def fit_spec(request: FitRequest, spec: RGP, restarts: int | None) -> None:
    """Fit the configured model, once or with several seeds."""
    several = {} if restarts is None else {"restarts": restarts, "jobs": request.jobs}
    model, written, about = _train(request, spec.fit, seed=request.seed, resume=request.resume, **several)
    members = fit_report.list_members(model)
    screen.print(f"fitted {about}")
    for member in members:
        screen.print(f"  seed {member.seed}: {_describe_end(member)}")
    say(fit_report.describe_bands(model, request.records))
    fit_report.print_quality(model)
    # Restarts that are batched on an accelerator, and fits on several hosts, cannot be resumed.
    resumable = jax.process_count() == 1 and (restarts is None or jax.default_backend() == "cpu")
    kept = f"{len(members)} of {restarts} fits were kept" if restarts else "the best model so far was kept"
    _finish(model, written, kept + (RESUME if resumable else ""))


def refit(request: FitRequest, trained: Refittable, calibrated: bool) -> None:
    """Refit a trained model."""
    if calibrated and not isinstance(trained, FittedRGP):
        raise InputError(
            f"--calibrate: a {type(trained).__name__} keeps its bands in a refit; leave it out, or fit again"
        )
    model, written, about = _train(request, trained.refit, **({"calibrate": True} if calibrated else {}))
    say(f"refitted to {about}: {_describe_end(model)}")
    kept = isinstance(trained, FittedARX) or model.calibration is trained.calibration
    if isinstance(model, FittedARX):
        screen.print("its bands are as before")
    elif kept:
        screen.print(f"{'not ' if model.calibration is None else ''}calibrated, as before")
    else:
        say(fit_report.describe_bands(model, request.records))
    fit_report.print_quality(model, with_verdict=not kept, refitted=True)
    _finish(model, written, "the best model so far was kept")


def _describe_end(model: Refittable) -> str:
    if isinstance(model, FittedRGP):
        return f"{model.status.label} after {len(model.history)} iterations, bound {model.bound:.2f}"
    return model.status.label + (f", {len(model)} members" if isinstance(model, Ensemble) else "")


def choose(request: FitRequest, **options: Any) -> None:
    """Choose the best candidates; the options are those of `revarb.fit`."""
    model, written, about = _train(
        request, choose_model, seed=request.seed, jobs=request.jobs, resume=request.resume, **options
    )
    screen.print(f"chosen on {about}")
    screen.print(model.choice.summary())
    compared = model.choice.taken_candidate.error is not None  # not where the records are too short
    if compared:
        say(fit_report.describe_bands(model, request.records))
        with capture_interrupts():
            written.append(save_figure(request.model_file.with_suffix(".choice.png"), model.choice.plot()))
    fit_report.print_quality(model)
    _finish(model, written, "the best candidate so far was kept" + (RESUME if compared else ""))


def fit_baseline(request: FitRequest, spec: Any) -> None:
    """Fit a model of another kind; what Ctrl-C leaves of it is written too."""
    model, written, about = _train(request, spec.fit, seed=request.seed)
    screen.print(f"fitted {about}: {model.status.label}")
    say(fit_report.describe_baseline(model, spec, request.records), bold=True)
    # Of a stochastic bound, or of a Markov chain, no point is known to be the best one.
    which = "the last model" if isinstance(model, FittedStateSpace) else "the best model so far"
    _finish(model, written, f"{which} was kept")


def _train(request: FitRequest, train: Callable[..., Any], **options: Any) -> tuple[Any, list[Path], str]:
    # The model, the files that were written, and how much data and time it took.
    started = time.perf_counter()
    with keep_journals():  # until the model is on disk
        model = train(request.records, progress=True, **options)
        seconds = time.perf_counter() - started
        written = _write(request, model)
    samples = sum(len(record) for record in request.records)
    return model, written, f"{len(request.records)} record(s), {samples} samples in {seconds:.1f} s"


def _write(request: FitRequest, model: Fitted) -> list[Path]:
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
    return written


def _finish(model: Fitted, written: Sequence[Path], kept: str) -> None:
    print_written(*written)
    if model.status is Status.INTERRUPTED:
        stop_interrupted(kept)
