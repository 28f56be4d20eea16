"""Journal of a fit: every evaluation is recorded on disk, and a fit that was killed replays them to resume.

SciPy does not expose L-BFGS-B's state, but its requests follow from the values it has received. So the values are
recorded in their order; replayed, they bring the optimiser to where it was in a fraction of a second, bit for bit.
Calls of Adam are recorded in the same way.

A journal is a sequence of entries, each with its length and its checksum. An incomplete entry at its end, from a
process that was killed while writing it, is ignored.
"""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Any, BinaryIO, NamedTuple, TypeVar

import jax
import numpy as np
from safetensors.numpy import load, save

from revarb.errors import InputError, warn_user
from revarb.runtime.files import write_atomic
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.unfinished import Checkpoint

FORMAT = "revarb journal 1"  # name of the first entry, whose digest identifies the fit
MAX_BUFFER_BYTES = 2**26  # with more than this in memory the file is written earlier
MAX_BYTES = 2**32  # of a journal; later evaluations are not recorded, and a resumed fit computes them again

Tree = TypeVar("Tree")
Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


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
            # An entry with another name is normal: after Ctrl-C the last part of a fit is recorded too.
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
