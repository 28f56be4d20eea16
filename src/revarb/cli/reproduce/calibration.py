"""`revarb reproduce calibration`: are the bands honest, and what does a measured start buy?"""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from revarb import datasets, experiments
from revarb.cli.app import command_line, print_written, screen
from revarb.cli.reproduce.experiments_app import check_targets, experiments_app
from revarb.data.trajectory import Trajectory
from revarb.evaluation.comparison.lines import summarise
from revarb.evaluation.reliability import check_bands
from revarb.evaluation.results_file import write_results
from revarb.report.reliability_figures import reliability_figure
from revarb.report.tables import Grid, format_percent, format_range, terminal_table
from revarb.runtime.files import write_atomic
from revarb.runtime.progress import progress_bar

SCORES = ("rmse", "nlpd", "coverage95")


@experiments_app.command("calibration")
def reproduce_calibration(
    seeds: Annotated[int, typer.Option(help="Number of seeds.", min=1)] = 5,
    jobs: Annotated[int, typer.Option(help="Number of processes.", min=1)] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all rows to this file.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for pictures of how honest the bands are.")] = None,
) -> None:
    """Bands on held-out data: calibrated, as fitted, and ARX beside them; starts from windows; missing outputs."""
    check_targets(json_file, None, pictures)
    table = experiments.load_calibration()
    rows: list[dict[str, Any]] = []
    with progress_bar(table.title, len(table.datasets) + 1, show=True) as update:
        done = itertools.count(1)
        for these, drawn in experiments.run_calibration(table, seeds, jobs, lambda text: update(next(done), text)):
            rows += these
            screen.print(terminal_table(_grid(these)))
            if pictures is not None:
                print_written(_draw(pictures, these[0]["dataset"], drawn))
    meta = {"table": "calibration", "protocol": experiments.PROTOCOL, "seeds": seeds, "command": command_line.get()}
    screen.print(f"protocol: {experiments.PROTOCOL}; median (smallest – largest) of {seeds} seed(s)", soft_wrap=True)
    if json_file is not None:
        print_written(write_results(json_file, meta, rows))


def _grid(rows: list[dict[str, Any]]) -> Grid:
    cells = []
    for start in dict.fromkeys(row["start"] for row in rows):
        for line in summarise([row for row in rows if row["start"] == start], SCORES):
            share = format_percent(line.ranges["coverage95"].median)
            numbers = (format_range(line.ranges["rmse"]), format_range(line.ranges["nlpd"]))
            cells.append([line.model, line.method, start, *numbers, share])
    return Grid(rows[0]["dataset"], ("model", "method", "start", "RMSE", "NLPD", "in 95 %"), cells)


def _draw(folder: Path, name: str, drawn: Mapping[tuple[str, str], Trajectory]) -> Path:
    split = datasets.load(name)
    judged = {key: check_bands([path], [split.test.y], split.skip) for key, path in drawn.items()}
    return write_atomic(folder / f"{name}_bands.png", reliability_figure(judged, "png"))
