"""What a long fit has computed so far, on disk: after a kill the same fit replays it, and goes on from there.

SciPy's L-BFGS-B shows its memory to nobody, but what it asks for follows from the answers it got. So the answers are
noted, in their order; replayed, they lead the optimiser in a fraction of a second to where it was, to the last bit.
Stretches of Adam are noted in the same way.

A journal is a row of entries, each with its length and its checksum. What comes after the last whole one, because the
process was killed while it wrote, counts for nothing.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import jax
import numpy as np
from platformdirs import user_cache_path
from safetensors.numpy import load, save

from revarb.errors import InputError, warn_user
from revarb.runtime.files import write_atomic
from revarb.runtime.interrupts import capture_interrupts

FORMAT = "revarb journal 1"  # the name of the first entry, which asks nothing but whose journal it is


QUIET_SECONDS = 60.0  # seconds: a fit that is over by then leaves no trace


MAX_BUFFER_BYTES = 2**26  # bytes in memory until then; with more than that it is begun at once


MAX_BYTES = 2**32  # of a journal; what comes later is not noted, and a resumed fit computes it again


MAX_AGE_DAYS = 30.0  # after which nobody will come back for it


Tree = TypeVar("Tree")


Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Checkpoint(NamedTuple):
    """Where the journal of a fit is, whether to go on from it, and until when a new one is not worth a file."""

    path: Path
    resume: bool
    quiet_until: float  # in seconds since the epoch, which all processes of a machine agree about


def make_checkpoints(fits: Sequence[str], resume: bool) -> list[Checkpoint | None]:
    """A checkpoint for each of the fits, named by digests of all that they depend on; says if there is an old one.

    There is none on several hosts that compute together: they must not be at different places of their journals.
    """
    if jax.process_count() > 1:
        return [None] * len(fits)
    folder = user_cache_path("revarb") / "unfinished"
    _remove_old(folder)
    found = [Checkpoint(folder / f"{fit}.journal", resume, time.time() + QUIET_SECONDS) for fit in fits]
    there = any(os.access(checkpoint.path, os.F_OK) for checkpoint in found)
    if resume and not there:
        warn_user("there is no unfinished fit like this one to resume: it starts from the beginning")
    if there and not resume:
        message = "an unfinished fit like this one is there; resume=True (--resume) goes on from it, this starts again"
        warn_user(message)
    return list(found)


_kept: ContextVar[list[Checkpoint | None] | None] = ContextVar("_kept", default=None)


@contextmanager
def keep_journals() -> Iterator[None]:
    """Journals of fits that end inside are removed when the block has ended well: what was found is safe by then."""
    finished: list[Checkpoint | None] = []
    token = _kept.set(finished)
    try:
        yield
    finally:
        _kept.reset(token)
    discard_journals(finished)


def discard_journals(finished: Sequence[Checkpoint | None]) -> None:
    """Remove the journals of fits that have ended, now or at the end of `keep_journals`."""
    kept = _kept.get()
    if kept is not None:
        kept.extend(finished)
        return
    for checkpoint in finished:
        if checkpoint is not None:
            with suppress(OSError):
                checkpoint.path.unlink(missing_ok=True)


class Journal:
    """Notes the answers of functions, or replays them as long as the same is asked in the same order.

    Without a checkpoint it does neither. A place that cannot be written to is no reason to fail: there is no journal
    then. Nothing waits for the disk: what a killed process has written is in the hands of the system.
    """

    def __init__(self, checkpoint: Checkpoint | None = None):
        self._checkpoint = checkpoint
        self._file = _opened(checkpoint) if checkpoint is not None and checkpoint.resume else None
        self._replaying = self._file is not None
        self._waiting = bytearray() if checkpoint is None else bytearray(_packed(FORMAT, checkpoint.path.stem, []))
        self._compiled: set[str] = set()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def objective(self, name: str, objective: Objective) -> Objective:
        """The same objective, every evaluation noted."""
        if self._checkpoint is None:
            return objective

        def noted(vector: np.ndarray) -> tuple[float, np.ndarray]:
            bound, gradient = self._answer(name, [vector], lambda: [*objective(vector)])
            return float(bound), gradient

        return noted

    def stretch(self, name: str, advance: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
        """The same function from a tree of arrays to one of the same form, every call noted."""
        if self._checkpoint is None:
            return advance

        def noted(now: Tree) -> Tree:
            leaves, form = jax.tree.flatten(now)
            return jax.tree.unflatten(form, self._answer(name, leaves, lambda: jax.tree.leaves(advance(now))))

        return noted

    def _answer(self, name: str, question: Sequence[Any], compute: Callable[[], list[Any]]) -> list[Any]:
        asked = _digest(question)
        noted = self._next(name, asked) if self._replaying else None
        if noted is not None:
            return noted
        # The first call compiles, also after a replay: JAX does not survive an exception there.
        with nullcontext() if name in self._compiled else capture_interrupts():
            answer = compute()
        self._compiled.add(name)
        self._note(name, asked, answer)
        return answer

    def _next(self, name: str, asked: str) -> list[np.ndarray] | None:
        assert self._file is not None
        try:
            begin = self._file.tell()
            entry = _read(self._file)
            if entry is not None and (entry.name, entry.asked) == (name, asked):
                return entry.answer
            self._file.seek(begin)
            self._file.truncate()
        except OSError:
            self._stop()
        else:
            # Another name is no surprise: after Ctrl-C a fit goes straight to its end, and notes that too.
            if entry is not None and entry.name == name:
                message = "the unfinished fit was rounded differently here: the rest of it is computed again"
                warn_user(message)
        self._replaying = False
        return None

    def _note(self, name: str, asked: str, answer: Sequence[Any]) -> None:
        if self._checkpoint is None:
            return
        entry = _packed(name, asked, answer)
        try:
            if self._file is None:
                self._wait_with(entry, self._checkpoint)
            elif self._file.tell() + len(entry) > MAX_BYTES:
                self._stop()
            else:
                self._file.write(entry)
                self._file.flush()
        except (OSError, InputError):
            self._stop()

    def _wait_with(self, entry: bytes, checkpoint: Checkpoint) -> None:
        self._waiting += entry
        if time.time() < checkpoint.quiet_until and len(self._waiting) < MAX_BUFFER_BYTES:
            return
        checkpoint.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(checkpoint.path, bytes(self._waiting))
        self._waiting.clear()
        self._file = checkpoint.path.open("ab")

    def _stop(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._checkpoint, self._file = None, None
        self._waiting.clear()


class _Entry(NamedTuple):
    name: str
    asked: str
    answer: list[np.ndarray]


def _digest(arrays: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for array in map(np.asarray, arrays):
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _packed(name: str, asked: str, answer: Sequence[Any]) -> bytes:
    arrays = {str(number): np.asarray(array, order="C") for number, array in enumerate(answer)}
    content = f"{name}\n{asked}\n".encode() + save(arrays)
    return len(content).to_bytes(8, "little") + hashlib.sha256(content).digest() + content


def _read(file: BinaryIO) -> _Entry | None:
    # The entry that begins here; None at the end, and where the rest is not a whole one.
    head = file.read(8 + 32)
    length = int.from_bytes(head[:8], "little")
    if length > os.fstat(file.fileno()).st_size:
        return None
    content = file.read(length)
    if hashlib.sha256(content).digest() != head[8:]:
        return None
    name, asked, arrays = content.split(b"\n", 2)
    loaded = load(arrays)
    return _Entry(name.decode(), asked.decode(), [loaded[str(number)] for number in range(len(loaded))])


def _opened(checkpoint: Checkpoint) -> BinaryIO | None:
    # The journal to go on from, after its first entry; None where there is none of this fit.
    try:
        file = checkpoint.path.open("r+b")
        first = _read(file)
    except OSError:
        return None
    if first is None or (first.name, first.asked) != (FORMAT, checkpoint.path.stem):
        file.close()
        return None
    return file


def _remove_old(folder: Path) -> None:
    with suppress(OSError):
        for path in folder.iterdir():
            if path.stat().st_mtime < time.time() - MAX_AGE_DAYS * 86400.0:
                path.unlink(missing_ok=True)
