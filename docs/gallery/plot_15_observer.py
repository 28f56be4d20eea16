"""
An observer in a control loop
=============================

``Live`` takes one input at a time. It says what the output will be before it is measured, corrects its states by what
was measured, and predicts from there. While a sensor fails it runs on, and its band widens until the next measurement.
"""

import numpy as np
from matplotlib.figure import Figure

import revarb


def simulate_tanks(voltage, seed, noise=0.03):
    """Two tanks in a cascade: the pump fills the upper one, the level of the lower one is measured with noise."""
    upper = lower = 0.5
    level = np.empty(len(voltage))
    for k, v in enumerate(voltage):
        level[k] = lower
        between, out = 0.22 * np.sqrt(upper), 0.22 * np.sqrt(lower)
        upper = np.clip(upper + 0.16 * (1.0 + v) - between, 0.0, 1.6)
        lower = np.clip(lower + between - out, 0.0, 1.6)
    return level + noise * np.random.default_rng(seed).standard_normal(len(level))


voltage = np.repeat(np.random.default_rng(0).uniform(-1.0, 1.0, 50), 8)
level = simulate_tanks(voltage, seed=1)
train, voltage, level = revarb.Series(voltage[:300], level[:300]), voltage[300:], level[300:]
model = revarb.RGP(lags=4, input_lags=4, hidden=1, inducing=30).fit(train, seed=0)

# %%
# The loop: 70 samples, one at a time. The sensor gives nothing between the samples 30 and 50.
now, failure = 70, slice(30, 50)
measured = level[:now].copy()
measured[failure] = np.nan

live, steps = revarb.Live(model, observe=True), []
for u, y in zip(voltage[:now], measured, strict=True):
    steps.append(live.step(u))  # the output before it is measured
    live.correct(y)  # NaN: nothing is corrected

mean, std = (np.array([getattr(step, name)[0] for step in steps]) for name in ("mean", "std"))
plan = live.predict(30, u=voltage[now:])
inside = np.abs(level[:now] - mean) < 1.96 * std
print(f"in the band one step ahead: {np.mean(inside):.0%}; where nothing was measured: {np.mean(inside[failure]):.0%}")
print(f"standard deviation: {std[29]:.3f} before the failure, {std[49]:.3f} at its end, {std[51]:.3f} right after it")

# %%
# What it said of every sample before it was measured, and the plan of the next 30 samples.
figure = Figure(figsize=(8.0, 4.2), layout="constrained")
top, bottom = figure.subplots(2, sharex=True, height_ratios=(3, 1))
ahead = np.arange(now, now + len(plan))
hidden = np.where(np.isnan(np.concatenate([measured, np.full(len(plan), np.nan)])), level, np.nan)
lower, upper = plan.interval(0.95)
top.fill_between(np.arange(now), mean - 1.96 * std, mean + 1.96 * std, color="C0", alpha=0.2, lw=0)
top.plot(mean, color="C0", label="one step ahead, 95 % band")
top.fill_between(ahead, lower[:, 0], upper[:, 0], color="C1", alpha=0.2, lw=0)
top.plot(ahead, plan.mean[:, 0], color="C1", label="predicted from now on")
top.plot(measured, "k.", ms=4, label="measured")
top.plot(hidden, ".", color="0.6", ms=4, label="not measured")
top.axvspan(failure.start - 0.5, failure.stop - 0.5, color="0.93", zorder=0)
top.axvline(now - 0.5, color="0.4", lw=0.8)
top.set(ylabel="level")
top.legend(frameon=False, ncols=2, fontsize="small", loc="lower left")
bottom.step(np.arange(len(voltage)), voltage, where="post", color="0.3")
bottom.set(xlabel="sample", ylabel="voltage")
