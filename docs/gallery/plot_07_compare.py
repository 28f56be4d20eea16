"""
Comparing with baselines
========================

Is a Gaussian process worth it on this record? ``revarb.compare`` fits several models to the same record, simulates the
same test part from the same cold start and scores the same rows. On a nearly linear system the answer is often: use
ARX.
"""

import numpy as np

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
level = simulate_tanks(voltage, seed=1, noise=0.1)
train, test = revarb.Series(voltage[:200], level[:200]), revarb.Series(voltage[200:], level[200:])

# %%
# Without ``models=`` all baselines take part (mean, ARX, MLP-NARX, LSTM, GP-NARX) with three seeds. Here are three of
# them and one seed, so that the page builds quickly.
models = {
    "Mean": revarb.Mean(),
    "ARX": revarb.ARX(lags=6, input_lags=6),
    "GP-NARX": revarb.GPNARX(lags=4, input_lags=4),
    "REVARB": revarb.RGP(lags=4, input_lags=4, hidden=1, inducing=30, calibrate=False),
}
comparison = revarb.compare(train, test, models, seeds=1)
print(comparison.verdict)

# %%
for line in comparison.lines:
    print(f"{line.model:8s} {line.method:10s} RMSE {line.ranges['rmse'].median:.3f}")

# %%
# Every simulation over the measured level.
figure = comparison.plot()

# %%
# The verdict depends on the record. With little measurement noise the regression on measured outputs is not disturbed
# by it, and GP-NARX does better:
quiet = simulate_tanks(voltage, seed=1, noise=0.02)
halves = revarb.Series(voltage[:200], quiet[:200]), revarb.Series(voltage[200:], quiet[200:])
print(revarb.compare(*halves, models, seeds=1).verdict)

# %%
# On a system that is linear, ARX is enough:


def simulate_linear(voltage, seed):
    """A linear second-order system with noise."""
    level = np.zeros(len(voltage))
    for k in range(2, len(voltage)):
        level[k] = 1.5 * level[k - 1] - 0.6 * level[k - 2] + 0.1 * voltage[k - 1]
    return level + 0.01 * np.random.default_rng(seed).standard_normal(len(level))


linear = simulate_linear(voltage, seed=2)
halves = revarb.Series(voltage[:200], linear[:200]), revarb.Series(voltage[200:], linear[200:])
print(revarb.compare(*halves, models, seeds=1).verdict)
