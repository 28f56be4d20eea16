"""`revarb reproduce field`: the chosen model on many records."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.reproduce.options import FinishedRows, Jobs, JsonFile, OnlyRecords, Seeds, experiments_app
from revarb.runtime.interrupts import exit_on_interrupt


@experiments_app.command("field")
def reproduce_field(
    seeds: Seeds = 3,
    jobs: Jobs = 1,
    only: OnlyRecords = None,
    rows_file: FinishedRows = None,
    json_file: JsonFile = None,
    page_file: Annotated[Path | None, typer.Option("--page", help="Write an HTML page with all simulations.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for pictures of every record (first seed).")] = None,
) -> None:
    """The chosen model on twelve benchmarks (long).

    Beside it are the paper's settings and the baselines.
    """
    with exit_on_interrupt():
        from revarb.cli.reproduce.runner import Targets, run_experiment
        from revarb.experiments import load_field
        from revarb.experiments.field_runs import RowsFile
    table = replace(load_field(), finished=RowsFile(rows_file))
    run_experiment(table.only(only) if only else table, seeds, jobs, Targets(json_file, page_file, pictures))
