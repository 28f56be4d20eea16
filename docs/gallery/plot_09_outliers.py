"""
Outliers
========

Spikes of a sensor in the training outputs. With Gaussian noise the latent path follows them; with Student-t noise they
get little weight (:doc:`/guide/outliers`). ``revarb.fit`` tries Student-t noise where held-out errors have
outliers; here both are fitted side by side.
"""

import numpy as np

import revarb

# %%
# A tank whose level follows a valve. One sample in twelve of the training part is moved by 3 to 6 standard deviations.


def simulate_tank(valve, seed, noise=0.02):
    """Level of a tank with a square-root outflow, measured with noise."""
    level = np.empty(len(valve))
    now = 1.0
    for k, opening in enumerate(valve):
        level[k] = now
        now = now + 0.5 * opening - 0.3 * np.sqrt(now)
    return level + noise * np.random.default_rng(seed).standard_normal(len(level))


rng = np.random.default_rng(0)
valve = np.repeat(rng.uniform(0.1, 1.0, 80), 5)
level = simulate_tank(valve, seed=1)
corrupted = level[:200].copy()
rows = np.sort(rng.choice(np.arange(10, 200), 16, replace=False))
corrupted[rows] += rng.choice([-1.0, 1.0], 16) * rng.uniform(3.0, 6.0, 16) * level[:200].std()
names = {"input_names": ["valve"], "output_names": ["level"]}
train, test = revarb.Series(valve[:200], corrupted, **names), revarb.Series(valve[200:], level[200:], **names)

# %%
# The same configuration with both kinds of noise, and the error on clean test data.
settings = {"lags": 3, "input_lags": 3, "hidden": 1, "inducing": 30, "calibrate": False}
gaussian = revarb.RGP(**settings).fit(train, seed=0)
student = revarb.RGP(noise="student-t", **settings).fit(train, seed=0)
for name, model in {"Gaussian": gaussian, "Student-t": student}.items():
    print(f"{name}: RMSE {revarb.scores(model.simulate(test.u), test.y).rmse:.3f}")

# %%
# The samples that the fit does not believe, the most unlikely one first, and how many of them are real spikes.
found = student.outliers()
print([(outlier.row, round(outlier.weight, 4)) for outlier in found[:5]])
print(f"{len({outlier.row for outlier in found} & set(rows.tolist()))} of {len(rows)} spikes, {len(found)} listed")

# %%
# The picture of the fit marks them with crosses.
figure = student.plot_fit(train)

# %%
# Free simulation of the test part, from the valve alone.
path = student.simulate(test.u)
simulation = path.plot(measured=test.y, title="Learnt from a record with spikes")
