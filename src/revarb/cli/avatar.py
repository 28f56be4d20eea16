"""`revarb avatar`: a skeleton in the browser that walks and runs at the speed of a slider."""

import time
from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app, print_written, screen
from revarb.errors import InputError, RevarbError, warn_user
from revarb.models.fitted_rgp import FittedRGP
from revarb.motion.avatar.live_avatar import LiveAvatar
from revarb.motion.avatar.model import cache_model, load_avatar_records, load_cached_model, open_model, train_model
from revarb.motion.gaits import Gaits
from revarb.runtime.interrupts import capture_interrupts


@app.command("avatar")
def open_avatar(
    model_file: Annotated[
        Path | None, typer.Option("--model", help="A model of cmu35.load_speed_series records.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the page; 0 takes any that is free.", min=0, max=65535)] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on; the default is this machine only.")] = "127.0.0.1",
    folder: Annotated[Path, typer.Option("--out", help="Folder for what the page exports.")] = Path("avatar_export"),
) -> None:
    """A skeleton in the browser that walks and runs at the speed of a slider; Ctrl-C ends it.

    Without --model the paper's avatar is trained on first use and kept in the user's cache folder.
    """
    try:
        from revarb.motion.avatar.live_page import LivePage, check_address  # viser is slow to import, and optional
    except ModuleNotFoundError as error:
        raise InputError(f'the page needs {error.name}; pip install "revarb[avatar]"') from None
    check_address(host, port)
    model = _load_or_train_model() if model_file is None else open_model(model_file)
    avatar = LiveAvatar(model, Gaits.from_records(load_avatar_records()))
    with capture_interrupts(raise_after=1) as pressed, LivePage(avatar, host, port, folder) as page:
        screen.print(f"the avatar is at {page.url} (Ctrl-C ends it)", soft_wrap=True)
        page.run(until=lambda: bool(pressed))


def _load_or_train_model() -> FittedRGP:
    cached = load_cached_model()
    if cached is not None:
        return cached
    screen.print("training the avatar on ten walks and runs, once; this takes some minutes", soft_wrap=True)
    begin = time.perf_counter()
    model = train_model()
    screen.print(f"trained in {time.perf_counter() - begin:.0f} s")
    try:
        with capture_interrupts():
            print_written(cache_model(model))
    except RevarbError as error:
        warn_user(f"the trained model could not be cached: {error}")
    return model
