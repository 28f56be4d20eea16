"""What the experiments' commands share: their application, and the files that they are asked for."""

from pathlib import Path

import typer

from revarb.cli.app import app
from revarb.errors import InputError
from revarb.runtime.files import check_writable, make_folder

experiments_app = typer.Typer(help="The paper's experiments.")


app.add_typer(experiments_app, name="reproduce")


@experiments_app.callback()
def _experiments() -> None:
    """The paper's experiments."""


def check_targets(json_file: Path | None, page_file: Path | None, pictures: Path | None) -> None:
    """That the files can be written, before the work begins."""
    for target in (json_file, page_file):
        if target is not None:
            make_folder(target.parent)
            check_writable(target)
    if json_file is not None and json_file == page_file:
        raise InputError(f"--json and --page both name {json_file}; give each its own file")
    if pictures is not None:
        make_folder(pictures)
