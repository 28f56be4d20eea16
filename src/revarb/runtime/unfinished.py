"""The store of unfinished work, from which a killed or interrupted call is resumed: files in the user's cache folder.

A fit keeps a journal of every evaluation (journal.py); a choice or a comparison keeps its finished parts.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import jax
from platformdirs import user_cache_path
from safetensors import SafetensorError

from revarb.errors import InputError, warn_user

DELAY_SECONDS = 60.0  # a fit that ends earlier writes no journal
MAX_AGE_DAYS = 30.0  # older files are removed

Part = TypeVar("Part")


class Checkpoint(NamedTuple):
    """The journal file of a fit, whether to resume from it, and before which time a new one is not written."""

    path: Path
    resume: bool
    write_after: float  # in seconds since the epoch: valid in all processes of a machine


def make_checkpoints(fits: Sequence[str], resume: bool) -> list[Checkpoint | None]:
    """Make a checkpoint for each fit, named by a digest of all it depends on; warn about missing or unused journals.

    On several hosts that compute together there are none: their journals could end at different evaluations.
    """
    if jax.process_count() > 1:
        return [None] * len(fits)
    folder = find_folder()
    checkpoints = [Checkpoint(folder / f"{fit}.journal", resume, time.time() + DELAY_SECONDS) for fit in fits]
    warn_about_unfinished("fit", any(os.access(each.path, os.F_OK) for each in checkpoints), resume)
    return list(checkpoints)


@dataclass(frozen=True)
class UnfinishedParts:
    """Finished parts of unfinished work, a file or a few each, whose names identify all that they depend on.

    If the folder cannot be written to, the work continues without it.
    """

    folder: Path
    patterns: Sequence[str]  # of the names of its files
    resume: bool  # whether parts of an earlier call are used

    @classmethod
    def open(cls, what: str, patterns: Sequence[str], resume: bool) -> "UnfinishedParts":
        """Open the parts of this work; without `resume` earlier ones are removed, and the user is told."""
        parts = cls(find_folder(), patterns, resume)
        known = parts._list_files()
        warn_about_unfinished(what, bool(known), resume)
        if not resume:  # now, whatever `keep_journals` says: they are not those of this call
            _remove(known)
        return parts

    def read(self, name: str, parse: Callable[[Path], Part]) -> Part | None:
        """What `parse` makes of a file of an earlier call; None without `resume`, or if it is missing or damaged."""
        try:
            return parse(self.folder / name) if self.resume else None
        except (OSError, ValueError, KeyError, TypeError, SafetensorError):  # an InputError is a ValueError
            return None

    def write(self, name: str, write: Callable[[Path], object]) -> None:
        """Let `write` make a file."""
        with suppress(OSError, InputError, TypeError):  # also what JSON cannot hold
            self.folder.mkdir(parents=True, exist_ok=True)
            write(self.folder / name)

    def discard(self) -> None:
        """Remove all parts, now or at the end of `keep_journals`."""
        _discard(self._list_files())

    def _list_files(self) -> list[Path]:
        with suppress(OSError):
            return sorted({file for pattern in self.patterns for file in self.folder.glob(pattern)})
        return []


def find_folder() -> Path:
    """The folder of unfinished work; what nobody has resumed for a month is removed from it."""
    folder = user_cache_path("revarb") / "unfinished"
    with suppress(OSError):
        _remove([path for path in folder.iterdir() if path.stat().st_mtime < time.time() - MAX_AGE_DAYS * 86400.0])
    return folder


def warn_about_unfinished(what: str, exists: bool, resume: bool) -> None:
    """Warn where there is nothing to resume, and where what could be resumed is not."""
    if resume and not exists:
        warn_user(f"there is no unfinished {what} like this one to resume: it starts from the beginning")
    if exists and not resume:
        warn_user(
            f"an unfinished {what} like this one exists; resume=True (--resume) continues it, this call starts from "
            "the beginning"
        )


_kept: ContextVar[list[Path] | None] = ContextVar("_kept", default=None)


@contextmanager
def keep_journals() -> Iterator[None]:
    """Keep the files of work that is finished inside the block, and remove them when it ends without an exception.

    For a block that also saves the results: if that fails, the work can be resumed.
    """
    finished: list[Path] = []
    token = _kept.set(finished)
    try:
        yield
    finally:
        _kept.reset(token)
    _discard(finished)


def discard_journals(finished: Sequence[Checkpoint | None]) -> None:
    """Remove the journals of finished fits, now or at the end of `keep_journals`."""
    _discard([checkpoint.path for checkpoint in finished if checkpoint is not None])


def _discard(files: Sequence[Path]) -> None:
    kept = _kept.get()
    if kept is None:
        _remove(files)
    else:
        kept.extend(files)


def _remove(files: Sequence[Path]) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink(missing_ok=True)
