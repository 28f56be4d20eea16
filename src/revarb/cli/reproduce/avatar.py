"""`revarb reproduce avatar`: motion under speeds that nobody has seen."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from revarb.cli.app import command_line, print_written, screen
from revarb.cli.reproduce.experiments_app import check_targets, experiments_app
from revarb.evaluation.results_file import write_results
from revarb.experiments import avatar
from revarb.models.fitted_rgp import FittedRGP
from revarb.motion.avatar.export import export_motion
from revarb.motion.avatar.model import load_avatar_records, load_avatar_spec
from revarb.motion.avatar.live_avatar import Recording
from revarb.motion.gaits import Gaits, find_phases, move_at_speed, make_speed_signals, synthesise
from revarb.motion.strip import draw_strip
from revarb.report.tables import Grid, terminal_table
from revarb.runtime.files import write_atomic

WALKING, RUNNING = "#2a5caa", "#c1272d"


STRIPS = {"step": 0.125, "ramp": 0.2, "sine": 0.2}
"""Signals that are drawn, and how much shorter than those that are judged: a strip has room for seconds."""


POSES = 18


@experiments_app.command("avatar")
def reproduce_avatar(
    out: Annotated[Path, typer.Option(help="Folder for the model, the strips and the exported motion.")] = Path(
        "avatar"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the training.", min=0)] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures of every signal.")] = None,
) -> None:
    """The paper's avatar: learns five walks and five runs by their speed, then walks, runs and walks again."""
    check_targets(json_file, None, out)
    records = load_avatar_records()
    gaits = Gaits.from_records(records)
    model = load_avatar_spec().fit(records, seed=seed, progress=True)
    print_written(model.save(out / "avatar.rgp"))
    rows = [_row(name, speeds, model, gaits) for name, speeds in make_speed_signals(gaits, model.dt).items()]
    screen.print(terminal_table(_grid(rows)))
    for name, pace in STRIPS.items():
        print_written(_draw(out, name, make_speed_signals(gaits, model.dt, pace)[name], model, gaits))
    print_written(*_export(out, make_speed_signals(gaits, model.dt)["step"], model, gaits))
    if json_file is not None:
        meta = {"experiment": "avatar", "seed": seed, "bound": model.bound, "command": command_line.get()}
        print_written(write_results(json_file, meta, rows))


def _row(name: str, speeds: np.ndarray, model: FittedRGP, gaits: Gaits) -> dict[str, Any]:
    values = synthesise(model, speeds)
    return {"signal": name, "seconds": len(speeds) * model.dt, **avatar.measure_motion(values, speeds, gaits, model.dt)}


def _grid(rows: list[dict[str, Any]]) -> Grid:
    cells = []
    for row in rows:
        for number, phase in enumerate(row["phases"]):
            common = [row["signal"], f"{row['range_excess']:.3f}", f"{row['jump_ratio']:.2f}"]
            cells.append([
                *(common if number == 0 else ["", "", ""]), phase["gait"], f"{phase['frequency']:.2f}",
                f"{phase['training_frequency']:.2f}", f"{phase['settled_after']:.2f}",
            ])  # fmt: skip
    columns = ("signal", "out of range", "jump", "gait", "hip Hz", "in training", "settled after s")
    return Grid("the avatar", columns, cells)


def _draw(folder: Path, name: str, speeds: np.ndarray, model: FittedRGP, gaits: Gaits) -> Path:
    motion = move_at_speed(synthesise(model, speeds), model.output_names, speeds, model.dt)
    picture = draw_strip(
        {f"{name}: {speeds.min():.1f} to {speeds.max():.1f} m/s, walking blue, running red": motion.joints()},
        motion.skeleton,
        "Motion under a speed that no training motion has",
        model.dt,
        poses=POSES,
        phases=_colours(speeds, gaits),
    )
    return write_atomic(folder / f"avatar_{name}.png", picture)


def _colours(speeds: np.ndarray, gaits: Gaits) -> list[str]:
    phases = find_phases(speeds, gaits)
    return [RUNNING if phase.name == "run" else WALKING for phase in phases for _ in range(phase.begin, phase.end)]


def _export(folder: Path, speeds: np.ndarray, model: FittedRGP, gaits: Gaits) -> list[Path]:
    played = Recording(speeds, synthesise(model, speeds), model.output_names, model.dt)
    return export_motion(played, folder, "step", film_seconds=len(speeds) * model.dt, colours=_colours(speeds, gaits))
