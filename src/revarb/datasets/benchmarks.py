"""The benchmarks. Generated: the Artificial system (Narendra & Li 1996), and two tanks. Recorded: published files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.data.series import Series
from revarb.datasets.published_files import Reader, fetch_file, read_matlab, read_text

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


Rows = slice | tuple[slice, ...]


@dataclass(frozen=True)
class Recorded:
    """A recorded benchmark: folder and name of its file, its reader, its training and test rows, lags, description.

    Those of the field's leaderboard have a `window`: a run may start from so many measured samples of a test part.
    Several test parts have names.
    """

    path: str
    read: Reader
    rows: tuple[Rows, Rows]
    lags: int
    about: str
    window: int = 0
    test_names: tuple[str, ...] = ()

    def load(self) -> tuple[Any, Any]:
        """The training and the test part: a record each, or a tuple of records."""
        record, (train, test) = self.read(self.fetch()), self.rows
        return _cut(record, train), _cut(record, test)

    def fetch(self) -> Path:
        """The file with the right checksum; it is downloaded if necessary."""
        return fetch_file(self.path)


def _cut(record: Series, rows: Rows) -> Series | tuple[Series, ...]:
    return record[rows] if isinstance(rows, slice) else tuple(record[each] for each in rows)


def _cut_at(row: int) -> tuple[slice, slice]:
    return slice(row), slice(row, None)


# DaISy's documentation names no sampling interval for robot_arm and thermic: there dt is 1.
RECORDED = {
    "artificial_recorded": Recorded(
        "sysid/identificationExample5.mat", read_matlab(["u", "uNew"], ["y", "yNew"]), _cut_at(300), 5,
        "the record of the Artificial system that the paper used",
    ),
    "drive": Recorded(
        "sysid/drive.mat", read_matlab(["u1"], ["z1"], dt=0.02), _cut_at(250), 10,
        "coupled electric drives, voltage to belt speed (Wigren & Schoukens 2010)",
    ),
    "actuator": Recorded(
        "sysid/actuator.mat", read_matlab(["u"], ["p"]), _cut_at(512), 10,
        "hydraulic actuator, valve opening to oil pressure (Sjöberg 1995)",
    ),
    "dryer": Recorded(
        "sysid/dryer.dat", read_text(["u"], ["y"], dt=0.08), _cut_at(500), 2,
        "hair dryer, heating power to air temperature (DaISy)",
    ),
    "gas_furnace": Recorded(
        "sysid/gas_furnace.csv", read_text(["u"], ["y"], dt=9.0, delimiter=",", skiprows=1), _cut_at(148), 3,
        "gas furnace, gas rate to CO2 (Box & Jenkins)",
    ),
    "ballbeam": Recorded(
        "sysid/ballbeam.dat", read_text(["u"], ["y"], dt=0.1), _cut_at(500), 10,
        "ball on a beam, angle to position (DaISy); predicting the mean is hard to beat",
    ),
    "robot_arm": Recorded(
        "daisy/robot_arm.dat", read_text(["torque"], ["acceleration"]), (slice(512), slice(512, 1024)), 10,
        "flexible robot arm, reaction torque to acceleration (DaISy)",
    ),
    "heating": Recorded(
        "daisy/heating_system.dat",
        read_text(["voltage"], ["temperature"], dt=2.0), (slice(400), slice(400, 801)), 10,
        "heating system with a halogen lamp, drive voltage to temperature (DaISy)",
    ),
    "thermic": Recorded(
        "daisy/thermic_res_wall.dat",
        read_text(["internal_temperature", "external_temperature"], ["heat_flow"]), (slice(800), slice(800, 1680)), 10,
        "wall of brick and insulation, temperatures of its two sides to heat flow density (DaISy)",
    ),
    "cstr": Recorded(
        "daisy/cstr.dat",
        read_text(["coolant_flow"], ["concentration", "temperature"], dt=0.1), (slice(1500), slice(2800, 4000)), 10,
        "stirred tank reactor (simulated), coolant flow to concentration and temperature (DaISy)",
    ),
    "winding": Recorded(
        "daisy/winding.dat",
        read_text(["speed1", "speed2", "speed3", "current1", "current3"], ["tension1", "tension3"], dt=0.1),
        (slice(1000), slice(1300, 2500)), 5,
        "web winding, speeds of three reels and currents of two motors to two web tensions (DaISy)",
    ),
    # The field's leaderboard (nonlinearbenchmark.org), with its splits. Reported, never tuned on.
    "ced": Recorded(
        "benchmarks/ced_uniform.mat",
        read_matlab(["u11", "u12"], ["z11", "z12"], dt=0.02, names=("voltage", "speed")),
        ((slice(400), slice(500, 900)), (slice(400, 500), slice(900, 1000))), 10,
        "coupled electric drives, two amplitudes, voltage to belt speed in ticks/s (Wigren & Schoukens 2017)",
        window=10, test_names=("low", "high"),
    ),
    "cascaded_tanks": Recorded(
        "benchmarks/cascaded_tanks.mat",
        read_matlab(["uEst", "uVal"], ["yEst", "yVal"], dt=4.0, names=("pump", "level")), _cut_at(1024), 10,
        "cascaded tanks with an overflow, pump voltage to the lower level in V (Schoukens & Noël 2017)",
        window=50,
    ),
    "wiener_hammerstein": Recorded(
        "benchmarks/wiener_hammerstein.csv",
        read_text(["u"], ["y"], dt=1.0 / 51200.0, delimiter=",", skiprows=1, usecols=(0, 1)),
        (slice(5200, 105200), slice(105200, 184000)), 10,
        "Wiener-Hammerstein circuit with a diode, voltage to voltage in V (Schoukens, Suykens & Ljung 2009)",
        window=50,
    ),
    "silverbox": Recorded(
        "benchmarks/silverbox_snls80mv.mat", read_matlab(["V1"], ["V2"], dt=1.0 / 610.35, names=("V1", "V2")),
        (slice(40650, 105712), (slice(105712, 127400), slice(100, 40575), slice(100, 32100))), 10,
        "Silverbox, an electronic Duffing oscillator, voltage to voltage in V (Wigren & Schoukens 2013)",
        window=50, test_names=("multisine", "arrow", "arrow without extrapolation"),
    ),
}  # fmt: skip
