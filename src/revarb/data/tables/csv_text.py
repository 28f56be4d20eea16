"""The text of a CSV file, also where it is compressed or in UTF-16."""

import codecs
import gzip
import zlib
from pathlib import Path

from revarb.errors import InputError

GZIP = b"\x1f\x8b"  # a text never begins with it
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 with a byte order mark, with or without gzip; lines end in "\\n"."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if content.startswith(GZIP):
        content = _decompress(path, content)
    try:
        text = content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            f"{path} is not a text file in UTF-8, or in UTF-16 with a byte order mark; save it as CSV in UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decompress(path: Path, content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is not a gzip file, or it is damaged: {error}") from None
