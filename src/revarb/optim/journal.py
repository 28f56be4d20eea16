"""Checkpoints of long fits: every evaluation is recorded on disk, and a fit that was killed replays them to resume.

SciPy does not expose L-BFGS-B's state, but its requests follow from the values it has received. So the values are
recorded in their order; replayed, they bring the optimiser to where it was in a fraction of a second, bit for bit.
Calls of Adam are recorded in the same way.

A journal is a sequence of entries, each with its length and its checksum. An incomplete entry at its end, from a
process that was killed while writing it, is ignored.
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
from revarb.optim.lbfgs import Objective
from revarb.runtime.files import write_atomic
from revarb.runtime.interrupts import capture_interrupts

FORMAT = "revarb journal 1"  # name of the first entry, whose digest identifies the fit
DELAY_SECONDS = 60.0  # entries stay in memory for this time: a fit that ends earlier writes no file
MAX_BUFFER_BYTES = 2**26  # with more than this in memory the file is written earlier
MAX_BYTES = 2**32  # of a journal; later evaluations are not recorded, and a resumed fit computes them again
MAX_AGE_DAYS = 30.0  # older journals are removed

Tree = TypeVar("Tree")


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
    folder = user_cache_path("revarb") / "unfinished"
    remove_old(folder)
    checkpoints = [Checkpoint(folder / f"{fit}.journal", resume, time.time() + DELAY_SECONDS) for fit in fits]
    any_exists = any(os.access(checkpoint.path, os.F_OK) for checkpoint in checkpoints)
    warn_about_unfinished("fit", any_exists, resume)
    return list(checkpoints)


def warn_about_unfinished(what: str, exists: bool, resume: bool) -> None:
    """Warn where there is nothing to resume, and where what could be resumed is not."""
    if resume and not exists:
        warn_user(f"there is no unfinished {what} like this one to resume: it starts from the beginning")
    if exists and not resume:
        warn_user(
            f"an unfinished {what} like this one exists; resume=True (--resume) continues it, this call starts from "
            "the beginning"
        )


_kept: ContextVar[list[Checkpoint | None] | None] = ContextVar("_kept", default=None)


@contextmanager
def keep_journals() -> Iterator[None]:
    """Keep the journals of fits that end inside the block, and remove them when it ends without an exception.

    For a block that also saves the results: if that fails, the fits can be resumed.
    """
    finished: list[Checkpoint | None] = []
    token = _kept.set(finished)
    try:
        yield
    finally:
        _kept.reset(token)
    discard_journals(finished)


def discard_journals(finished: Sequence[Checkpoint | None]) -> None:
    """Remove the journals of finished fits, now or at the end of `keep_journals`."""
    kept = _kept.get()
    if kept is not None:
        kept.extend(finished)
        return
    for checkpoint in finished:
        if checkpoint is not None:
            with suppress(OSError):
                checkpoint.path.unlink(missing_ok=True)


class Journal:
    """Records the results of functions, or replays them as long as the same calls come in the same order.

    Without a checkpoint it does neither. If the folder cannot be written to, the fit continues without a journal.
    Entries are not flushed to the disk: they survive a killed process, but not a power cut.
    """

    def __init__(self, checkpoint: Checkpoint | None = None):
        self._checkpoint = checkpoint
        self._file = _open(checkpoint) if checkpoint is not None and checkpoint.resume else None
        self._replaying = self._file is not None
        self._buffer = bytearray() if checkpoint is None else bytearray(_pack(FORMAT, checkpoint.path.stem, []))
        self._compiled: set[str] = set()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def keep(self) -> None:
        """Write entries that are still in memory: an interrupted fit can be resumed, however short it was."""
        if self._checkpoint is not None and self._file is None:
            with suppress(OSError, InputError):
                self._begin_file(self._checkpoint)

    def wrap_objective(self, name: str, objective: Objective) -> Objective:
        """Return the objective with every evaluation recorded or replayed."""
        if self._checkpoint is None:
            return objective

        def recorded(vector: np.ndarray) -> tuple[float, np.ndarray]:
            bound, gradient = self._replay_or_compute(name, [vector], lambda: [*objective(vector)])
            return float(bound), gradient

        return recorded

    def wrap_function(self, name: str, function: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
        """Return a function from a tree of arrays to one of the same form with every call recorded or replayed."""
        if self._checkpoint is None:
            return function

        def recorded(tree: Tree) -> Tree:
            leaves, form = jax.tree.flatten(tree)
            results = self._replay_or_compute(name, leaves, lambda: jax.tree.leaves(function(tree)))
            return jax.tree.unflatten(form, results)

        return recorded

    def _replay_or_compute(self, name: str, arguments: Sequence[Any], compute: Callable[[], list[Any]]) -> list[Any]:
        digest = _digest(arguments)
        replayed = self._replay(name, digest) if self._replaying else None
        if replayed is not None:
            return replayed
        # The first call compiles, also after a replay, and JAX cannot recover from an exception there.
        with nullcontext() if name in self._compiled else capture_interrupts():
            results = compute()
        self._compiled.add(name)
        self._record(name, digest, results)
        return results

    def _replay(self, name: str, digest: str) -> list[np.ndarray] | None:
        assert self._file is not None
        try:
            begin = self._file.tell()
            entry = _read_entry(self._file)
            if entry is not None and (entry.name, entry.digest) == (name, digest):
                return entry.results
            self._file.seek(begin)
            self._file.truncate()
        except OSError:
            self._close()
        else:
            # An entry with another name is normal: after Ctrl-C a fit goes on to its last part, which is recorded too.
            if entry is not None and entry.name == name:
                warn_user("the unfinished fit was rounded differently here: the rest of it is computed again")
        self._replaying = False
        return None

    def _record(self, name: str, digest: str, results: Sequence[Any]) -> None:
        if self._checkpoint is None:
            return
        entry = _pack(name, digest, results)
        try:
            if self._file is None:
                self._add_to_buffer(entry, self._checkpoint)
            elif self._file.tell() + len(entry) > MAX_BYTES:
                self._close()
            else:
                self._file.write(entry)
                self._file.flush()
        except (OSError, InputError):
            self._close()

    def _add_to_buffer(self, entry: bytes, checkpoint: Checkpoint) -> None:
        self._buffer += entry
        if time.time() >= checkpoint.write_after or len(self._buffer) >= MAX_BUFFER_BYTES:
            self._begin_file(checkpoint)

    def _begin_file(self, checkpoint: Checkpoint) -> None:
        checkpoint.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(checkpoint.path, bytes(self._buffer))
        self._buffer.clear()
        self._file = checkpoint.path.open("ab")

    def _close(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._checkpoint, self._file = None, None
        self._buffer.clear()


class _Entry(NamedTuple):
    """A recorded call: the name of the function, a digest of its arguments, and its results."""

    name: str
    digest: str
    results: list[np.ndarray]


def _digest(arrays: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for array in map(np.asarray, arrays):
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _pack(name: str, digest: str, results: Sequence[Any]) -> bytes:
    arrays = {str(number): np.asarray(array, order="C") for number, array in enumerate(results)}
    content = f"{name}\n{digest}\n".encode() + save(arrays)
    return len(content).to_bytes(8, "little") + hashlib.sha256(content).digest() + content


def _read_entry(file: BinaryIO) -> _Entry | None:
    # The entry at the current position; None at the end of the file, or if the rest is incomplete or damaged.
    head = file.read(8 + 32)
    length = int.from_bytes(head[:8], "little")
    if length > os.fstat(file.fileno()).st_size:
        return None
    content = file.read(length)
    if hashlib.sha256(content).digest() != head[8:]:
        return None
    name, digest, arrays = content.split(b"\n", 2)
    loaded = load(arrays)
    return _Entry(name.decode(), digest.decode(), [loaded[str(number)] for number in range(len(loaded))])


def _open(checkpoint: Checkpoint) -> BinaryIO | None:
    # The journal to resume from, positioned after its first entry; None if there is none of this fit.
    try:
        file = checkpoint.path.open("r+b")
        first = _read_entry(file)
    except OSError:
        return None
    if first is None or (first.name, first.digest) != (FORMAT, checkpoint.path.stem):
        file.close()
        return None
    return file


def remove_old(folder: Path) -> None:
    """Remove what fits that nobody resumed have left in the folder."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.stat().st_mtime < time.time() - MAX_AGE_DAYS * 86400.0:
                path.unlink(missing_ok=True)
