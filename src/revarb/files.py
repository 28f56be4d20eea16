"""Files appear whole or not at all."""

import os
import tempfile
from pathlib import Path

from revarb.errors import InputError


def write_whole(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write to a temporary name in the same folder, then rename: a reader sees the old file or the new one."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: the folder {target.parent} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder; give a file name")
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
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


def _umask() -> int:
    # There is no way to read it without setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
