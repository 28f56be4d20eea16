"""
Recognition model
=================

In a plain fit every latent state has a mean of its own. The paper's recognition model computes these means by a
recurrent network instead. The network is a constraint on the training; it also gives the latent path of new inputs
without any optimisation.
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

# %%
# Few steps of Adam and two starts, so that the page builds quickly. The defaults take minutes.
recognition = revarb.Recognition(hidden=(20,), starts=2, start_steps=200, rounds=(50, 100))
spec = revarb.RGP(lags=4, input_lags=4, hidden=1, inducing=30, calibrate=False, recognition=recognition)
model = spec.fit(train, seed=0)
print(model)

# %%
# The GP's simulation, and that of the networks alone, which have no band.
path = model.simulate(test.u)
networks = model.simulate(test.u, method="network")
print("GP layers:     ", revarb.scores(path, test.y).rmse)
print("networks alone:", revarb.scores(networks, test.y).rmse)
figure = path.plot(measured=test.y, title="Simulated by the GP layers")

# %%
# The latent path of new inputs.
[latent] = model.recognise(test.u)
latent_figure = Figure(figsize=(8.0, 2.6), layout="constrained")
axes = latent_figure.subplots()
axes.plot(latent)
axes.set(xlabel="sample", ylabel="latent state, z-scored", title="Latent path of the test part, by the network")
