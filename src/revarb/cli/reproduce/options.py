"""The group of `revarb reproduce` commands, and the options that they share."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app

experiments_app = typer.Typer(help="The paper's experiments.")
app.add_typer(experiments_app, name="reproduce")

Seeds = Annotated[int, typer.Option(help="Number of seeds.", min=1)]
Jobs = Annotated[int, typer.Option(help="Number of processes.", min=1)]
OnlyRecords = Annotated[list[str] | None, typer.Option(help="Run this record of the table; repeat for several.")]
FinishedRows = Annotated[
    Path | None, typer.Option("--rows", help="Keep every finished fit in this file, and go on where it ends.")
]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write all rows to this file.")]


@experiments_app.callback()
def _experiments() -> None:
    """The paper's experiments."""
