"""The recorded benchmarks: files and checksums, how they are read and split, lags, and descriptions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.io import loadmat

from revarb.data.series import Series


class Source(NamedTuple):
    """Where files come from: their folder inside REVARB_DATA, and the public address that their names follow."""

    folder: str
    address: str


SYSID = Source(
    "sysid",
    "https://raw.githubusercontent.com/zhenwendai/RGP/be679607d3457a1038a2fe39b36b816ea380ea39/"
    "datasets/system_identification/",
)
DAISY = Source(
    "daisy",
    "https://raw.githubusercontent.com/robotsorcerer/FARNN/9cfb82f2b42a53a604dba66d0eab23243a9a21ae/data/",
)


@dataclass(frozen=True)
class Recorded:
    """A recorded benchmark: its file and checksum, the function that reads and splits it, lags, and description."""

    source: Source
    file: str
    sha256: str
    read: Callable[[Path], tuple[Series, Series]]
    lags: int
    about: str


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


def _reader_of_columns(train: int, dt: float, **options: Any) -> Callable[[Path], tuple[Series, Series]]:
    def read(path: Path) -> tuple[Series, Series]:
        table = np.loadtxt(path, **options)
        return _split(table[:, 0], table[:, 1], train, dt)

    return read


def _reader_of_named_columns(
    inputs: Sequence[str], outputs: Sequence[str], train: slice, test: slice, dt: float = 1.0
) -> Callable[[Path], tuple[Series, Series]]:
    # The inputs and then the outputs are the last columns; cstr and heating_system have the time in front of them.
    def read(path: Path) -> tuple[Series, Series]:
        table = np.loadtxt(path)
        y = table[:, -len(outputs) :]
        u = table[:, -len(outputs) - len(inputs) : -len(outputs)]
        first, second = (Series(u[rows], y[rows], dt, inputs, outputs) for rows in (train, test))
        return first, second

    return read


def _column(values: np.ndarray) -> np.ndarray:
    # The files contain integers and big-endian floats.
    return np.asarray(values, dtype=np.float64).ravel()


RECORDED = {
    "artificial_recorded": Recorded(
        SYSID,
        "identificationExample5.mat",
        "ab6485b2fcaae9364eb749b34102baee52df54623c0d1ae4cf0b155bc9b2d63e",
        _read_artificial,
        5,
        "the record of the Artificial system that the paper used",
    ),
    "drive": Recorded(
        SYSID,
        "drive.mat",
        "47d0825678d854d8a1bbcfb0ad1188026b853f69beb2067ea00cfd88d13dc4ca",
        _read_drive,
        10,
        "coupled electric drives, voltage to belt speed (Wigren & Schoukens 2010)",
    ),
    "actuator": Recorded(
        SYSID,
        "actuator.mat",
        "35d1f95176afd856eb4fe0e2f87e3dff39657db8e6fcf7c531078c8f4eb571e4",
        _read_actuator,
        10,
        "hydraulic actuator, valve opening to oil pressure (Sjöberg 1995)",
    ),
    "dryer": Recorded(
        SYSID,
        "dryer.dat",
        "adcb2f5a1d9e174d08dd49f7f037626745b5e69cbda0bc1e8dca2a7c687d4538",
        _reader_of_columns(500, dt=0.08),
        2,
        "hair dryer, heating power to air temperature (DaISy)",
    ),
    "gas_furnace": Recorded(
        SYSID,
        "gas_furnace.csv",
        "ce46e11490a11ac254a959d42d5858f66b3c8013a1b667e553b3d890c67e4d43",
        _reader_of_columns(148, dt=9.0, delimiter=",", skiprows=1),
        3,
        "gas furnace, gas rate to CO2 (Box & Jenkins)",
    ),
    "ballbeam": Recorded(
        SYSID,
        "ballbeam.dat",
        "e9c48a4f7474953969d4950b4ef72558084b1995f776792ac0cbc80550e6ff42",
        _reader_of_columns(500, dt=0.1),
        10,
        "ball on a beam, angle to position (DaISy); predicting the mean is hard to beat",
    ),
    # DaISy's documentation names no sampling interval for robot_arm and thermic: there dt is 1.
    "robot_arm": Recorded(
        DAISY,
        "robot_arm.dat",
        "4ee167a8a28ce0da868d1b42f6a2fe0c456ea0e56b60c70915bf6d4a2a933635",
        _reader_of_named_columns(["torque"], ["acceleration"], slice(512), slice(512, 1024)),
        10,
        "flexible robot arm, reaction torque to acceleration (DaISy)",
    ),
    "heating": Recorded(
        DAISY,
        "heating_system.dat",
        "3bfbe8424719830870b153067eeff40ebff3afb0204c150ed7103b5d6c1908bc",
        _reader_of_named_columns(["voltage"], ["temperature"], slice(400), slice(400, 801), dt=2.0),
        10,
        "heating system with a halogen lamp, drive voltage to temperature (DaISy)",
    ),
    "thermic": Recorded(
        DAISY,
        "thermic_res_wall.dat",
        "b9fb76c775ede37958a71d1c584410fc4352e5ac64ca541e0cc926797e1ab7c1",
        _reader_of_named_columns(
            ["internal_temperature", "external_temperature"], ["heat_flow"], slice(800), slice(800, 1680)
        ),
        10,
        "wall of brick and insulation, temperatures of its two sides to heat flow density (DaISy)",
    ),
    "cstr": Recorded(
        DAISY,
        "cstr.dat",
        "0ffdda8a1b962d377dc34371be105bd9dcaef7fcca40554e666841efeec6b84d",
        _reader_of_named_columns(
            ["coolant_flow"], ["concentration", "temperature"], slice(1500), slice(2800, 4000), dt=0.1
        ),
        10,
        "stirred tank reactor (simulated), coolant flow to concentration and temperature (DaISy)",
    ),
    "winding": Recorded(
        DAISY,
        "winding.dat",
        "2c81e2760cd2360aa10d6cbd8fbc0c4c83f35dabefaa3e412e974d166413a9af",
        _reader_of_named_columns(
            ["speed1", "speed2", "speed3", "current1", "current3"],
            ["tension1", "tension3"],
            slice(1000),
            slice(1300, 2500),
            dt=0.1,
        ),
        5,
        "web winding, speeds of three reels and currents of two motors to two web tensions (DaISy)",
    ),
}
