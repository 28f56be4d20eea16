"""`revarb reproduce outliers`: outliers in the training outputs."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.reproduce.options import FinishedRows, Jobs, JsonFile, OnlyRecords, Seeds, experiments_app
from revarb.runtime.interrupts import exit_on_interrupt


@experiments_app.command("outliers")
def reproduce_outliers(
    seeds: Seeds = 5,
    jobs: Jobs = 1,
    only: OnlyRecords = None,
    rows_file: FinishedRows = None,
    json_file: JsonFile = None,
    page_file: Annotated[Path | None, typer.Option("--page", help="Write an HTML page with all tables.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for the picture of errors by share.")] = None,
) -> None:
    """Outliers in the training outputs (long).

    Gaussian and Student-t noise beside the baselines, with spikes and with stuck samples.
    """
    with exit_on_interrupt():
        from revarb.cli.reproduce.runner import Targets, run_experiment
        from revarb.experiments import load_outliers
        from revarb.experiments.field_runs import RowsFile
    table = replace(load_outliers(), finished=RowsFile(rows_file))
    run_experiment(table.only(only) if only else table, seeds, jobs, Targets(json_file, page_file, pictures))
