"""`revarb reproduce avatar`: motion under speeds that are not in the training data."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import print_written, screen
from revarb.cli.reproduce.runner import Targets, experiments_app, write_figures, write_rows
from revarb.config.rgp import RGP
from revarb.experiments.avatar import draw_signals, export_step, measure_signals, tabulate_signals
from revarb.motion.avatar.model import load_avatar_records, load_avatar_spec
from revarb.motion.gaits import Gaits
from revarb.report.tables import terminal_table


@experiments_app.command("avatar")
def reproduce_avatar(
    out: Annotated[Path, typer.Option(help="Folder for the model, the strips and the exported motion.")] = Path(
        "avatar"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the training.", min=0)] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the measures of every signal.")] = None,
) -> None:
    """The paper's avatar: learns five walks and five runs by their speed, then walks, runs and walks again."""
    run_avatar(load_avatar_spec(), out, seed, json_file)


def run_avatar(spec: RGP, out: Path, seed: int, json_file: Path | None) -> None:
    """Train an avatar, measure its motions, and write the model, strips, exports and the results file."""
    Targets(json_file, pictures=out).check()
    records = load_avatar_records()
    gaits = Gaits.from_records(records)
    model = spec.fit(records, seed=seed, progress=True)
    print_written(model.save(out / "avatar.rgp"))
    rows = measure_signals(model, gaits)
    screen.print(terminal_table(tabulate_signals(rows)))
    write_figures(out, draw_signals(model, gaits))
    print_written(*export_step(model, gaits, out))
    if json_file is not None:
        write_rows(json_file, {"experiment": "avatar", "seed": seed, "bound": model.bound}, rows)
