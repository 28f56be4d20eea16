"""Write train.csv and test.csv: the voltage of a pump and the level of the lower of two tanks, every four seconds."""

import csv
from pathlib import Path

import numpy as np


def simulate_tanks(voltage, rng):
    """Level of the lower tank, measured with noise; the flow between the tanks grows with the root of the level."""
    upper = lower = 0.5
    levels = []
    for v in voltage:
        levels.append(lower)
        between, out = 0.22 * np.sqrt(upper), 0.22 * np.sqrt(lower)
        upper = np.clip(upper + 0.16 * (1.0 + v) - between, 0.0, 1.6)
        lower = np.clip(lower + between - out, 0.0, 1.6)
    return levels + 0.08 * rng.standard_normal(len(levels))


rng = np.random.default_rng(0)
voltage = np.repeat(rng.uniform(-1.0, 1.0, 63), 8)[:500]
level = simulate_tanks(voltage, rng)
for name, rows in (("train.csv", slice(0, 250)), ("test.csv", slice(250, 500))):
    with Path(name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "voltage", "level"])
        for k in range(rows.start, rows.stop):
            writer.writerow([4.0 * k, f"{voltage[k]:.4f}", f"{level[k]:.4f}"])
