"""Generated benchmarks: the Artificial system (Narendra & Li 1996), and two tanks, one draining into the other.

Artificial has the paper's inputs, split and noise. The two tanks have square roots, an overflow and a noisy sensor.
"""

import numpy as np
from jaxtyping import Float64

from revarb.data.series import Series

# Two tanks.
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
