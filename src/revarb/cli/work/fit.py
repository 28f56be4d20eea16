"""Fit or choose a model; write it and its pictures, and say how the fit ended."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import jax

from revarb.cli.application import figure_target, print_line, print_written, screen, stop_interrupted
from revarb.config.plain_values import read_toml
from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.errors import InputError
from revarb.models.choice import Choice
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.journal import keep_journals
from revarb.optim.status import Status
from revarb.runtime.figure_style import save_figure
from revarb.runtime.interrupts import capture_interrupts
from revarb.simulation.chain import find_noise_variance
from revarb.training.choose import fit as choose_model
from revarb.training.stretches import MIN_ROWS, cut_stretches

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GO_ON = "; the same command with --resume goes on"
MIN_STEPS = 5  # of a fit that has left its start values

Trained = FittedRGP | FittedARX | Ensemble


class Work(NamedTuple):
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


def check_targets(model_file: Path, train: Sequence[Path], chosen: bool) -> tuple[Path, Path, Path | None]:
    """The files to write, checked before the work: all can be written, and none is an input."""
    fit_picture = figure_target(model_file, ".fit.png", read=train)
    return model_file, fit_picture, figure_target(model_file, ".choice.png", read=train) if chosen else None


def fit_spec(work: Work, spec: RGP, restarts: int | None) -> None:
    """Fit the model that is described, once or with several seeds."""
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
    _print_outliers(fits)
    _print_verdict(model)
    _warn_about_failures(fits)
    print_written(*written)
    if model.status is Status.INTERRUPTED:
        kept = f"{len(fits)} of {restarts} fits were kept" if restarts else "the best model so far was kept"
        stop_interrupted(kept + (GO_ON if _has_journal(restarts) else ""))


def refit(work: Work, trained: FittedRGP, calibrated: bool) -> None:
    """Refit a trained model."""
    started = time.perf_counter()
    model = trained.refit(work.records, progress=True, calibrate=calibrated)
    seconds = time.perf_counter() - started
    written = _write(work, model)
    ended = f"{model.status.words} after {len(model.history)} iterations, bound {model.bound:.2f}"
    screen.print(f"refitted to {work.size} in {seconds:.1f} s: {ended}", soft_wrap=True)
    if model.calibration is trained.calibration:
        screen.print(f"{'not ' if model.calibration is None else ''}calibrated, as before")
    else:
        screen.print(_describe_calibration([model], work.records), soft_wrap=True)
        _print_verdict(model)
    _print_outliers([model])
    if model.status is Status.NOT_FINITE:
        print_line("warning", "the refit failed: every further step gave NaN or infinity; fit the model again")
    print_written(*written)
    if model.status is Status.INTERRUPTED:
        stop_interrupted("the best model so far was kept")


def choose(work: Work, members: int, effort: str) -> None:
    """Choose the model, or a mixture of `members` of them."""
    started = time.perf_counter()
    with keep_journals():  # until the model is on disk
        found = choose_model(
            work.records, work.seed, work.jobs, progress=True, members=members, effort=effort, resume=work.resume
        )
        model, choice = cast("Trained", found), found.choice
        seconds = time.perf_counter() - started
        written = _write(work, model)
    screen.print(f"chosen on {work.size} in {seconds:.1f} s")
    assert choice is not None
    screen.print(choice.summary())
    if _is_compared(choice):
        screen.print(_describe_bands(model, work.records), soft_wrap=True)
    _print_outliers(_list_fits(model))
    _print_verdict(model)
    _warn_about_failures(_list_fits(model))
    print_written(*written)
    if model.status is Status.INTERRUPTED:
        stop_interrupted("the best candidate so far was kept" + (GO_ON if _is_compared(choice) else ""))


def _write(work: Work, model: Trained) -> list[Path]:
    with capture_interrupts():
        written = [model.save(work.model_file), save_figure(work.fit_picture, _draw_fit(work, model))]
        if work.choice_picture is not None and model.choice is not None and _is_compared(model.choice):
            written.append(save_figure(work.choice_picture, model.choice.plot()))
    return written


def _draw_fit(work: Work, model: Trained) -> "Figure":
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
        ended = f"{member.status.words} after {len(member.history)} iterations"
        screen.print(f"  seed {member.seed}: {ended}, bound {member.bound:.2f}")


def _print_outliers(members: Sequence[FittedRGP]) -> None:
    # Of the first fit with Student-t noise: the others see the same samples.
    robust = next((member for member in members if member.trained.parameters.noise is not None), None)
    if robust is None:
        return
    found = robust.outliers()
    if not found:
        screen.print("no outliers among the training samples")
        return
    worst = found[0]
    part = "record" if len(robust.lengths) == len(robust.final_states) else "block"
    record = f" of {part} {worst.record}" if len(robust.lengths) > 1 else ""
    screen.print(
        f"{len(found)} outlier(s) among the training samples; the worst is {worst.output!r} in row {worst.row}{record} "
        f"(rows count from 0; its weight is {worst.weight:.2g})",
        soft_wrap=True,
    )


def _print_verdict(model: Trained) -> None:
    if model.verdict is not None:
        screen.print(model.verdict, style="bold", soft_wrap=True)


def _warn_about_failures(members: Sequence[FittedRGP]) -> None:
    # The limit of iterations is the usual end of a fit, and a line search that finds no better point is one too, unless
    # it does so at once.
    for member in members:
        steps = len(member.history)
        if member.status is Status.NOT_FINITE:
            why = "every further step gave NaN or infinity"
        elif member.status is Status.STALLED and steps < MIN_STEPS:
            why = f"no better point was found after {steps} iterations"
        else:
            continue
        print_line("warning", f"the fit with seed {member.seed} failed: {why}; try another --seed, or fewer lags")


def _has_journal(restarts: int | None) -> bool:
    # Restarts that are batched on an accelerator, and fits on several hosts, keep none.
    return jax.process_count() == 1 and (restarts is None or jax.default_backend() == "cpu")


def _describe_calibration(members: Sequence[FittedRGP], records: Sequence[Series]) -> str:
    # The result of the calibration over all members, or why there is none.
    found = [(member, member.calibration) for member in members if member.calibration is not None]
    if not found:
        return f"not calibrated: {_why_not(members[0], records)}"
    errors, latent, output, far = zip(
        *((known.error, known.latent_scale, known.output_noise / float(find_noise_variance(member.trained.chain)),
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


def make_spec(config: Path | None, given: Mapping[str, int | str]) -> RGP:
    """The model that is described; options that were not given are as in the configuration file, or else RGP's own."""
    values = {} if config is None else read_toml(config)
    return RGP.from_dict({**values, **given})
