"""From records to a trained model, calibrated: the door that `RGP.fit` opens."""

import hashlib
import json
from collections.abc import Sequence

from revarb.config.rgp import RGP
from revarb.data.series import Series, as_records
from revarb.errors import check_seed
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.journal import Checkpoint, Journal, checkpoints, discard
from revarb.optim.status import Status
from revarb.runtime.interrupts import held_interrupts
from revarb.runtime.machine import library_versions
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_bar
from revarb.training.calibrate import calibrated, calibration_steps
from revarb.training.problem import Problem, affordable, prepare
from revarb.training.solve import Report, solved, steps_of


@with_numerics
def fit(spec: RGP, train: Series | Sequence[Series], seed: int, progress: bool, resume: bool) -> FittedRGP:
    """Train `spec` on one record or several; `RGP.fit` is the public door."""
    seed, records = check_seed(seed), as_records(train)
    spec = affordable(spec, records)
    [checkpoint] = checkpoints_of(spec, records, [seed], resume)
    problem = prepare(spec, records, seed)
    # Ctrl-C ends the fit after the step it is at; a second one at once.
    with (
        progress_bar("fitting", steps_in_all(spec, records), progress) as update,
        held_interrupts(patience=1) as pressed,
    ):

        def report(steps: int, text: str) -> None:
            update(steps, text)
            if pressed:
                raise KeyboardInterrupt

        model = fitted(problem, records, report, checkpoint)
    if model.status is not Status.INTERRUPTED:
        discard([checkpoint])
    return model


def checkpoints_of(spec: RGP, records: Sequence[Series], seeds: Sequence[int], resume: bool) -> list[Checkpoint | None]:
    """For every seed the checkpoint that belongs to this fit of these records, and to no other."""
    data = hashlib.sha256()
    for values in (values for record in records for values in (record.u, record.y)):
        data.update(f"{values.shape}".encode() + values.tobytes())
    fits = [json.dumps([spec.to_dict(), seed, data.hexdigest(), library_versions()]) for seed in seeds]
    return checkpoints([hashlib.sha256(fit.encode()).hexdigest() for fit in fits], resume)


def fitted(problem: Problem, records: Sequence[Series], report: Report, checkpoint: Checkpoint | None) -> FittedRGP:
    """The model of these records, calibrated if its configuration says so."""
    with Journal(checkpoint) as journal:
        model = solved(problem, "fit", report, journal)
        return calibrated(model, records, report, journal)


def steps_in_all(spec: RGP, records: Sequence[Series]) -> int:
    """The most steps that a fit with its calibration can take."""
    return steps_of(spec) + calibration_steps(spec, records)
