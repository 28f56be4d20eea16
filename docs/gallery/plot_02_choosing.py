"""
Choosing lags and layers yourself
=================================

``revarb.fit(train)`` chooses everything (:doc:`/guide/choosing`). This is how to compare settings of your
own. How many lags, how many hidden layers? The test data must not decide. Every calibrated fit carries an error that
was measured on held-out blocks of its *training* record: four more fits leave out a quarter of the record each and
simulate what they have not seen.
"""

import numpy as np
from matplotlib.figure import Figure

import revarb

# %%
# Training data of two tanks in a cascade (see the first example).


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
train, test = revarb.Series(voltage[:160], level[:160]), revarb.Series(voltage[160:], level[160:])

# %%
# Candidates. The recipe is shorter than the default one, so that this page builds quickly.
recipe = revarb.Recipe(stages=(revarb.Stage(("mu", "lam", "zeta", "w"), 30),))
candidates = {
    (lags, hidden): revarb.RGP(lags, lags, hidden=hidden, inducing=20, recipe=recipe)
    for lags, hidden in [(1, 1), (4, 1), (2, 2)]
}

# %%
# Fit all of them. ``model.calibration.error`` is the error of the median held-out block in a free run, in units of
# the output's standard deviation: 1 is as bad as predicting the mean.
models = {name: spec.fit(train, seed=0) for name, spec in candidates.items()}
for (lags, hidden), model in models.items():
    print(f"lags {lags}, hidden layers {hidden}: held-out error {model.calibration.error:.3f}")

# %%
# Take the smallest. The test part is only looked at afterwards, to see how far the held-out error can be trusted.
chosen = min(models, key=lambda name: models[name].calibration.error)
test_errors = {name: revarb.scores(model.simulate(test.u), test.y, skip=12).nrmse for name, model in models.items()}
print("chosen:", chosen)

figure = Figure(figsize=(6.5, 3.2), layout="constrained")
axes = figure.subplots()
places = np.arange(len(models))
axes.bar(places - 0.2, [model.calibration.error for model in models.values()], 0.4, label="held-out blocks")
axes.bar(places + 0.2, list(test_errors.values()), 0.4, label="test part (not used to choose)")
axes.set_xticks(places, [f"lags {lags}, layers {hidden}" for lags, hidden in models])
axes.set_ylabel("error / standard deviation of the output")
axes.legend(frameon=False)
