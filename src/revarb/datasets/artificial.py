"""The Artificial benchmark (Narendra & Li 1996): generated records with the paper's inputs, split and noise."""

import numpy as np
from jaxtyping import Float64

from revarb.data.series import Series

SAMPLES = 300
NOISE_STD = 0.3  # of the training output


def simulate_artificial(u: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
    """Noise-free output of the system for the input `u`; the first two states are zero, as in the paper's record."""
    x1, x2 = np.zeros(len(u)), np.zeros(len(u))
    for k in range(2, len(u)):
        a, b, drive = x1[k - 1], x2[k - 1], u[k - 1]
        x1[k] = (a / (1.0 + a**2) + 1.0) * np.sin(b)
        x2[k] = b * np.cos(b) + a * np.exp(-(a**2 + b**2) / 8.0) + drive**3 / (1.0 + drive**2 + 0.5 * np.cos(a + b))
    return x1 / (1.0 + 0.5 * np.sin(x2)) + x2 / (1.0 + 0.5 * np.sin(x1))


def generate_artificial(seed: int) -> tuple[Series, Series]:
    """Generate a training record (uniform input, noisy output) and the test record (two sines, no noise)."""
    return draw_artificial(seed, SAMPLES, NOISE_STD)


def draw_artificial(seed: int, samples: int, noise_std: float) -> tuple[Series, Series]:
    """Generate a training record of any length and noise, and the test record, which has 300 samples."""
    rng = np.random.default_rng(seed)
    u_train = rng.uniform(-2.5, 2.5, samples)
    y_train = simulate_artificial(u_train) + noise_std * rng.standard_normal(samples)
    k = np.arange(1, SAMPLES + 1)
    u_test = np.sin(2.0 * np.pi * k / 10.0) + np.sin(2.0 * np.pi * k / 25.0)
    return Series(u_train, y_train), Series(u_test, simulate_artificial(u_test))
