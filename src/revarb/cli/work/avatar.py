"""Serve the page of the avatar, whose model is trained on first use."""

import time
from pathlib import Path

from revarb.cli.application import print_written, screen
from revarb.errors import InputError, RevarbError, warn_user
from revarb.models.fitted_rgp import FittedRGP
from revarb.motion.avatar.live_avatar import LiveAvatar
from revarb.motion.avatar.model import cache_model, load_avatar_records, load_cached_model, open_model, train_model
from revarb.motion.gaits import Gaits
from revarb.runtime.interrupts import capture_interrupts


def serve_avatar(model_file: Path | None, port: int, host: str, folder: Path) -> None:
    """`revarb avatar` with its options."""
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
