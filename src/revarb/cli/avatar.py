"""`revarb avatar`: type a speed, watch it walk and run."""

import time
import warnings
from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.app import app, print_written, screen
from revarb.errors import InputError
from revarb.models.fitted_rgp import FittedRGP
from revarb.motion.avatar.model import avatar_records, keep_model, kept_model, open_model, train_model
from revarb.motion.avatar.player import Player
from revarb.motion.gaits import Gaits
from revarb.runtime.interrupts import capture_interrupts


@app.command()
def avatar(
    model_file: Annotated[Path | None, typer.Option("--model", help="A model of cmu35.controlled records.")] = None,
    port: Annotated[int, typer.Option(help="Port of the page; 0 takes any that is free.", min=0, max=65535)] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on; the default is this machine only.")] = "127.0.0.1",
    folder: Annotated[Path, typer.Option("--out", help="Where the page exports to.")] = Path("avatar_export"),
) -> None:
    """A skeleton in the browser that walks and runs as fast as you say; Ctrl-C ends it.

    Without --model the paper's avatar is trained on first use and kept in the user's cache folder.
    """
    try:
        from revarb.motion.avatar.page import Page, check_address  # a heavy import that only this command needs
    except ModuleNotFoundError as error:
        raise InputError(f'the page needs {error.name}; pip install "revarb[avatar]"') from None
    check_address(host, port)
    model = _trained_model() if model_file is None else open_model(model_file)
    player = Player(model, Gaits.from_records(avatar_records()))
    with capture_interrupts(raise_after=1) as pressed, Page(player, host, port, folder) as page:
        screen.print(f"the avatar is at {page.url} (Ctrl-C ends it)", soft_wrap=True)
        page.run(until=lambda: bool(pressed))


def _trained_model() -> FittedRGP:
    kept = kept_model()
    if kept is not None:
        return kept
    screen.print("training the avatar on ten walks and runs, once; this takes some minutes", soft_wrap=True)
    begun = time.perf_counter()
    model = train_model()
    screen.print(f"trained in {time.perf_counter() - begun:.0f} s")
    try:
        with capture_interrupts():
            print_written(keep_model(model))
    except InputError as error:
        warnings.warn(f"the model is not kept for the next time: {error}", stacklevel=2)
    return model
