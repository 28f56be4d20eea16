"""Writes the files of data/v0_1: it runs with version 0.1 of revarb only (the commit before the packages, 8c34d0f).

Of what it writes to expected.json the tests keep `u`, and of every path `mean`, `band_std` (now: `std`) and `lower`.
"""

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

import revarb
from revarb import RGP, Recipe, Recognition, Series, Stage

assert revarb.__version__ == "0.1.0", revarb.__version__
out = Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
N = 150
u = rng.uniform(-1, 1, N)
y = np.zeros(N)
for k in range(1, N):
    y[k] = 0.7 * y[k - 1] + np.tanh(1.5 * u[k - 1])
y = 3.0 + 2.0 * y + 0.05 * rng.standard_normal(N)
u_new = rng.uniform(-1, 1, 40)
recipe = Recipe(stages=(Stage(("mu", "lam", "zeta", "w"), 20),), kmeans_starts=2)
small = {"lags": 2, "input_lags": 2, "inducing": 10, "recipe": recipe}
one = Series(u, y, 0.5, ["valve"], ["level"])
y2 = np.stack([y, np.roll(y, 1) ** 2 / 10], 1)
y2[20:30, 0] = np.nan
y2[60:65, 1] = np.nan
two = Series(np.stack([u, u**2], 1), y2, 0.5, ["valve", "pump"], ["level", "flow"])
free = Series(None, np.sin(0.3 * np.arange(N)) + 0.02 * rng.standard_normal(N))
models = {
    "rgp": (RGP(hidden=2, **small).fit(one), u_new),
    "rgp_uncalibrated": (RGP(hidden=1, calibrate=False, **small).fit([one, one]), u_new),
    "rgp_gaps": (RGP(hidden=1, latent_dim=2, **small).fit(two), np.stack([u_new, u_new**2], 1)),
    "rgp_no_input": (RGP(hidden=1, calibrate=False, **small).fit(free), None),
    "rgp_recognition": (
        RGP(
            hidden=1,
            calibrate=False,
            recognition=Recognition(hidden=(5,), starts=1, start_steps=50, rounds=(50,)),
            **small,
        ).fit(one),
        u_new,
    ),
    "ensemble": (RGP(hidden=1, **small).fit(one, restarts=2), u_new),
}
rgp, _ = models["rgp"]
widened = replace(rgp.calibration, latent_scale=0.3, output_noise=0.05, factors=(1.1, 1.25, 1.6))
models["rgp_widened"] = (replace(rgp, calibration=widened), u_new)
expected = {}
for name, (model, inputs) in models.items():
    model.save(out / f"{name}.rgp")
    entry = {"u": None if inputs is None else inputs.tolist(), "paths": []}
    steps = {"steps": 40} if inputs is None else {}
    for method in ("moments", "mean", "samples", *(["network"] if name == "rgp_recognition" else [])):
        for start in ("cold", "continue"):
            path = model.simulate(inputs, method, start=start, samples=20, seed=3, **steps)
            row = {"method": method, "start": start, "mean": path.mean.tolist()}
            if path.std is not None:
                lower, upper = path.interval(0.95)
                row |= {
                    "std": path.std.tolist(),
                    "lower": lower.tolist(),
                    "upper": upper.tolist(),
                    "band_std": path.band_std.tolist(),
                }
            entry["paths"].append(row)
    expected[name] = entry
(out / "expected.json").write_text(json.dumps(expected))
