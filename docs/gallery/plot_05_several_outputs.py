"""
Several inputs and outputs
==========================

Two inputs, two coupled outputs. Inputs and outputs are matrices with one column each; all outputs share the latent
states, so give a hidden layer as many of them as there are independent movements (``latent_dim``).
"""

import numpy as np

import revarb

# %%
# Two reservoirs that exchange water: each has its own valve, and the flow between them saturates.


def simulate_reservoirs(valves, seed, noise=0.02):
    """Levels of two coupled reservoirs for valve positions between -1 and 1."""
    levels = np.zeros((len(valves), 2))
    for k in range(1, len(valves)):
        flow = 0.15 * np.tanh(2.0 * (levels[k - 1, 0] - levels[k - 1, 1]))
        levels[k, 0] = 0.85 * levels[k - 1, 0] + 0.3 * np.tanh(1.5 * valves[k - 1, 0]) - flow
        levels[k, 1] = 0.80 * levels[k - 1, 1] + 0.3 * valves[k - 1, 1] + flow
    return levels + noise * np.random.default_rng(seed).standard_normal(levels.shape)


def draw_valves(samples, seed, hold=6):
    """Two valve positions that change every `hold` samples."""
    return np.repeat(np.random.default_rng(seed).uniform(-1, 1, (samples // hold + 1, 2)), hold, axis=0)[:samples]


valves = draw_valves(400, seed=0)
levels = simulate_reservoirs(valves, seed=1)
names = {"input_names": ["valve_a", "valve_b"], "output_names": ["level_a", "level_b"]}
train, test = revarb.Series(valves[:200], levels[:200], **names), revarb.Series(valves[200:], levels[200:], **names)
print(train)

# %%
spec = revarb.RGP(lags=3, input_lags=3, hidden=1, inducing=40, latent_dim=2, calibrate=False)
model = spec.fit(train, seed=0)
path = model.simulate(test.u)
figure = path.plot(measured=test.y, title="Two outputs, simulated from two inputs")

# %%
# RMSE mixes the outputs' units; NRMSE divides each output by its own standard deviation first.
print(revarb.scores(path, test.y))

# %%
# With one latent state for both outputs the model has to describe two movements by one.
narrow = revarb.RGP(lags=3, input_lags=3, hidden=1, inducing=40, latent_dim=1, calibrate=False).fit(train, seed=0)
print("one latent state:", revarb.scores(narrow.simulate(test.u), test.y).nrmse)
