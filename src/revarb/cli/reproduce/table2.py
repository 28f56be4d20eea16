"""`revarb reproduce table2`: human motion."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from revarb import experiments
from revarb.cli.app import command_line, print_written, screen
from revarb.cli.reproduce.experiments_app import check_targets, experiments_app
from revarb.evaluation.comparison.lines import Line, summarise
from revarb.evaluation.results_file import write_results
from revarb.experiments.table2 import MotionRun, Table2
from revarb.motion import cmu35
from revarb.motion.motion_tables import NOTES, tabulate_motions
from revarb.motion.player_page import Clip, make_motion_page
from revarb.motion.strip import draw_strip
from revarb.report.tables import list_failures, terminal_table
from revarb.runtime.files import write_atomic
from revarb.runtime.machine import describe_machine
from revarb.runtime.progress import progress_bar

DRAWN = (cmu35.TEST[0], next(number for number in cmu35.TEST if number in cmu35.RUNS))


@experiments_app.command("table2")
def reproduce_table2(
    seeds: Annotated[int, typer.Option(help="Number of seeds per model.", min=1)] = 3,
    jobs: Annotated[int, typer.Option(help="Number of processes.", min=1)] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all rows to this file.")] = None,
    page_file: Annotated[Path | None, typer.Option("--page", help="Write a page that plays the motions.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for strips of a walk and a run (first seed).")] = None,
) -> None:
    """Table 2 of the paper: walks and runs that no model has seen, simulated from where the left toes are."""
    check_targets(json_file, page_file, pictures)
    table = experiments.load_table2()
    runs = _runs(table, seeds, jobs)
    rows = [row for run in runs for row in run.rows]
    lines = summarise(rows, experiments.MOTION_COLUMNS)
    grids = tabulate_motions(lines, table.paper)
    for grid in grids:
        screen.print(terminal_table(grid))
    for sentence in (*list_failures(lines), f"protocol: {experiments.MOTION_PROTOCOL}; {seeds} seed(s)", *NOTES):
        screen.print(sentence, soft_wrap=True)
    if json_file is not None:
        meta = {"table": "table2", "protocol": experiments.MOTION_PROTOCOL, "seeds": seeds}
        print_written(write_results(json_file, {**meta, "command": command_line.get()}, rows))
    shown = next((run for run in runs if run.model == table.shown and run.paths), None)
    if shown is None:
        return  # it failed, which the table has said
    clips = _clips(table, shown)
    if pictures is not None:
        for number in DRAWN:
            _draw(pictures, clips[number], table.shown)
    if page_file is not None:
        page = make_motion_page(
            table.title, _opening(table, lines), cmu35.load_skeleton(), list(clips.values()), grids,
            {"command": command_line.get(), **describe_machine()},
        )  # fmt: skip
        print_written(write_atomic(page_file, page.encode()))


def _runs(table: Table2, seeds: int, jobs: int) -> list[MotionRun]:
    order = list(table.models())
    fits = sum(len(models) * len(numbers) for models, numbers in table.groups(seeds))
    with progress_bar(table.title, fits, show=True) as update:
        done = itertools.count(1)
        runs = list(experiments.run_table2(table, seeds, jobs, lambda text: update(next(done), text)))
    return sorted(runs, key=lambda run: (order.index(run.model), run.seed))


def _clips(table: Table2, shown: MotionRun) -> dict[int, Clip]:
    # Where the root is, no model knows; both skeletons walk along the measured way.
    clips, skip = {}, shown.rows[0]["skip"]
    for number, path, rmse in zip(cmu35.TEST, shown.paths, shown.errors, strict=True):
        measured = cmu35.load_motion(number)
        simulated = cmu35.to_motion(path.mean, path.output_names, measured.root)
        kind = "run" if number in cmu35.RUNS else "walk"
        note = f"{table.shown}: RMSE {rmse:.3f} (z-scored, after {skip} frames)"
        clips[number] = Clip(f"35_{number:02d} {kind}", measured.joints(), simulated.joints(), path.dt, skip, note)
    return clips


def _draw(folder: Path, clip: Clip, model: str) -> None:
    strips = {"measured": clip.measured, f"simulated: {model}": clip.simulated}
    name = clip.name.replace(" ", "_")
    picture = draw_strip(strips, cmu35.load_skeleton(), f"{clip.name}, a test motion", clip.dt, clip.scored_from)
    write_atomic(folder / f"motion_{name}.png", picture)


def _opening(table: Table2, lines: Sequence[Line]) -> str:
    best: dict[str, Any] = {}
    for line in lines:
        if line.worked:
            error = line.ranges["motions_57"].median
            best[line.model] = min(error, best.get(line.model, error))
    ranked = sorted(best, key=best.__getitem__)
    return (
        f"{ranked[0]} is best: RMSE {best[ranked[0]]:.3f}, mean over test motions, median over seeds. "
        f"Below: test motions as measured and as {table.shown} simulates them from the position of the left toes."
    )
