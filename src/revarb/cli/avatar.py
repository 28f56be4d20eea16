"""`revarb avatar`: a skeleton in the browser that walks and runs at the speed of a slider."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app
from revarb.runtime.interrupts import exit_on_interrupt


@app.command("avatar")
def open_avatar(
    model_file: Annotated[
        Path | None, typer.Option("--model", help="A model of cmu35.load_speed_series records.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the page; 0 takes any that is free.", min=0, max=65535)] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on; the default is this machine only.")] = "127.0.0.1",
    folder: Annotated[Path, typer.Option("--out", help="Folder for what the page exports.")] = Path("avatar_export"),
) -> None:
    """Show a skeleton that walks and runs at the speed of a slider.

    It is a page for the browser; Ctrl-C ends it. Without --model the paper's avatar is trained on first use and kept in
    the user's cache folder.
    """
    with exit_on_interrupt():
        from revarb.cli.work.avatar import serve_avatar
    serve_avatar(model_file, port, host, folder)
