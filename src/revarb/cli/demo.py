"""`revarb demo`: the Artificial benchmark end to end."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app
from revarb.runtime.interrupts import exit_on_interrupt


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the data, the model and the pictures.")] = Path(
        "revarb-demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of all fits.")] = 0,
) -> None:
    """Run the Artificial benchmark from end to end.

    300 noisy samples in, 300 simulated samples with bands out.
    """
    with exit_on_interrupt():
        from revarb.cli.work.demo import run_demo
    run_demo(folder, seed)
