"""The recorded benchmarks: files and checksums, how they are read and split, lags, and descriptions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

from revarb.data.series import Series
from revarb.datasets.downloads import PublicFile

ADDRESSES = {  # of the folders inside REVARB_DATA
    "sysid": "https://raw.githubusercontent.com/zhenwendai/RGP/be679607d3457a1038a2fe39b36b816ea380ea39/"
    "datasets/system_identification/",
    "daisy": "https://raw.githubusercontent.com/robotsorcerer/FARNN/9cfb82f2b42a53a604dba66d0eab23243a9a21ae/data/",
}
SHA256 = {
    "actuator.mat": "35d1f95176afd856eb4fe0e2f87e3dff39657db8e6fcf7c531078c8f4eb571e4",
    "ballbeam.dat": "e9c48a4f7474953969d4950b4ef72558084b1995f776792ac0cbc80550e6ff42",
    "cstr.dat": "0ffdda8a1b962d377dc34371be105bd9dcaef7fcca40554e666841efeec6b84d",
    "drive.mat": "47d0825678d854d8a1bbcfb0ad1188026b853f69beb2067ea00cfd88d13dc4ca",
    "dryer.dat": "adcb2f5a1d9e174d08dd49f7f037626745b5e69cbda0bc1e8dca2a7c687d4538",
    "gas_furnace.csv": "ce46e11490a11ac254a959d42d5858f66b3c8013a1b667e553b3d890c67e4d43",
    "heating_system.dat": "3bfbe8424719830870b153067eeff40ebff3afb0204c150ed7103b5d6c1908bc",
    "identificationExample5.mat": "ab6485b2fcaae9364eb749b34102baee52df54623c0d1ae4cf0b155bc9b2d63e",
    "robot_arm.dat": "4ee167a8a28ce0da868d1b42f6a2fe0c456ea0e56b60c70915bf6d4a2a933635",
    "thermic_res_wall.dat": "b9fb76c775ede37958a71d1c584410fc4352e5ac64ca541e0cc926797e1ab7c1",
    "winding.dat": "2c81e2760cd2360aa10d6cbd8fbc0c4c83f35dabefaa3e412e974d166413a9af",
}

Reader = Callable[[Path], tuple[Series, Series]]


@dataclass(frozen=True)
class Recorded:
    """A recorded benchmark: its file, the function that reads and splits it, lags, and description."""

    path: str
    read: Reader
    lags: int
    about: str

    @property
    def file(self) -> PublicFile:
        """The published file, with its address and checksum."""
        folder, name = self.path.split("/")
        return PublicFile(name, folder, ADDRESSES[folder] + name, SHA256[name])


def _read_matlab(u: str, y: str, train: int, dt: float) -> Reader:
    def read(path: Path) -> tuple[Series, Series]:
        file = loadmat(path)
        return _split(file[u], file[y], train, dt)

    return read


def _read_artificial(path: Path) -> tuple[Series, Series]:
    file = loadmat(path)
    train = Series(_to_column(file["u"]), _to_column(file["y"]))
    return train, Series(_to_column(file["uNew"]), _to_column(file["yNew"]))


def _read_columns(train: int, dt: float, **options: Any) -> Reader:
    def read(path: Path) -> tuple[Series, Series]:
        table = np.loadtxt(path, **options)
        return _split(table[:, 0], table[:, 1], train, dt)

    return read


def _read_daisy(inputs: Sequence[str], outputs: Sequence[str], train: slice, test: slice, dt: float = 1.0) -> Reader:
    # The inputs and then the outputs are the last columns; cstr and heating_system have the time in front of them.
    def read(path: Path) -> tuple[Series, Series]:
        table = np.loadtxt(path)
        y = table[:, -len(outputs) :]
        u = table[:, -len(outputs) - len(inputs) : -len(outputs)]
        first, second = (Series(u[rows], y[rows], dt, inputs, outputs) for rows in (train, test))
        return first, second

    return read


def _split(u: np.ndarray, y: np.ndarray, train: int, dt: float) -> tuple[Series, Series]:
    u, y = _to_column(u), _to_column(y)
    return Series(u[:train], y[:train], dt), Series(u[train:], y[train:], dt)


def _to_column(values: np.ndarray) -> np.ndarray:
    # The files contain integers and big-endian floats.
    return np.asarray(values, dtype=np.float64).ravel()


# DaISy's documentation names no sampling interval for robot_arm and thermic: there dt is 1.
RECORDED = {
    "artificial_recorded": Recorded(
        "sysid/identificationExample5.mat", _read_artificial, 5,
        "the record of the Artificial system that the paper used",
    ),
    "drive": Recorded(
        "sysid/drive.mat", _read_matlab("u1", "z1", 250, dt=0.02), 10,
        "coupled electric drives, voltage to belt speed (Wigren & Schoukens 2010)",
    ),
    "actuator": Recorded(
        "sysid/actuator.mat", _read_matlab("u", "p", 512, dt=1.0), 10,
        "hydraulic actuator, valve opening to oil pressure (Sjöberg 1995)",
    ),
    "dryer": Recorded(
        "sysid/dryer.dat", _read_columns(500, dt=0.08), 2,
        "hair dryer, heating power to air temperature (DaISy)",
    ),
    "gas_furnace": Recorded(
        "sysid/gas_furnace.csv", _read_columns(148, dt=9.0, delimiter=",", skiprows=1), 3,
        "gas furnace, gas rate to CO2 (Box & Jenkins)",
    ),
    "ballbeam": Recorded(
        "sysid/ballbeam.dat", _read_columns(500, dt=0.1), 10,
        "ball on a beam, angle to position (DaISy); predicting the mean is hard to beat",
    ),
    "robot_arm": Recorded(
        "daisy/robot_arm.dat", _read_daisy(["torque"], ["acceleration"], slice(512), slice(512, 1024)), 10,
        "flexible robot arm, reaction torque to acceleration (DaISy)",
    ),
    "heating": Recorded(
        "daisy/heating_system.dat",
        _read_daisy(["voltage"], ["temperature"], slice(400), slice(400, 801), dt=2.0), 10,
        "heating system with a halogen lamp, drive voltage to temperature (DaISy)",
    ),
    "thermic": Recorded(
        "daisy/thermic_res_wall.dat",
        _read_daisy(["internal_temperature", "external_temperature"], ["heat_flow"], slice(800), slice(800, 1680)), 10,
        "wall of brick and insulation, temperatures of its two sides to heat flow density (DaISy)",
    ),
    "cstr": Recorded(
        "daisy/cstr.dat",
        _read_daisy(["coolant_flow"], ["concentration", "temperature"], slice(1500), slice(2800, 4000), dt=0.1), 10,
        "stirred tank reactor (simulated), coolant flow to concentration and temperature (DaISy)",
    ),
    "winding": Recorded(
        "daisy/winding.dat",
        _read_daisy(["speed1", "speed2", "speed3", "current1", "current3"], ["tension1", "tension3"],
                    slice(1000), slice(1300, 2500), dt=0.1), 5,
        "web winding, speeds of three reels and currents of two motors to two web tensions (DaISy)",
    ),
}  # fmt: skip
