"""Files appear whole or not at all."""

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from revarb.errors import InputError

_PREFIX, _SUFFIX = ".revarb-", ".part"


_STALE_SECONDS = 3600.0  # seconds: nobody writes for so long


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse a place that cannot be written to: before the work, not after it."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: the folder {target.parent} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder; give a file name")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"cannot write {target}: no permission to write in {target.parent}")
    return target


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Create a folder, and those above it, unless it is there."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the folder {path}: {error.strerror or error}") from None
    return Path(path)


def write_atomic(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write to a temporary name in the same folder, then rename: a reader sees the old file or the new one.

    The content is on the disk before it gets its name, so this holds for kill -9 and a power cut as well.
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
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InputError(f"cannot write {target}: {error.strerror or error}") from None
        raise
    return target


def _remove_stale(folder: Path) -> None:
    # Temporary files of processes that were killed while they wrote.
    with suppress(OSError):
        for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
            if path.stat().st_mtime < time.time() - _STALE_SECONDS:
                path.unlink(missing_ok=True)


def _umask() -> int:
    # There is no way to read it without setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
