"""
Several records and missing data
================================

Three separate recordings of the same system, one of which has a gap of 25 samples in its output. Records are passed as
a list: no window of lags crosses from one record to the next. NaN in ``y`` is a missing value; the latent path
continues through the gap.
"""

import numpy as np
from matplotlib.figure import Figure

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


records = []
for number, samples in enumerate([90, 70, 110]):
    voltage = draw_voltage(samples, seed=10 + number)
    level = simulate_tanks(voltage, seed=20 + number)
    if number == 2:
        level[50:75] = np.nan
    records.append(revarb.Series(voltage, level, input_names=["voltage"], output_names=["level"]))
for record in records:
    print(record)

# %%
# One model for all of them.
model = revarb.RGP(lags=4, input_lags=4, hidden=1, inducing=30, calibrate=False).fit(records, seed=0)
fit = model.plot_fit(records)

# %%
# ``smooth`` gives the training records as the model sees them, the gap included: its band is wide where nothing was
# measured. (The first rows of a record have no full window of lags and are left out.)
smooth = model.smooth()[2]
first = len(records[2]) - len(smooth)
truth = simulate_tanks(draw_voltage(110, seed=12), seed=22, noise=0.0)
lower, upper = smooth.interval(0.95)
time = np.arange(first, len(records[2]))

figure = Figure(figsize=(8.0, 3.2), layout="constrained")
axes = figure.subplots()
axes.fill_between(time, lower[:, 0], upper[:, 0], alpha=0.25, label="95 % band")
axes.plot(time, smooth.mean[:, 0], label="smoothed")
axes.plot(truth, color="0.6", lw=1, label="true level")
axes.plot(records[2].y[:, 0], ".", color="k", ms=3, label="measured")
axes.set(xlabel="sample", ylabel="level", title="The third record and its gap")
axes.legend(frameon=False, ncols=4)
inside = (lower[50 - first : 75 - first, 0] <= truth[50:75]) & (truth[50:75] <= upper[50 - first : 75 - first, 0])
print(f"true level inside the band in the gap: {inside.mean():.0%}")

# %%
# New records are simulated one at a time; scores of a record with gaps count what was measured.
path = model.simulate(records[2].u)
print(revarb.scores(path, records[2].y))
