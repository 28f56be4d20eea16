"""`revarb demo`: a plant from its records to a simulation with a band, in a minute."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app
from revarb.runtime.interrupts import exit_on_interrupt


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the data, the model and the picture.")] = Path(
        "revarb-demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the record and its noise.")] = 0,
) -> None:
    """Learn two tanks from 400 noisy samples, and simulate 400 more.

    The inputs of the second record are new. A table and a picture compare the simulation with ARX; it takes a minute.
    """
    with exit_on_interrupt():
        from revarb.cli.work.demo import run_demo
    run_demo(folder, seed)
