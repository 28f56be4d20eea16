"""
Bands and reliability
=====================

A 95 % band should contain 95 % of the measurements, and a 50 % band 50 %. Calibration sets the noise and the width of
the bands on held-out blocks of the training record. This example compares a fit with and without it.
"""

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

import revarb
from revarb.analysis.reliability import check_bands

# %%
# Two tanks (see the first example).


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


voltage = draw_voltage(600, seed=0)
level = simulate_tanks(voltage, seed=1)
train, test = revarb.Series(voltage[:250], level[:250]), revarb.Series(voltage[250:], level[250:])

# %%
# A recipe with little noise and a model with few lags, so that the bands of the fit are too narrow. ``calibrate=True``
# is the default: after the fit, four more fits leave out a quarter of the record each.
recipe = revarb.Recipe(hidden_noise=0.002, output_noise=0.0005)
spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=30, recipe=recipe)
calibrated = spec.fit(train, seed=0)
as_fitted = replace(spec, calibrate=False).fit(train, seed=0)
print(calibrated.calibration)

# %%
# The share of the measurements inside the bands, and the likelihood (NLPD, lower is better).
paths = {"as fitted": as_fitted.simulate(test.u), "calibrated": calibrated.simulate(test.u)}
for name, path in paths.items():
    scores = revarb.scores(path, test.y)
    print(f"{name:10s}  50 %: {scores.coverage50:.2f}  95 %: {scores.coverage95:.2f}  NLPD {scores.nlpd:.3f}")

# %%
# A reliability diagram shows all levels at once: on the diagonal the bands are right, below it they are too narrow. The
# PIT histogram shows where in its predicted distribution each measurement lies; flat is right.
figure = Figure(figsize=(8.0, 3.4), layout="constrained")
left, right = figure.subplots(1, 2)
left.plot([0, 1], [0, 1], color="0.6", lw=1)
for name, path in paths.items():
    check = check_bands([path], [test.y])
    left.plot(check.reliability.levels, check.reliability.observed, marker="o", ms=3, label=name)
    right.hist(check.pit, bins=np.linspace(0, 1, 11), density=True, histtype="step", lw=1.5, label=name)
left.set(xlabel="level of the band", ylabel="share of measurements inside", title="reliability diagram")
right.axhline(1.0, color="0.6", lw=1)
right.set(xlabel="PIT value", title="PIT histogram")
left.legend(frameon=False)

# %%
# The calibrated simulation. ``path.interval(0.5)`` gives any other band.
simulation = paths["calibrated"].plot(measured=test.y, title="Calibrated 95 % band")
lower, upper = paths["calibrated"].interval(0.5)
print(f"mean width of the 50 % band: {np.mean(upper - lower):.3f}")
