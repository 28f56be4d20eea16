"""
Data frames
===========

``Series`` takes pandas and polars frames, keeps the names of their columns and their index, and a simulation gives
the same kind of frame back.
"""

import numpy as np
import pandas as pd

import revarb


def simulate_tanks(voltage, seed, noise=0.02):
    """Two tanks in a cascade: the pump fills the upper one, the level of the lower one is measured with noise."""
    upper = lower = 0.5
    level = np.empty(len(voltage))
    for k, v in enumerate(voltage):
        level[k] = lower
        between, out = 0.22 * np.sqrt(upper), 0.22 * np.sqrt(lower)
        upper = np.clip(upper + 0.16 * (1.0 + v) - between, 0.0, 1.6)
        lower = np.clip(lower + between - out, 0.0, 1.6)
    return level + noise * np.random.default_rng(seed).standard_normal(len(level))


def draw_voltage(samples, seed, hold=8):
    """A voltage that changes every `hold` samples."""
    return np.repeat(np.random.default_rng(seed).uniform(-1.0, 1.0, samples // hold + 1), hold)[:samples]


voltage = draw_voltage(300, seed=0)
table = pd.DataFrame(
    {"pump": voltage, "level": simulate_tanks(voltage, seed=1)},
    index=pd.date_range("2026-03-01 08:00", periods=300, freq="4s", name="time"),
)
table.head()

# %%
# Select the columns; the names come from the frame, and the sampling interval from its times.
train, test = table.iloc[:200], table.iloc[200:]
record = revarb.Series(train[["pump"]], train[["level"]])
print(record)

# %%
model = revarb.RGP(lags=4, input_lags=4, hidden=1, inducing=30, calibrate=False).fit(record, seed=0)
path = model.simulate(test[["pump"]])
result = path.to_frame()
result.head()

# %%
# The index is that of the inputs, so the result joins the table.
joined = test.join(result)
print("inside the band:", joined.level.between(joined.level_lower, joined.level_upper).mean())

# %%
figure = path.plot(measured=test["level"], title="Level")
