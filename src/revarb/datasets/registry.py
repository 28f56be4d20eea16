"""Registry of the benchmark records: source, checksum, split into training and test part, lags."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar, overload

import numpy as np
from scipy.io import loadmat

from revarb.data.series import Series
from revarb.datasets.artificial import generate_artificial
from revarb.errors import InputError, check_seed
from revarb.motion import cmu35
from revarb.runtime.downloads import PublicFile, fetch_file

Records = TypeVar("Records", Series, tuple[Series, ...])

_PUBLIC = (
    "https://raw.githubusercontent.com/zhenwendai/RGP/be679607d3457a1038a2fe39b36b816ea380ea39/"
    "datasets/system_identification/"
)


@dataclass(frozen=True, eq=False)
class Split(Generic[Records]):
    """A benchmark, split into a training and a test part.

    Attributes
    ----------
    name : str
        Name of the benchmark.
    train, test : Series, or tuple of Series for "cmu35"
        The records; `RGP.fit` and `compare` take both kinds.
    lags : int
        Lags of the states and of the inputs, as in the paper.

    Examples
    --------
    >>> import revarb
    >>> split = revarb.datasets.load("artificial")
    >>> split.name, split.lags, split.skip
    ('artificial', 5, 10)
    """

    name: str
    train: Records
    test: Records
    lags: int

    @property
    def skip(self) -> int:
        """First rows of a test record that are not scored: lags + input lags; only lags for the short "cmu35" ones."""
        return 2 * self.lags if isinstance(self.test, Series) else self.lags


@dataclass(frozen=True)
class Recorded:
    """A recorded benchmark: its file and checksum, the function that reads and splits it, lags, and description."""

    file: str
    sha256: str
    read: Callable[[Path], tuple[Series, Series]]
    lags: int
    about: str


@overload
def load(name: Literal["cmu35"], seed: int = 0) -> Split[tuple[Series, ...]]: ...  # pyright: ignore[reportOverlappingOverload]
@overload
def load(name: str, seed: int = 0) -> Split[Series]: ...
def load(name: str, seed: int = 0) -> Split:
    """Load a benchmark by name; its files are downloaded on first use (see `fetch`).

    Parameters
    ----------
    name : str
        One of `names()`.
    seed : int
        Seed of the input and the noise of the generated "artificial"; the others ignore it.

    Returns
    -------
    Split
        Training and test records, and the paper's lags.

    Examples
    --------
    >>> import revarb
    >>> split = revarb.datasets.load("artificial", seed=0)
    >>> len(split.train), len(split.test)
    (300, 300)
    """
    if name == "artificial":
        return Split(name, *generate_artificial(check_seed(seed)), lags=5)
    if name == "cmu35":
        return Split(name, *cmu35.load_split(), lags=20)
    entry = _entry(name)
    train, test = entry.read(fetch(name))
    return Split(name, train, test, entry.lags)


def names() -> tuple[str, ...]:
    """Names of all benchmarks.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> import revarb
    >>> revarb.datasets.names()
    ('artificial', 'artificial_recorded', 'drive', 'actuator', 'dryer', 'gas_furnace', 'ballbeam', 'cmu35')
    """
    return ("artificial", *RECORDED, "cmu35")


def about(name: str) -> str:
    """Describe a benchmark in one line.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    str

    Examples
    --------
    >>> import revarb
    >>> revarb.datasets.about("drive")
    'coupled electric drives, voltage to belt speed (Wigren & Schoukens 2010)'
    """
    return _OTHERS[name] if name in _OTHERS else _entry(name).about


def fetch(name: str) -> Path:
    """Download the file of a recorded benchmark unless it is in the cache, and verify its checksum.

    With the environment variable REVARB_DATA set, the file is taken from that folder and nothing is downloaded.

    Parameters
    ----------
    name : str
        One of `names()`, but not the generated "artificial".

    Returns
    -------
    pathlib.Path
        The file; for "cmu35", which has several, the skeleton.

    Examples
    --------
    >>> import revarb
    >>> revarb.datasets.fetch("artificial")
    Traceback (most recent call last):
        ...
    revarb.errors.InputError: 'artificial' is generated and has no file; 'artificial_recorded' is the paper's record
    """
    if name == "cmu35":
        return cmu35.fetch_files()
    entry = _entry(name)
    return fetch_file(PublicFile(entry.file, "sysid", _PUBLIC + entry.file, entry.sha256))


def _entry(name: str) -> Recorded:
    if name == "artificial":
        raise InputError("'artificial' is generated and has no file; 'artificial_recorded' is the paper's record")
    if name not in RECORDED:
        raise InputError(f"unknown data set {name!r}; known are {', '.join(names())}")
    return RECORDED[name]


def _split(u: np.ndarray, y: np.ndarray, train: int, dt: float) -> tuple[Series, Series]:
    return Series(u[:train], y[:train], dt), Series(u[train:], y[train:], dt)


def _read_drive(path: Path) -> tuple[Series, Series]:
    file = loadmat(path)
    return _split(_column(file["u1"]), _column(file["z1"]), 250, dt=0.02)


def _read_actuator(path: Path) -> tuple[Series, Series]:
    file = loadmat(path)
    return _split(_column(file["u"]), _column(file["p"]), 512, dt=1.0)


def _read_artificial(path: Path) -> tuple[Series, Series]:
    file = loadmat(path)
    train = Series(_column(file["u"]), _column(file["y"]))
    return train, Series(_column(file["uNew"]), _column(file["yNew"]))


def _reader_of_columns(train: int, dt: float, **options) -> Callable[[Path], tuple[Series, Series]]:
    def read(path: Path) -> tuple[Series, Series]:
        table = np.loadtxt(path, **options)
        return _split(table[:, 0], table[:, 1], train, dt)

    return read


def _column(values: np.ndarray) -> np.ndarray:
    # The files contain integers and big-endian floats.
    return np.asarray(values, dtype=np.float64).ravel()


_OTHERS = {
    "artificial": "Narendra & Li 1996, generated with a seed: 300 noisy training samples, 300 noise-free test samples",
    "cmu35": "CMU motion capture, subject 35: four walks and four runs each to train on and to simulate, 57 channels",
}

RECORDED = {
    "artificial_recorded": Recorded(
        "identificationExample5.mat",
        "ab6485b2fcaae9364eb749b34102baee52df54623c0d1ae4cf0b155bc9b2d63e",
        _read_artificial,
        5,
        "the record of the Artificial system that the paper used",
    ),
    "drive": Recorded(
        "drive.mat",
        "47d0825678d854d8a1bbcfb0ad1188026b853f69beb2067ea00cfd88d13dc4ca",
        _read_drive,
        10,
        "coupled electric drives, voltage to belt speed (Wigren & Schoukens 2010)",
    ),
    "actuator": Recorded(
        "actuator.mat",
        "35d1f95176afd856eb4fe0e2f87e3dff39657db8e6fcf7c531078c8f4eb571e4",
        _read_actuator,
        10,
        "hydraulic actuator, valve opening to oil pressure (Sjöberg 1995)",
    ),
    "dryer": Recorded(
        "dryer.dat",
        "adcb2f5a1d9e174d08dd49f7f037626745b5e69cbda0bc1e8dca2a7c687d4538",
        _reader_of_columns(500, dt=0.08),
        2,
        "hair dryer, heating power to air temperature (DaISy)",
    ),
    "gas_furnace": Recorded(
        "gas_furnace.csv",
        "ce46e11490a11ac254a959d42d5858f66b3c8013a1b667e553b3d890c67e4d43",
        _reader_of_columns(148, dt=9.0, delimiter=",", skiprows=1),
        3,
        "gas furnace, gas rate to CO2 (Box & Jenkins)",
    ),
    "ballbeam": Recorded(
        "ballbeam.dat",
        "e9c48a4f7474953969d4950b4ef72558084b1995f776792ac0cbc80550e6ff42",
        _reader_of_columns(500, dt=0.1),
        10,
        "ball on a beam, angle to position (DaISy); predicting the mean is hard to beat",
    ),
}
