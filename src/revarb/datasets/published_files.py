"""Files of recorded benchmarks: where they are published, their checksums, and how to read them.

If REVARB_DATA is set, files are taken from that folder only. Otherwise they are taken from the user's cache, and
downloaded into it the first time. Their checksums are always compared.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import pooch
from scipy.io import loadmat

from revarb.data.series import Series
from revarb.errors import InputError
from revarb.runtime.files import write_atomic

Reader = Callable[[Path], Series]

ADDRESSES = {  # of the folders inside REVARB_DATA, and of single files
    "sysid": "https://raw.githubusercontent.com/zhenwendai/RGP/be679607d3457a1038a2fe39b36b816ea380ea39/"
    "datasets/system_identification/",
    "daisy": "https://raw.githubusercontent.com/robotsorcerer/FARNN/9cfb82f2b42a53a604dba66d0eab23243a9a21ae/data/",
    "benchmarks/wiener_hammerstein.csv": "https://raw.githubusercontent.com/forgi86/sysid-neural-estimator/HEAD/"
    "examples/wh2009/data/WienerHammerBenchmark.csv",
}
ARCHIVES = {  # zip files, and the names of the files in them
    "ced_uniform.mat": ("https://uu.diva-portal.org/smash/get/diva2:1165531/FULLTEXT01.zip", "DATAUNIF.MAT"),
    "cascaded_tanks.mat": (
        "https://data.4tu.nl/file/d4810b78-6cdd-48fe-8950-9bd601e5f47f/3b697e42-01a4-4979-a370-813a456c36f5",
        "CascadedTanksFiles/dataBenchmark.mat",
    ),
    "silverbox_snls80mv.mat": (
        "https://drive.google.com/uc?export=download&id=17iS-6oBUUgrmiAcrZoG9S5sOaljZnDSy",
        "SilverboxFiles/SNLS80mV.mat",
    ),
}
SHA256 = {
    "actuator.mat": "35d1f95176afd856eb4fe0e2f87e3dff39657db8e6fcf7c531078c8f4eb571e4",
    "ballbeam.dat": "e9c48a4f7474953969d4950b4ef72558084b1995f776792ac0cbc80550e6ff42",
    "cascaded_tanks.mat": "cb2f88d4388be4d3f2a24c6402fba804976aac5f2e1f26cda59ea0a38d016eab",
    "ced_uniform.mat": "102c8d8012d6e850d50c13227b8c2280fe69f8bc4a845177f8bc3d761d152c89",
    "cstr.dat": "0ffdda8a1b962d377dc34371be105bd9dcaef7fcca40554e666841efeec6b84d",
    "drive.mat": "47d0825678d854d8a1bbcfb0ad1188026b853f69beb2067ea00cfd88d13dc4ca",
    "dryer.dat": "adcb2f5a1d9e174d08dd49f7f037626745b5e69cbda0bc1e8dca2a7c687d4538",
    "gas_furnace.csv": "ce46e11490a11ac254a959d42d5858f66b3c8013a1b667e553b3d890c67e4d43",
    "heating_system.dat": "3bfbe8424719830870b153067eeff40ebff3afb0204c150ed7103b5d6c1908bc",
    "identificationExample5.mat": "ab6485b2fcaae9364eb749b34102baee52df54623c0d1ae4cf0b155bc9b2d63e",
    "robot_arm.dat": "4ee167a8a28ce0da868d1b42f6a2fe0c456ea0e56b60c70915bf6d4a2a933635",
    "silverbox_snls80mv.mat": "5c7413a52255af0cb4e2f93fb6903beb92b08965ba1e6ad0a6ffedfed8477ed4",
    "thermic_res_wall.dat": "b9fb76c775ede37958a71d1c584410fc4352e5ac64ca541e0cc926797e1ab7c1",
    "wiener_hammerstein.csv": "95f241ac5e0afb48c47b24b3630f55e0d6f8f2f4dec145bd8adf852b19851fa3",
    "winding.dat": "2c81e2760cd2360aa10d6cbd8fbc0c4c83f35dabefaa3e412e974d166413a9af",
}


def fetch_file(path: str) -> Path:
    """The file with the right checksum, by its folder and name; it is downloaded if necessary."""
    name = Path(path).name
    if given := os.environ.get("REVARB_DATA"):
        return _find_file(Path(given), path)
    pooch.get_logger().setLevel("WARNING")
    cache = Path(pooch.os_cache("revarb"))
    try:
        if name in ARCHIVES:
            return _fetch_member(name, cache)
        folder = Path(path).parent.name
        address = ADDRESSES.get(path) or ADDRESSES[folder] + name
        return Path(pooch.retrieve(address, f"sha256:{SHA256[name]}", name, cache))
    except (OSError, ValueError, BadZipFile) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"cannot download {name} ({type(error).__name__}: {reason[:200]}); put it into a folder and set "
            "REVARB_DATA to that folder"
        ) from None


def _fetch_member(name: str, cache: Path) -> Path:
    # Only the member is kept, once its checksum is right: that of an archive is not published.
    file, (address, member) = cache / name, ARCHIVES[name]
    if not (file.is_file() and _is_published(file)):
        archive = Path(pooch.retrieve(address, None, f"{name}.zip", cache))
        try:
            with ZipFile(archive) as opened:
                if member not in opened.namelist():
                    raise BadZipFile(f"the archive has no {member}")
                write_atomic(file, opened.read(member))
        finally:
            archive.unlink()
        if not _is_published(file):
            raise BadZipFile(f"the sha256 of {member} differs")
    return file


def _find_file(given: Path, path: str) -> Path:
    candidates = [given / path, given / Path(path).name]
    file = next((each for each in candidates if each.is_file()), None)
    if file is None:
        raise InputError(
            f"REVARB_DATA is set, but there is no {candidates[0]}; put the file there or unset the variable"
        )
    if not _is_published(file):
        raise InputError(f"{file} is not the published file: its sha256 differs; fetch it again")
    return file


def _is_published(file: Path) -> bool:
    return pooch.file_hash(str(file), alg="sha256") == SHA256[file.name]


def read_matlab(
    inputs: Sequence[str], outputs: Sequence[str], dt: float = 1.0, names: tuple[str, str] = ("u", "y")
) -> Reader:
    """A reader of arrays of a MATLAB file, one after the other, as one input and one output with these names."""

    def read(path: Path) -> Series:
        file = loadmat(path)
        u, y = (np.concatenate([file[name].ravel() for name in arrays]) for arrays in (inputs, outputs))
        return Series(u, y, dt, names[:1], names[1:])

    return read


def read_text(inputs: Sequence[str], outputs: Sequence[str], dt: float = 1.0, **options: Any) -> Reader:
    """A reader of a table whose last columns are the inputs and then the outputs; a time may be in front of them."""

    def read(path: Path) -> Series:
        table = np.loadtxt(path, **options)[:, -len(inputs) - len(outputs) :]
        return Series(table[:, : len(inputs)], table[:, len(inputs) :], dt, inputs, outputs)

    return read
