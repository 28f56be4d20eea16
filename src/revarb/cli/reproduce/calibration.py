"""`revarb reproduce calibration`: reliability of the bands, and the effect of measured starts."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.reproduce.runner import Jobs, JsonFile, Seeds, Targets, experiments_app, run_experiment
from revarb.experiments import load_calibration


@experiments_app.command("calibration")
def reproduce_calibration(
    seeds: Seeds = 5,
    jobs: Jobs = 1,
    json_file: JsonFile = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for pictures of the reliability of the bands.")] = None,
) -> None:
    """Bands on held-out data: calibrated, as fitted, and ARX; starts from windows; missing outputs."""
    run_experiment(load_calibration(), seeds, jobs, Targets(json_file, pictures=pictures))
