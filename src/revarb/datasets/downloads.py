"""Published files: found in the folder REVARB_DATA or in the user's cache, their checksums always compared.

If REVARB_DATA is set, files are taken from that folder only. Otherwise they are taken from the user's cache, and
downloaded into it the first time.
"""

import os
from pathlib import Path
from typing import NamedTuple

import pooch

from revarb.errors import InputError


class PublicFile(NamedTuple):
    """A published file: its name, its folder inside REVARB_DATA, its address and its sha256."""

    name: str
    folder: str
    address: str
    sha256: str


def fetch_file(file: PublicFile) -> Path:
    """Return the path of a published file with the right checksum; download it if necessary."""
    folder = os.environ.get("REVARB_DATA")
    if folder:
        return _find_in_folder(Path(folder), file)
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(pooch.retrieve(file.address, f"sha256:{file.sha256}", file.name, pooch.os_cache("revarb")))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"cannot download {file.name} ({type(error).__name__}: {reason[:200]}); put it into a folder and set "
            "REVARB_DATA to that folder"
        ) from None


def _find_in_folder(folder: Path, file: PublicFile) -> Path:
    candidates = [folder / file.folder / file.name, folder / file.name]
    for path in candidates:
        if path.is_file():
            if pooch.file_hash(str(path), alg="sha256") != file.sha256:
                raise InputError(f"{path} is not the published file: its sha256 differs; fetch it again")
            return path
    raise InputError(f"REVARB_DATA is set, but there is no {candidates[0]}; put the file there or unset the variable")
