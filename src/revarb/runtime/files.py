"""Atomic file writes: a reader sees the old file or the complete new one.

A link is followed, and its target replaced. A pipe or a device cannot be replaced: it is written to.
"""

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
    if is_stream(Path(path)):
        return _check_stream(Path(path))
    target = _follow_links(path)
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
    if is_stream(target):
        return _write_to_stream(target, content)
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


def _follow_links(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    try:
        return target.resolve() if target.is_symlink() else target
    except (OSError, RuntimeError) as error:  # links in a circle
        raise InputError(f"cannot write {target}: {error}") from None


def is_stream(target: Path) -> bool:
    """Whether a path is a pipe or a device, which is written to and cannot be replaced."""
    # What /dev/stdout links to may be a file, which other programs have open.
    if target.parent == Path("/dev") or target.is_relative_to("/dev/fd"):
        return True
    try:
        return target.exists() and not target.is_file() and not target.is_dir()
    except OSError as error:  # a name that is too long, or a folder that may not be searched
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None


def _check_stream(target: Path) -> Path:
    if target.is_dir() or not os.access(target, os.W_OK):
        raise InputError(f"cannot write {target}: it is no pipe or device that may be written to")
    return target


def _write_to_stream(target: Path, content: bytes) -> Path:
    try:
        with target.open("ab") as stream:
            stream.write(content)
    except BrokenPipeError:  # the reader has read enough
        pass
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None
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
