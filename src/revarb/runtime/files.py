"""Atomic file writes: a reader sees the old file or the complete new one."""

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from revarb.errors import InputError

_PREFIX, _SUFFIX = ".revarb-", ".part"  # of temporary files
_STALE_SECONDS = 3600.0  # no write takes this long: an older temporary file is left over from a killed process


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written to; called before a long computation rather than after it."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: the folder {target.parent} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder; give a file name")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"cannot write {target}: no permission to write in {target.parent}")
    return target


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Create a folder and its parents unless they exist."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the folder {path}: {error.strerror or error}") from None
    return Path(path)


def write_atomic(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file atomically: to a temporary name in the same folder, then rename.

    The content is flushed to the disk before the rename, so `kill -9` or a power cut leaves one of the two files.
    """
    target = check_writable(path)
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
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InputError(f"cannot write {target}: {error.strerror or error}") from None
        raise
    return target


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
