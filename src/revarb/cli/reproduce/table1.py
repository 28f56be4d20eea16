"""`revarb reproduce table1`: system identification."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.reproduce.options import Jobs, JsonFile, Seeds, experiments_app
from revarb.runtime.interrupts import exit_on_interrupt


@experiments_app.command("table1")
def reproduce_table1(
    seeds: Seeds = 5,
    jobs: Jobs = 1,
    json_file: JsonFile = None,
    page_file: Annotated[Path | None, typer.Option("--page", help="Write an HTML page with all simulations.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for pictures of every benchmark (first seed).")] = None,
) -> None:
    """Table 1 of the paper: system identification.

    REVARB and the baselines on the test part of every benchmark, with several seeds.
    """
    with exit_on_interrupt():
        from revarb.cli.reproduce.runner import Targets, run_experiment
        from revarb.experiments import load_table1
    run_experiment(load_table1(), seeds, jobs, Targets(json_file, page_file, pictures))
