"""
First fit
=========

Fit a recurrent Gaussian process to 200 samples of a simulated system and simulate 200 new samples from their inputs
alone.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import revarb

# %%
# A record: the voltage of a pump and the level of the lower of two tanks. The flow between the tanks grows with the
# square root of the level, and both tanks can overflow.


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

train = revarb.Series(voltage[:200], level[:200], dt=4.0, input_names=["voltage"], output_names=["level"])
print(train)

# %%
# Fit. ``lags`` is how many past states a layer sees, ``input_lags`` how many past inputs. Both should cover the time
# in which the system responds. A real fit leaves ``inducing=100`` and ``calibrate=True``.
spec = revarb.RGP(lags=4, input_lags=4, hidden=1, inducing=30, calibrate=False)
model = spec.fit(train, seed=0)
print(model)

# %%
# What was learnt: a short lengthscale means that a lag matters.
model.summary()

# %%
# Simulate the second half: only the voltage is given. The trajectory has a mean and a standard deviation for every
# sample; the band contains 95 % of the measurements if the model is right.
path = model.simulate(voltage[200:])
figure = path.plot(measured=level[200:], title="Level, simulated from the voltage alone")

# %%
# Scores leave out the first samples, in which the run settles from its cold start.
print(revarb.scores(path, level[200:]))

# %%
# Save the model to one file and load it again.
with TemporaryDirectory() as folder:
    file = model.save(Path(folder) / "tanks.rgp")
    again = revarb.load(file)
print(np.array_equal(again.simulate(voltage[200:]).mean, path.mean))
