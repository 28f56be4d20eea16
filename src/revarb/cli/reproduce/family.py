"""`revarb reproduce family`: GP state-space models beside REVARB."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.reproduce.options import FinishedRows, Jobs, JsonFile, OnlyRecords, Seeds, experiments_app
from revarb.runtime.interrupts import exit_on_interrupt


@experiments_app.command("family")
def reproduce_family(
    seeds: Seeds = 5,
    jobs: Jobs = 1,
    only: OnlyRecords = None,
    rows_file: FinishedRows = None,
    json_file: JsonFile = None,
    page_file: Annotated[Path | None, typer.Option("--page", help="Write an HTML page with all tables.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for the picture of learnt transitions.")] = None,
) -> None:
    """GP state-space models beside REVARB (long).

    On five records, on systems with known states, and on a long record of Narendra and Li's system.
    """
    with exit_on_interrupt():
        from revarb.cli.reproduce.runner import Targets, run_experiment
        from revarb.experiments import load_family
        from revarb.experiments.field_runs import RowsFile
    table = replace(load_family(), finished=RowsFile(rows_file))
    run_experiment(table.only(only) if only else table, seeds, jobs, Targets(json_file, page_file, pictures))
