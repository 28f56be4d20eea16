"""`revarb reproduce table2`: human motion."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.reproduce.options import Jobs, JsonFile, Seeds, experiments_app
from revarb.runtime.interrupts import exit_on_interrupt


@experiments_app.command("table2")
def reproduce_table2(
    seeds: Seeds = 3,
    jobs: Jobs = 1,
    json_file: JsonFile = None,
    page_file: Annotated[Path | None, typer.Option("--page", help="Write a page that plays the motions.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for strips of a walk and a run (first seed).")] = None,
) -> None:
    """Table 2 of the paper: human motion.

    Walks and runs of the test set, simulated from the position of the left toes.
    """
    with exit_on_interrupt():
        from revarb.cli.reproduce.runner import Targets, run_experiment
        from revarb.experiments import load_table2
    run_experiment(load_table2(), seeds, jobs, Targets(json_file, page_file, pictures))
