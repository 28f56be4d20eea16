"""`revarb reproduce avatar`: motion under speeds that are not in the training data."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.reproduce.options import experiments_app
from revarb.runtime.interrupts import exit_on_interrupt


@experiments_app.command("avatar")
def reproduce_avatar(
    out: Annotated[Path, typer.Option(help="Folder for the model, the strips and the exported motion.")] = Path(
        "avatar"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the training.", min=0)] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the measures of every signal.")] = None,
) -> None:
    """The paper's avatar: motion by its speed.

    It learns five walks and five runs, then walks, runs and walks again.
    """
    with exit_on_interrupt():
        from revarb.cli.reproduce.avatar_run import run_avatar
        from revarb.motion.avatar.model import load_avatar_spec
    run_avatar(load_avatar_spec(), out, seed, json_file)
