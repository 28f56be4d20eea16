"""`revarb reproduce recognition`: the recognition model from all its starts."""

import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from revarb import experiments
from revarb.cli.app import command_line, print_written, screen
from revarb.cli.reproduce.experiments_app import check_targets, experiments_app
from revarb.evaluation.comparison.lines import summarise
from revarb.evaluation.results_file import write_results
from revarb.report.tables import Grid, format_percent, format_range, terminal_table
from revarb.runtime.progress import progress_bar

SCORES = ("rmse", "nlpd", "coverage95")


@experiments_app.command("recognition")
def reproduce_recognition(
    seeds: Annotated[int, typer.Option(help="Number of seeds.", min=1)] = 5,
    jobs: Annotated[int, typer.Option(help="Number of processes.", min=1)] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all rows to this file.")] = None,
) -> None:
    """Networks instead of free latent means, on the paper's three sets: every start, its members and their mixture."""
    check_targets(json_file, None, None)
    table = experiments.load_recognition()
    rows: list[dict[str, Any]] = []
    ensembles = sum(len(table.models(name, 1)) for name in table.datasets)
    with progress_bar(table.title, ensembles, show=True) as update:
        done = itertools.count(1)
        for these in experiments.run_recognition(table, seeds, jobs, lambda text: update(next(done), text)):
            rows += these
            screen.print(terminal_table(_grid(these)))
    meta = {"table": "recognition", "protocol": experiments.PROTOCOL, "seeds": seeds, "command": command_line.get()}
    screen.print(f"protocol: {experiments.PROTOCOL}; median (smallest – largest) of {seeds} seed(s)", soft_wrap=True)
    if json_file is not None:
        print_written(write_results(json_file, meta, rows))


def _grid(rows: list[dict[str, Any]]) -> Grid:
    lines = summarise(rows, SCORES)
    cells = [
        [line.model, line.method, format_range(line.ranges["rmse"]), format_range(line.ranges["nlpd"]),
         format_percent(line.ranges["coverage95"].median)]
        for line in lines
    ]  # fmt: skip
    return Grid(rows[0]["dataset"], ("model", "method", "RMSE", "NLPD", "in 95 %"), cells)
