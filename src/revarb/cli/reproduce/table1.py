"""`revarb reproduce table1`: system identification."""

import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from revarb import experiments
from revarb.cli.app import command_line, print_written, screen
from revarb.cli.reproduce.experiments_app import check_targets, experiments_app
from revarb.data.trajectory_figure import trajectory_figure
from revarb.evaluation.comparison.comparison_figure import comparison_figure
from revarb.evaluation.comparison.lines import summarise
from revarb.evaluation.results_file import write_results
from revarb.report.page import Section, comparison_page, comparison_section
from revarb.report.reliability_figures import reliability_figure
from revarb.report.tables import NOTES, comparison_grid, list_failures, terminal_table
from revarb.runtime.files import write_atomic
from revarb.runtime.machine import describe_machine
from revarb.runtime.progress import progress_bar


@experiments_app.command("table1")
def reproduce_table1(
    seeds: Annotated[int, typer.Option(help="Number of seeds per benchmark.", min=1)] = 5,
    jobs: Annotated[int, typer.Option(help="Number of processes.", min=1)] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all rows to this file.")] = None,
    page_file: Annotated[Path | None, typer.Option("--page", help="Write an HTML page with all simulations.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for pictures of every benchmark (first seed).")] = None,
) -> None:
    """Table 1 of the paper: REVARB and its rivals, every benchmark with several seeds, simulated on its test part."""
    check_targets(json_file, page_file, pictures)
    table = experiments.load_table1()
    rows: list[dict[str, Any]] = []
    sections: list[Section] = []
    for outcome in _outcomes(table, seeds, jobs):
        rows += outcome.rows
        sections.append(_section(outcome))
        screen.print(terminal_table(comparison_grid(outcome.benchmark.name, sections[-1].lines, sections[-1].paper)))
        for sentence in (*list_failures(sections[-1].lines), sections[-1].verdict, *sections[-1].remarks):
            screen.print(sentence, soft_wrap=True)
        if pictures is not None:
            _draw(pictures, outcome)
    for sentence in (f"protocol: {experiments.PROTOCOL}; {seeds} seed(s)", *NOTES):
        screen.print(sentence, soft_wrap=True)
    meta = {"table": "table1", "protocol": experiments.PROTOCOL, "seeds": seeds, "command": command_line.get()}
    if json_file is not None:
        print_written(write_results(json_file, meta, rows))
    if page_file is not None:
        page = comparison_page(
            table.title,
            experiments.state_headline(table, rows),
            sections,
            {"command": command_line.get(), **describe_machine()},
        )
        print_written(write_atomic(page_file, page.encode()))


def _outcomes(table: experiments.Table1, seeds: int, jobs: int):
    fits = len(table.models(1)) * len(table.benchmarks) * seeds
    with progress_bar(table.title, fits, show=True) as update:
        done = itertools.count(1)
        yield from experiments.run_table1(table, seeds, jobs, lambda text: update(next(done), text))


def _section(outcome: experiments.Outcome) -> Section:
    benchmark, lines = outcome.benchmark, summarise(outcome.rows)
    title = benchmark.name if benchmark.in_paper else f"{benchmark.name} (not in the paper)"
    return comparison_section(
        title, outcome.comparison, lines, benchmark.paper or None, list(benchmark.remarks.values())
    )


def _draw(folder: Path, outcome: experiments.Outcome) -> None:
    name, comparison = outcome.benchmark.name, outcome.comparison
    measured, paths = comparison.test[0].y, comparison.by_model()
    if paths:
        write_atomic(folder / f"{name}_all.png", comparison_figure(paths, measured, 0, "png"))
    if reliability := comparison.reliability():
        write_atomic(folder / f"{name}_calibration.png", reliability_figure(reliability, "png"))
    if "REVARB" in paths:
        title = f"{name}: free simulation of the test part"
        write_atomic(folder / f"{name}.png", trajectory_figure(paths["REVARB"][-1], measured, title))
