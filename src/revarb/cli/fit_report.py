"""How a fit ended, in sentences on the screen: calibration, outliers, held-out error, failures."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from revarb import ARX, Ensemble, FittedRGP, Mean, Series
from revarb.cli.application import print_line, say
from revarb.errors import RevarbError
from revarb.fitting.held_out import MIN_HELD_OUT_ROWS, cut_held_out_blocks
from revarb.models.base import Fitted
from revarb.models.choice import describe_held_out, format_error
from revarb.models.fitted_arx import FittedARX
from revarb.models.recipe import Status
from revarb.models.residual_band import FittedByResiduals
from revarb.simulation.chain import find_noise_variance

MIN_STEPS = 5  # of a fit that has left its start values


def list_members(model: Fitted) -> tuple[FittedRGP, ...]:
    """The recurrent GPs that a model consists of; none of a linear one."""
    members = model.members if isinstance(model, Ensemble) else (model,)
    return tuple(member for member in members if isinstance(member, FittedRGP))


def print_quality(model: Fitted, with_verdict: bool = True, refitted: bool = False) -> None:
    """Outliers, what the held-out error says, and warnings about fits that failed."""
    members = list_members(model)
    _print_outliers(members)
    if with_verdict and model.verdict is not None:
        say(model.verdict, bold=True)
    for member in members:
        _warn_about_failure(member, refitted)


def _print_outliers(members: Sequence[FittedRGP]) -> None:
    # Of the first fit with Student-t noise: the others see the same samples.
    robust = next((member for member in members if member.trained.parameters.noise is not None), None)
    if robust is None:
        return
    found = robust.outliers()
    if not found:
        say("no outliers among the training samples")
        return
    worst = found[0]
    part = "record" if len(robust.lengths) == len(robust.final_states) else "block"
    record = f" of {part} {worst.record}" if len(robust.lengths) > 1 else ""
    say(
        f"{len(found)} outlier(s) among the training samples; the worst is {worst.output!r} in row {worst.row}{record} "
        f"(rows count from 0; its weight is {worst.weight:.2g})"
    )


def _warn_about_failure(member: FittedRGP, refitted: bool) -> None:
    # The limit of iterations is the usual end of a fit, and a line search that finds no better point is one too, unless
    # it does so at once. A refit starts at a trained model: it may find none.
    steps = len(member.history)
    if member.status is Status.NOT_FINITE:
        why = "every further step gave NaN or infinity"
    elif member.status is Status.STALLED and steps < MIN_STEPS and not refitted:
        why = f"no better point was found after {steps} iterations"
    else:
        return
    if refitted:
        print_line("warning", f"the refit failed: {why}; fit the model again")
    else:
        print_line("warning", f"the fit with seed {member.seed} failed: {why}; try another --seed, or fewer lags")


def describe_bands(model: Fitted, records: Sequence[Series]) -> str:
    """Where the bands of a model come from: the result of the calibration over all members, or why there is none.

    The held-out error of a model that was chosen is in the table of its candidates.
    """
    members = list_members(model)
    if not members:
        return "the bands of the linear model are set by its errors on the held-out blocks"
    found = [(member, member.calibration) for member in members if member.calibration is not None]
    if not found:
        return f"not calibrated: {_explain_no_calibration(members[0], records)}"
    errors, latent, output, far = zip(
        *((known.error, known.latent_scale, known.output_noise / float(find_noise_variance(member.trained.chain)),
           known.factors[-1]) for member, known in found),
        strict=True,
    )  # fmt: skip
    which = "" if len(found) == len(members) else f"{len(found)} of {len(members)} fits "
    whole = "; its recurrent GPs" if isinstance(model, Ensemble) and model.mixed else ""
    error = "" if model.choice is not None else f"held-out error {_range(errors)} of the output's standard deviation; "
    return (
        f"{which}calibrated on {found[0][1].stretches} held-out blocks{whole}: {error}noise variance: latent x "
        f"{_range(latent)}, output x {_range(output)}; long-run band x {_range(far)}"
    )


def _explain_no_calibration(model: FittedRGP, records: Sequence[Series]) -> str:
    if not model.spec.calibrate:
        return "switched off"
    if model.status is Status.INTERRUPTED:
        return "interrupted"
    if not cut_held_out_blocks(records, model.preprocessor):
        several = "record is" if len(records) == 1 else "records are"
        return f"the {several} too short (fewer than {MIN_HELD_OUT_ROWS} samples once runs have settled)"
    return "a fit without one of the blocks failed"


def _range(values: Sequence[float]) -> str:
    low, high = format_error(min(values)), format_error(max(values))
    return low if low == high else f"{low} to {high}"


def describe_baseline(model: Fitted, spec: Any, records: Sequence[Series]) -> str:
    """What the error of a baseline on a part of the records that it was not fitted to says, where it has one."""
    if not isinstance(model, FittedByResiduals):
        return (
            "nothing was held out: revarb compare, or revarb simulate on a test record, shows the error of this model"
        )
    linear = None
    if not isinstance(model, FittedARX):
        with suppress(RevarbError):
            linear = _measure_error(ARX(input_delay=spec.input_delay).fit(records))
    mean = _measure_error(Mean().fit(records))
    return describe_held_out(_measure_error(model), linear, mean, name="error on held-out quarters")


def _measure_error(model: FittedByResiduals) -> float:
    # In standard deviations of the outputs. That of an MLP is over four quarters of the records, of the others over the
    # last one.
    return float(np.sqrt(np.mean(model.residual_std**2)))
