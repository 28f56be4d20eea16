"""From records to one trained, calibrated model: what `RGP.fit` forwards to."""

import hashlib
import json
from collections.abc import Sequence

from revarb.config.rgp import RGP
from revarb.data.series import Series, as_records
from revarb.errors import check_seed
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.journal import Checkpoint, Journal, discard_journals, make_checkpoints
from revarb.optim.status import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.machine import collect_versions
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_bar
from revarb.training.calibrate import calibrate, calibration_steps
from revarb.training.problem import Report, Task, initialise, prepare
from revarb.training.solve import max_steps, solve


@with_numerics
def fit_rgp(spec: RGP, train: Series | Sequence[Series], seed: int, progress: bool, resume: bool) -> FittedRGP:
    """Train `spec` on one record or several; see `RGP.fit`."""
    seed, task = check_seed(seed), prepare(spec, as_records(train))
    [checkpoint] = checkpoints_for(task, [seed], resume)
    # Ctrl-C ends the fit after the current step; a second one immediately.
    with (
        progress_bar("fitting", total_steps(task), progress) as update,
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


def checkpoints_for(task: Task, seeds: Sequence[int], resume: bool) -> list[Checkpoint | None]:
    """For every seed the checkpoint of this fit of these records, identified by a digest of all it depends on."""
    data = hashlib.sha256()
    for values in (values for record in task.records for values in (record.u, record.y)):
        data.update(f"{values.shape}".encode() + values.tobytes())
    fits = [json.dumps([task.spec.to_dict(), seed, data.hexdigest(), collect_versions()]) for seed in seeds]
    return make_checkpoints([hashlib.sha256(fit.encode()).hexdigest() for fit in fits], resume)


def fit_task(task: Task, seed: int, report: Report, checkpoint: Checkpoint | None) -> FittedRGP:
    """The trained model of a task, calibrated where the task has stretches to hold out."""
    with Journal(checkpoint) as journal:
        model = solve(initialise(task, seed), "fit", report, journal)
        return calibrate(model, task, report, journal)


def total_steps(task: Task) -> int:
    """The largest number of steps of a fit with its calibration."""
    return max_steps(task.spec) + calibration_steps(task)
