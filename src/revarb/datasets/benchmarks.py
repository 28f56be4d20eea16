"""The benchmarks. Generated: the Artificial system (Narendra & Li 1996), and two tanks. Recorded: published files.

If REVARB_DATA is set, files are taken from that folder only. Otherwise they are taken from the user's cache, and
downloaded into it the first time. Their checksums are always compared.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pooch
from jaxtyping import Float64
from scipy.io import loadmat

from revarb.data.series import Series
from revarb.errors import InputError

# Of the two tanks, one draining into the other: square roots, an overflow and a noisy sensor.
SAMPLES = 400
DT = 4.0  # seconds
STEPS = 50  # of the pump voltage in the training record
NOISE_STD = 0.2  # of the level sensor, cm

AREA, HEIGHT = 30.0, 10.0  # of both tanks: cm², cm; what rises above the rim of a tank is lost
OUTLET = 0.32  # of both tanks, cm²
PUMP = 9.0  # cm³/s for every volt
GRAVITY = 981.0  # cm/s²
SUBSTEPS = 20  # of Euler's method, for every sample


def simulate_artificial(u: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
    """Noise-free output of the system for the input `u`; the first two states are zero, as in the paper's record."""
    x1, x2 = np.zeros(len(u)), np.zeros(len(u))
    for k in range(2, len(u)):
        a, b, drive = x1[k - 1], x2[k - 1], u[k - 1]
        x1[k] = (a / (1.0 + a**2) + 1.0) * np.sin(b)
        x2[k] = b * np.cos(b) + a * np.exp(-(a**2 + b**2) / 8.0) + drive**3 / (1.0 + drive**2 + 0.5 * np.cos(a + b))
    return x1 / (1.0 + 0.5 * np.sin(x2)) + x2 / (1.0 + 0.5 * np.sin(x1))


def draw_artificial(seed: int, samples: int = 300, noise_std: float = 0.3) -> tuple[Series, Series]:
    """Generate a training record (uniform input, noisy output) and the test record (two sines, no noise)."""
    rng = np.random.default_rng(seed)
    u_train = rng.uniform(-2.5, 2.5, samples)
    y_train = simulate_artificial(u_train) + noise_std * rng.standard_normal(samples)
    k = np.arange(1, 301)
    u_test = np.sin(2.0 * np.pi * k / 10.0) + np.sin(2.0 * np.pi * k / 25.0)
    return Series(u_train, y_train), Series(u_test, simulate_artificial(u_test))


def simulate_two_tanks(u: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
    """Level of the lower tank, in cm, for the voltage `u` of the pump; at first both levels are at rest."""
    rest = min((PUMP * u[0] / OUTLET) ** 2 / (2.0 * GRAVITY), HEIGHT)
    levels, lower = np.array([rest, rest]), np.empty(len(u))
    for k, voltage in enumerate(u):
        lower[k] = levels[1]
        for _ in range(SUBSTEPS):
            outflow = OUTLET * np.sqrt(2.0 * GRAVITY * levels)  # Torricelli
            inflow = np.array([PUMP * voltage, outflow[0]])
            levels = np.clip(levels + DT / SUBSTEPS * (inflow - outflow) / AREA, 0.0, HEIGHT)
    return lower


def generate_two_tanks(seed: int) -> tuple[Series, Series]:
    """Generate a training record, with steps of the voltage, and a test record, with two sines; both are noisy."""
    rng = np.random.default_rng(seed)
    steps = np.repeat(rng.permutation(np.linspace(1.0, 7.0, STEPS)), SAMPLES // STEPS)
    phases, k = rng.uniform(0.0, 2.0 * np.pi, 2), np.arange(SAMPLES)
    sines = 4.0 + 1.5 * np.sin(2.0 * np.pi * k / 110.0 + phases[0]) + 1.2 * np.sin(2.0 * np.pi * k / 37.0 + phases[1])
    return _measure(steps, rng), _measure(sines, rng)


def _measure(u: Float64[np.ndarray, " N"], rng: np.random.Generator) -> Series:
    y = simulate_two_tanks(u) + NOISE_STD * rng.standard_normal(len(u))
    return Series(u, y, DT, ("voltage",), ("level",))


GENERATED = {
    "artificial": (
        draw_artificial,
        "Narendra & Li 1996, generated with a seed: 300 noisy training samples, 300 noise-free test samples",
    ),
    "two_tanks": (
        generate_two_tanks,
        "two tanks with an overflow, generated with a seed: pump voltage to level, 400 + 400 noisy samples",
    ),
}

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

Reader = Callable[[Path], Series]


@dataclass(frozen=True)
class Recorded:
    """A recorded benchmark: folder and name of its file, its reader, its training and test rows, lags, description."""

    path: str
    read: Reader
    rows: tuple[slice, slice]
    lags: int
    about: str

    def load(self) -> tuple[Series, Series]:
        """The training and the test record."""
        record, (train, test) = self.read(self.fetch()), self.rows
        return record[train], record[test]

    def fetch(self) -> Path:
        """The file with the right checksum; it is downloaded if necessary."""
        folder, name = self.path.split("/")
        if given := os.environ.get("REVARB_DATA"):
            return _find_file(Path(given), folder, name)
        pooch.get_logger().setLevel("WARNING")
        try:
            cache = pooch.os_cache("revarb")
            return Path(pooch.retrieve(ADDRESSES[folder] + name, f"sha256:{SHA256[name]}", name, cache))
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"cannot download {name} ({type(error).__name__}: {reason[:200]}); put it into a folder and set "
                "REVARB_DATA to that folder"
            ) from None


def _find_file(given: Path, folder: str, name: str) -> Path:
    candidates = [given / folder / name, given / name]
    path = next((each for each in candidates if each.is_file()), None)
    if path is None:
        raise InputError(
            f"REVARB_DATA is set, but there is no {candidates[0]}; put the file there or unset the variable"
        )
    if pooch.file_hash(str(path), alg="sha256") != SHA256[name]:
        raise InputError(f"{path} is not the published file: its sha256 differs; fetch it again")
    return path


def _read_matlab(inputs: Sequence[str], outputs: Sequence[str], dt: float = 1.0) -> Reader:
    # Arrays of the file, one after the other.
    def read(path: Path) -> Series:
        file = loadmat(path)
        u, y = (np.concatenate([file[name].ravel() for name in names]) for names in (inputs, outputs))
        return Series(u, y, dt)

    return read


def _read_text(inputs: Sequence[str], outputs: Sequence[str], dt: float = 1.0, **options: Any) -> Reader:
    # The inputs and then the outputs are the last columns; cstr and heating_system have the time in front of them.
    def read(path: Path) -> Series:
        table = np.loadtxt(path, **options)[:, -len(inputs) - len(outputs) :]
        return Series(table[:, : len(inputs)], table[:, len(inputs) :], dt, inputs, outputs)

    return read


def _cut_at(row: int) -> tuple[slice, slice]:
    return slice(row), slice(row, None)


# DaISy's documentation names no sampling interval for robot_arm and thermic: there dt is 1.
RECORDED = {
    "artificial_recorded": Recorded(
        "sysid/identificationExample5.mat", _read_matlab(["u", "uNew"], ["y", "yNew"]), _cut_at(300), 5,
        "the record of the Artificial system that the paper used",
    ),
    "drive": Recorded(
        "sysid/drive.mat", _read_matlab(["u1"], ["z1"], dt=0.02), _cut_at(250), 10,
        "coupled electric drives, voltage to belt speed (Wigren & Schoukens 2010)",
    ),
    "actuator": Recorded(
        "sysid/actuator.mat", _read_matlab(["u"], ["p"]), _cut_at(512), 10,
        "hydraulic actuator, valve opening to oil pressure (Sjöberg 1995)",
    ),
    "dryer": Recorded(
        "sysid/dryer.dat", _read_text(["u"], ["y"], dt=0.08), _cut_at(500), 2,
        "hair dryer, heating power to air temperature (DaISy)",
    ),
    "gas_furnace": Recorded(
        "sysid/gas_furnace.csv", _read_text(["u"], ["y"], dt=9.0, delimiter=",", skiprows=1), _cut_at(148), 3,
        "gas furnace, gas rate to CO2 (Box & Jenkins)",
    ),
    "ballbeam": Recorded(
        "sysid/ballbeam.dat", _read_text(["u"], ["y"], dt=0.1), _cut_at(500), 10,
        "ball on a beam, angle to position (DaISy); predicting the mean is hard to beat",
    ),
    "robot_arm": Recorded(
        "daisy/robot_arm.dat", _read_text(["torque"], ["acceleration"]), (slice(512), slice(512, 1024)), 10,
        "flexible robot arm, reaction torque to acceleration (DaISy)",
    ),
    "heating": Recorded(
        "daisy/heating_system.dat",
        _read_text(["voltage"], ["temperature"], dt=2.0), (slice(400), slice(400, 801)), 10,
        "heating system with a halogen lamp, drive voltage to temperature (DaISy)",
    ),
    "thermic": Recorded(
        "daisy/thermic_res_wall.dat",
        _read_text(["internal_temperature", "external_temperature"], ["heat_flow"]), (slice(800), slice(800, 1680)), 10,
        "wall of brick and insulation, temperatures of its two sides to heat flow density (DaISy)",
    ),
    "cstr": Recorded(
        "daisy/cstr.dat",
        _read_text(["coolant_flow"], ["concentration", "temperature"], dt=0.1), (slice(1500), slice(2800, 4000)), 10,
        "stirred tank reactor (simulated), coolant flow to concentration and temperature (DaISy)",
    ),
    "winding": Recorded(
        "daisy/winding.dat",
        _read_text(["speed1", "speed2", "speed3", "current1", "current3"], ["tension1", "tension3"], dt=0.1),
        (slice(1000), slice(1300, 2500)), 5,
        "web winding, speeds of three reels and currents of two motors to two web tensions (DaISy)",
    ),
}  # fmt: skip
