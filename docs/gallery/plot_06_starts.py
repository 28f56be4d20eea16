"""
Starts and k-step prediction
============================

A simulation begins cold by default: nothing is known about the state, and the first samples are lost to the transient.
If the system was measured just before, the state can be inferred from that window by filtering. With measurements all
along, ``predict`` looks a fixed number of samples ahead.
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


voltage = draw_voltage(400, seed=0)
level = simulate_tanks(voltage, seed=1)
train, test = revarb.Series(voltage[:200], level[:200]), revarb.Series(voltage[200:], level[200:])
model = revarb.RGP(lags=4, input_lags=4, hidden=1, inducing=30, calibrate=False).fit(train, seed=0)

# %%
# Three starts of the same simulation, from sample 40 of the test part on: cold, after a window of 20 measured
# samples, and (for comparison, at the first sample of the test part) where the training record ended.
begin, end = 40, 80
window = revarb.Window(test.u[begin - 20 : begin], test.y[begin - 20 : begin])
paths = {
    "cold": model.simulate(test.u[begin:end]),
    "after a window of 20 samples": model.simulate(test.u[begin:end], start=window),
}
print("continued from training:", revarb.scores(model.simulate(test.u, start="continue"), test.y, skip=0).rmse)
for name, path in paths.items():
    print(f"{name}: RMSE of the first 20 samples {revarb.scores(path, test.y[begin:end], skip=0).rmse:.3f}")

figure = Figure(figsize=(8.0, 3.4), layout="constrained")
axes = figure.subplots()
time = np.arange(begin, end)
for name, path in paths.items():
    lower, upper = path.interval(0.95)
    [line] = axes.plot(time, path.mean[:, 0], label=name)
    axes.fill_between(time, lower[:, 0], upper[:, 0], color=line.get_color(), alpha=0.2)
axes.plot(np.arange(begin - 20, end), test.y[begin - 20 : end, 0], "k.", ms=3, label="measured")
axes.axvspan(begin - 20, begin, color="0.92", zorder=0)
axes.set(xlabel="sample", ylabel="level")
axes.legend(frameon=False)

# %%
# k-step prediction along a measured record: every sample is predicted from the outputs up to k samples before it, and
# all inputs.
for horizon in (1, 5, 20):
    ahead = model.predict(test, horizon=horizon)
    print(f"{horizon:2d} ahead: RMSE {revarb.scores(ahead, test.y).rmse:.3f}, mean std {ahead.std.mean():.3f}")
print(f"free simulation: RMSE {revarb.scores(model.simulate(test.u), test.y).rmse:.3f}")
