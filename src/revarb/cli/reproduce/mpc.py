"""`revarb reproduce mpc`: model predictive control with learnt models."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.reproduce.options import Jobs, JsonFile, Seeds, experiments_app
from revarb.runtime.interrupts import exit_on_interrupt


@experiments_app.command("mpc")
def reproduce_mpc(
    seeds: Seeds = 3,
    jobs: Jobs = 1,
    json_file: JsonFile = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for a picture of the closed loops per seed.")] = None,
) -> None:
    """Model predictive control of a simulated reactor.

    The chosen model, with and without a tightened limit, beside ARX and the plant's own equations. Needs CasADi.
    """
    with exit_on_interrupt():
        from revarb.cli.reproduce.runner import Targets, run_experiment
        from revarb.experiments import load_mpc
    run_experiment(load_mpc(), seeds, jobs, Targets(json_file, None, pictures))
