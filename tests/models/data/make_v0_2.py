"""Writes the files of data/v0_2: it runs with version 0.2 of revarb only (commit d39b51e).

PYTHONPATH=<checkout of d39b51e>/src python tests/models/data/make_v0_2.py tests/models/data/v0_2
"""

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

import revarb
from revarb.baselines import PerOutput

assert hasattr(revarb, "baselines") and "config" in revarb._HOMES["RGP"], revarb.__file__
out = Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
N, NEW = 80, 30
u = rng.uniform(-1, 1, N)
y = np.zeros(N)
for k in range(1, N):
    y[k] = 0.7 * y[k - 1] + np.tanh(1.5 * u[k - 1])
y = 3.0 + 2.0 * y + 0.05 * rng.standard_normal(N)
u_new = rng.uniform(-1, 1, NEW)
one = revarb.Series(u, y, 0.5, ["valve"], ["level"])
pair = revarb.Series(np.stack([u, u**2], 1), np.stack([y, np.roll(y, 1)], 1), 0.5, ["valve", "pump"], ["level", "flow"])
outlying = replace(one, y=np.where(np.arange(N)[:, None] % 20 == 7, one.y + 8.0, one.y))
free = revarb.Series(None, np.sin(0.3 * np.arange(N)) + 0.02 * rng.standard_normal(N))
recipe = revarb.Recipe(stages=(revarb.Stage(("mu", "lam", "zeta", "w"), 20),), kmeans_starts=2)
bare = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=8, recipe=recipe, calibrate=False)
robust = replace(
    bare,
    noise="student-t",
    recipe=revarb.Recipe(stages=(revarb.Stage(("mu", "lam", "zeta", "w", "tau"), 20),), kmeans_starts=2),
)
recognition = revarb.Recognition(hidden=(5,), starts=1, start_steps=50, rounds=(50,))
narx = {"lags": 2, "input_lags": 2, "iterations": 10}

calibration = revarb.Calibration(
    0.3, 0.05, edges=(3, 10), factors=(1.1, 1.25, 1.6), stretches=12, error=0.2, linear_error=0.3, mean_error=1.0
)


def calibrate(model, degrees=None):
    """The model with a calibration that changes everything that one can change."""
    return replace(model, calibration=replace(calibration, degrees_of_freedom=degrees))


models = {
    "rgp": calibrate(bare.fit(one)),
    "rgp_two_layers": replace(bare, hidden=2, latent_dim=(2, 1)).fit(pair),
    "rgp_linear": calibrate(replace(bare, linear=True).fit(one)),
    "rgp_student": calibrate(robust.fit(outlying), 5.0),
    "rgp_recognition": replace(bare, recognition=recognition).fit(one),
    "rgp_no_input": bare.fit(free),
    "rgp_blocks": replace(bare, recipe=replace(recipe, max_rows=40)).fit(one),
    "ensemble": revarb.Ensemble.from_members([calibrate(bare.fit(one, seed=seed)) for seed in (0, 1)]),
    "ensemble_mixed": revarb.Ensemble.from_candidates([bare.fit(one), replace(bare, linear=True, lags=3).fit(one)]),
    "mean": revarb.Mean().fit(one),
    "arx": revarb.ARX(lags=2, input_lags=2).fit(one),
    "gp_narx": revarb.GPNARX(**narx).fit(one),
    "gp_narx_sparse": revarb.GPNARX(inducing=8, **narx).fit(pair),
    "per_output": PerOutput(revarb.GPNARX(**narx)).fit(pair),
    "mlp_narx": revarb.MLPNARX(units=(3,), **narx).fit(one),
    "lstm": revarb.LSTM(layers=(1,), units=4, subsequence=20, updates=50).fit(one),
    "gpssm": revarb.GPSSM(states=2, inducing=8, subsequence=20, window=4, batch=3, samples=2, updates=50).fit(one),
    "reduced_rank": revarb.ReducedRankGPSSM(states=1, basis=20, particles=6, burn_in=30, draws=20, thinning=2).fit(one),
    "chosen": revarb.fit(one, effort="quick", members=2),
}


def simulate(model, inputs, method, start):
    options = {} if start is None else {"start": start}
    if inputs is None:
        options["steps"] = NEW
    return model.simulate(inputs, method, **options)


expected = {}
for name, model in models.items():
    model.save(out / f"{name}.rgp")
    inputs = None if not model.input_names else np.stack([u_new, u_new**2], 1)[:, : len(model.input_names)]
    network = ("network",) if name == "rgp_recognition" else ()
    starts = ("cold", "continue") if hasattr(model, "final_states") else (None,)
    entry = {"u": None if inputs is None else inputs.tolist(), "paths": []}
    for method in (*model.methods, *network):
        if method == "samples":  # another LAPACK draws other functions from the same seed
            continue
        for start in starts:
            path = simulate(model, inputs, method, start)
            row = {"method": method, "start": start, "mean": path.mean.tolist()}
            if path.std is not None:
                row |= {"band_std": path.std.tolist(), "lower": path.interval(0.95)[0].tolist()}
            entry["paths"].append(row)
    expected[name] = entry
    print(name, len(entry["paths"]), model, flush=True)
(out / "expected.json").write_text(json.dumps(expected))
