"""`revarb reproduce calibration`: reliability of the bands, and the effect of measured starts."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.reproduce.options import Jobs, JsonFile, Seeds, experiments_app
from revarb.runtime.interrupts import exit_on_interrupt


@experiments_app.command("calibration")
def reproduce_calibration(
    seeds: Seeds = 5,
    jobs: Jobs = 1,
    json_file: JsonFile = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for pictures of the reliability of the bands.")] = None,
) -> None:
    """Bands on held-out data.

    Calibrated, as fitted, and of ARX; starts from windows; missing outputs.
    """
    with exit_on_interrupt():
        from revarb.cli.reproduce.runner import Targets, run_experiment
        from revarb.experiments import load_calibration
    run_experiment(load_calibration(), seeds, jobs, Targets(json_file, pictures=pictures))
