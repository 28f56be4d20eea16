"""Benchmark records by name: where they come from, how they are split, and the protocol they are scored by."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar, overload

import numpy as np
from scipy.io import loadmat

from revarb.data.series import Series
from revarb.datasets.artificial import artificial
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
    """A benchmark: what to train on, what to simulate, and with which lags (state and input lags are equal).

    Each part is a record, or for "cmu35" a tuple of several: `RGP.fit` and `compare` take both.
    """

    name: str
    train: Records
    test: Records
    lags: int

    @property
    def skip(self) -> int:
        """Rows of a test record that are not scored: L + L_u as in the paper, or L where a record has few more."""
        return 2 * self.lags if isinstance(self.test, Series) else self.lags


@dataclass(frozen=True)
class Recorded:
    """A recorded benchmark: its file, how to read it, and where it comes from."""

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
    """A benchmark by name. `seed` draws the input and noise of the generated "artificial".

    >>> len(load("artificial").train)
    300
    """
    if name == "artificial":
        return Split(name, *artificial(check_seed(seed)), lags=5)
    if name == "cmu35":
        return Split(name, *cmu35.train_and_test(), lags=20)
    entry = _entry(name)
    train, test = entry.read(fetch(name))
    return Split(name, train, test, entry.lags)


def names() -> tuple[str, ...]:
    """All benchmarks."""
    return ("artificial", *RECORDED, "cmu35")


def about(name: str) -> str:
    """One line on a benchmark."""
    return _OTHERS[name] if name in _OTHERS else _entry(name).about


def fetch(name: str) -> Path:
    """The path of a recorded benchmark's file (or of the first of several), downloaded if need be, and checked."""
    if name == "cmu35":
        return cmu35.fetch_all()
    entry = _entry(name)
    return fetch_file(PublicFile(entry.file, "sysid", _PUBLIC + entry.file, entry.sha256))


def _entry(name: str) -> Recorded:
    if name == "artificial":
        raise InputError(
            "'artificial' is generated, there is no file; 'artificial_recorded' is the paper's record of it"
        )
    if name not in RECORDED:
        raise InputError(f"unknown data set {name!r}; known are {', '.join(names())}")
    return RECORDED[name]


def _halves(u: np.ndarray, y: np.ndarray, train: int, dt: float) -> tuple[Series, Series]:
    return Series(u[:train], y[:train], dt), Series(u[train:], y[train:], dt)


def _drive(path: Path) -> tuple[Series, Series]:
    file = loadmat(path)
    return _halves(_column(file["u1"]), _column(file["z1"]), 250, dt=0.02)


def _actuator(path: Path) -> tuple[Series, Series]:
    file = loadmat(path)
    return _halves(_column(file["u"]), _column(file["p"]), 512, dt=1.0)


def _artificial_recorded(path: Path) -> tuple[Series, Series]:
    file = loadmat(path)
    train = Series(_column(file["u"]), _column(file["y"]))
    return train, Series(_column(file["uNew"]), _column(file["yNew"]))


def _two_columns(train: int, dt: float, **options) -> Callable[[Path], tuple[Series, Series]]:
    def read(path: Path) -> tuple[Series, Series]:
        table = np.loadtxt(path, **options)
        return _halves(table[:, 0], table[:, 1], train, dt)

    return read


def _column(values: np.ndarray) -> np.ndarray:
    # The files hold integers and big-endian floats.
    return np.asarray(values, dtype=np.float64).ravel()


_OTHERS = {
    "artificial": "Narendra & Li 1996, generated with a seed: 300 noisy training samples, 300 noise-free test samples",
    "cmu35": "CMU motion capture, subject 35: four walks and four runs each to train on and to simulate, 57 channels",
}


RECORDED = {
    "artificial_recorded": Recorded(
        "identificationExample5.mat",
        "ab6485b2fcaae9364eb749b34102baee52df54623c0d1ae4cf0b155bc9b2d63e",
        _artificial_recorded,
        5,
        "the record of the Artificial system that the paper used",
    ),
    "drive": Recorded(
        "drive.mat",
        "47d0825678d854d8a1bbcfb0ad1188026b853f69beb2067ea00cfd88d13dc4ca",
        _drive,
        10,
        "coupled electric drives, voltage to belt speed (Wigren & Schoukens 2010)",
    ),
    "actuator": Recorded(
        "actuator.mat",
        "35d1f95176afd856eb4fe0e2f87e3dff39657db8e6fcf7c531078c8f4eb571e4",
        _actuator,
        10,
        "hydraulic actuator, valve opening to oil pressure (Sjöberg 1995)",
    ),
    "dryer": Recorded(
        "dryer.dat",
        "adcb2f5a1d9e174d08dd49f7f037626745b5e69cbda0bc1e8dca2a7c687d4538",
        _two_columns(500, dt=0.08),
        2,
        "hair dryer, heating power to air temperature (DaISy)",
    ),
    "gas_furnace": Recorded(
        "gas_furnace.csv",
        "ce46e11490a11ac254a959d42d5858f66b3c8013a1b667e553b3d890c67e4d43",
        _two_columns(148, dt=9.0, delimiter=",", skiprows=1),
        3,
        "gas furnace, gas rate to CO2 (Box & Jenkins)",
    ),
    "ballbeam": Recorded(
        "ballbeam.dat",
        "e9c48a4f7474953969d4950b4ef72558084b1995f776792ac0cbc80550e6ff42",
        _two_columns(500, dt=0.1),
        10,
        "ball on a beam, angle to position (DaISy); predicting the mean is hard to beat",
    ),
}
