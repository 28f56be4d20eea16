"""Atomic file writes: a reader sees the old file or the complete new one.

A link is followed, and its target replaced. A pipe or a device cannot be replaced: it is written to.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from revarb.errors import InputError

_PREFIX, _SUFFIX = ".revarb-", ".part"  # of temporary files
_STALE_SECONDS = 3600.0  # no write takes this long: an older temporary file is left over from a killed process
_PROBE = bytes(1 << 20)  # a model and its pictures are seldom larger


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    with _explain_failure(f"cannot read {path}"):
        return path.read_bytes()


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written to; called before a long computation rather than after it.

    A temporary file is written beside it: permissions do not show a full disk, a quota, or a folder of the system.
    """
    target = _find_target(path)
    if not is_stream(target):
        with (
            _explain_failure(
                f"cannot write {target}: no file can be written in {target.parent}", "; choose another folder"
            ),
            tempfile.TemporaryFile(dir=target.parent) as file,
        ):
            file.write(_PROBE)
            file.flush()
    return target


def _find_target(path: str | os.PathLike[str]) -> Path:
    # The file that is written; what is wrong with it is refused, as far as it can be seen without writing.
    target = Path(path)
    if is_stream(target):
        if target.is_dir() or not os.access(target, os.W_OK):
            raise InputError(f"cannot write {target}: it is no pipe or device that may be written to")
        return target
    with _explain_failure(f"cannot write {target}"):  # links in a circle
        target = target.resolve() if target.is_symlink() else target
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: the folder {target.parent} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder; give a file name")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"cannot write {target}: no permission to write in {target.parent}")
    return target


def is_stream(target: Path) -> bool:
    """Whether a path is a pipe or a device, which is written to and cannot be replaced."""
    # What /dev/stdout links to may be a file, which other programs have open.
    if target.parent == Path("/dev") or target.is_relative_to("/dev/fd"):
        return True
    with _explain_failure(f"cannot write {target}"):  # a name that is too long, or a folder that may not be searched
        return target.exists() and not target.is_file() and not target.is_dir()


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Create a folder and its parents unless they exist."""
    with _explain_failure(f"cannot create the folder {path}"):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


def write_atomic(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file atomically: to a temporary name in the same folder, then rename.

    The content is flushed to the disk before the rename, so `kill -9` or a power cut leaves one of the two files.
    """
    target = _find_target(path)
    with _explain_failure(f"cannot write {target}"):
        if is_stream(target):
            with suppress(BrokenPipeError), target.open("ab") as stream:  # broken where the reader has read enough
                stream.write(content)
        else:
            _replace(target, content)
    return target


def _replace(target: Path, content: bytes) -> None:
    _remove_stale(target.parent)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=_PREFIX, suffix=_SUFFIX, delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_read_umask())  # a temporary file is readable by its owner only
        temporary.replace(target)
    except BaseException:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise


def _remove_stale(folder: Path) -> None:
    # Temporary files of processes that were killed while writing.
    with suppress(OSError):
        for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
            if path.stat().st_mtime < time.time() - _STALE_SECONDS:
                path.unlink(missing_ok=True)


def _read_umask() -> int:
    # POSIX has no call that reads the mask without setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def _explain_failure(what: str, remedy: str = "") -> Iterator[None]:
    # An error of the operating system is the user's to repair: a line that says what could not be done, and why.
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise InputError(f"{what}: {getattr(error, 'strerror', None) or error}{remedy}") from None
