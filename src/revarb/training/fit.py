"""Fit of one model, with its calibration: what `RGP.fit` calls."""

import hashlib
import json
from collections.abc import Sequence

from revarb.config.rgp import RGP
from revarb.data.quality import warn_about_quality
from revarb.data.series import Series, as_records
from revarb.errors import check_seed
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.journal import Checkpoint, Journal, discard_journals, make_checkpoints
from revarb.optim.status import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.machine import collect_versions
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_bar
from revarb.training.calibrate import calibrate, count_calibration_steps
from revarb.training.problem import Report, Task, initialise, prepare
from revarb.training.solve import count_steps, solve


@with_numerics
def fit_rgp(spec: RGP, train: Series | Sequence[Series], seed: int, progress: bool, resume: bool) -> FittedRGP:
    """Train `spec` on one record or several; see `RGP.fit`."""
    seed, task = check_seed(seed), prepare(spec, as_records(train))
    warn_about_quality(as_records(train))
    [checkpoint] = locate_checkpoints(task, [seed], resume)
    # The first Ctrl-C ends the fit after the current step, a second one immediately.
    with (
        progress_bar("fitting", count_all_steps(task), progress) as update,
        capture_interrupts(raise_after=1) as pressed,
    ):

        def report(steps: int, text: str) -> None:
            update(steps, text)
            if pressed:
                raise KeyboardInterrupt

        model = fit_task(task, seed, report, checkpoint)
    if model.status is not Status.INTERRUPTED:
        discard_journals([checkpoint])
    return model


def locate_checkpoints(task: Task, seeds: Sequence[int], resume: bool) -> list[Checkpoint | None]:
    """Locate the checkpoint of this fit for every seed, by a digest of configuration, seed, records and versions.

    Of records that are cut into blocks, the other rows have an effect on the scaling only.
    """
    data, scaling = hashlib.sha256(), vars(task.preprocessor.scaling).values()
    for values in (*scaling, *(values for record in task.records for values in (record.u, record.y))):
        data.update(f"{values.shape}".encode() + values.tobytes())
    fits = [json.dumps([task.spec.to_dict(), seed, data.hexdigest(), collect_versions()]) for seed in seeds]
    return make_checkpoints([hashlib.sha256(fit.encode()).hexdigest() for fit in fits], resume)


def fit_task(task: Task, seed: int, report: Report, checkpoint: Checkpoint | None) -> FittedRGP:
    """Fit the model of a task, and calibrate it if the task has stretches to hold out."""
    with Journal(checkpoint) as journal:
        model = calibrate(solve(initialise(task, seed), "fit", report, journal), task, report, journal)
        if model.status is Status.INTERRUPTED:
            journal.keep()
    return model


def count_all_steps(task: Task) -> int:
    """Count the steps of a fit with its calibration, at most."""
    return count_steps(task.spec) + count_calibration_steps(task)
