"""`revarb datasets`: the benchmark records."""

from typing import Annotated

import typer

from revarb.cli.application import app, screen
from revarb.runtime.interrupts import exit_on_interrupt

datasets_app = typer.Typer(help="Benchmark data: list it, fetch it.")


app.add_typer(datasets_app, name="datasets")


@datasets_app.command("list")
def list_datasets() -> None:
    """Name every benchmark."""
    with exit_on_interrupt():
        from revarb import datasets
        from revarb.analysis.tables import dataset_table
    screen.print(dataset_table({name: datasets.about(name) for name in datasets.names()}))


@datasets_app.command("fetch")
def fetch_datasets(
    names: Annotated[list[str] | None, typer.Argument(help="Names; default: all that are recorded.")] = None,
) -> None:
    """Download benchmark files to the user's cache folder.

    They are checked; says where each is.
    """
    with exit_on_interrupt():
        from revarb import datasets
        from revarb.datasets import GENERATED
    for name in names or [name for name in datasets.names() if name not in GENERATED]:
        screen.print(f"{name}: {datasets.fetch(name)}", soft_wrap=True)
