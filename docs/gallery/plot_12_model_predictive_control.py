"""
Model predictive control with CasADi
====================================

A learnt model inside an optimiser: two tanks are excited, identified, exported with ``to_casadi``, and controlled by
receding horizon with limits of the input and of the output. ``revarb.Live`` estimates the state from what is measured.
(``pip install "revarb[casadi]"``; ``python -m studies mpc`` does the same with a harder plant, and compares.)
"""

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

import revarb


class Tanks:
    """Two tanks in a cascade: the pump fills the upper one, the level of the lower one is measured with noise."""

    def __init__(self, seed):
        self.upper = self.lower = 0.5
        self.rng = np.random.default_rng(seed)

    def run(self, voltage):
        """One sample with this voltage; the measured level after it."""
        between, out = 0.22 * np.sqrt(self.upper), 0.22 * np.sqrt(self.lower)
        self.upper = max(self.upper + 0.16 * voltage - between, 0.0)
        self.lower = max(self.lower + between - out, 0.0)
        return self.lower + 0.01 * self.rng.standard_normal()


# %%
# Identification: 300 samples of a voltage that jumps. Every row has a voltage and the level after it has acted, so the
# newest input is that of the row itself: ``input_delay=0``.
rng, tanks = np.random.default_rng(1), Tanks(seed=2)
voltage = np.repeat(rng.uniform(0.0, 1.6, 40), rng.integers(4, 16, 40))[:300]
record = revarb.Series(voltage, [tanks.run(v) for v in voltage], input_names=["voltage"], output_names=["level"])
settings = {"lags": 5, "input_lags": 5, "input_delay": 0, "hidden": 1, "inducing": 40, "linear": True}
spec = revarb.RGP(**settings, recipe="linear", calibrate=False)
model = spec.fit(record, seed=0)

# %%
# The controller. ``to_casadi(horizon=20)`` is the run of the model over the horizon: the outputs as a function of the
# state and of the inputs, in raw units, with derivatives. Unknown are the inputs and a slack: the limit of the level is
# soft, so that there is a solution when noise has put the estimate above it.
HORIZON, LOWEST, HIGHEST, LIMIT = 20, 0.0, 1.6, 1.0
run = model.to_casadi(horizon=HORIZON)
u, slack = ca.MX.sym("u", HORIZON), ca.MX.sym("slack")
state, last, offset, target = (
    ca.MX.sym("state", run.size1_in(0)),
    *(ca.MX.sym(name) for name in ("last", "offset", "target")),
)
level = run(state, u.T)[1].T + offset
moves = u - ca.vertcat(last, u[:-1])
problem = {
    "x": ca.vertcat(u, slack),
    "p": ca.vertcat(state, last, offset, target),
    "f": ca.sumsqr(level - target) + 0.02 * ca.sumsqr(moves) + 100.0 * slack,
    "g": level - LIMIT - slack,
}
quiet = {"ipopt": {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory"}, "print_time": False}
solver = ca.nlpsol("controller", "ipopt", problem, quiet)
bounds = {"lbx": [LOWEST] * HORIZON + [0.0], "ubx": [HIGHEST] * HORIZON + [ca.inf], "lbg": -ca.inf, "ubg": 0.0}

# %%
# The loop. A share of every prediction error is taken for a disturbance of the output, so that a model that is slightly
# wrong leaves no offset. After sample 150 the pump delivers a tenth less than commanded.
targets = np.repeat([0.4, 0.9, 0.3, 0.97, 0.7], [30, 40, 40, 60, 50])
live = revarb.Live(model, start="continue", observe=True)
command, disturbance, guess = float(voltage[-1]), 0.0, np.zeros(HORIZON + 1)
levels, commands, solved = [], [], 0
for k, wanted in enumerate(targets):
    measured = tanks.run(command * (0.9 if k >= 150 else 1.0))
    error = measured - disturbance - float(live.step([command]).mean[0])
    live.correct([measured - disturbance])
    disturbance += 0.2 * error
    known = np.concatenate([model.step_state(live.state), [command, disturbance, wanted]])
    plan = np.array(solver(x0=guess, p=known, **bounds)["x"]).ravel()
    command, guess = float(np.clip(plan[0], LOWEST, HIGHEST)), np.concatenate([plan[1:-1], plan[-2:]])
    levels.append(tanks.lower)
    commands.append(command)
    solved += solver.stats()["success"]
levels = np.array(levels)
print(f"{solved} of {len(targets)} solved, tracking RMSE {np.sqrt(np.mean((levels - targets) ** 2)):.3f}")
print(f"{(levels > LIMIT).sum()} samples above the limit, by at most {max(0.0, (levels - LIMIT).max()):.4f}")

# %%
# The level follows its set-points, keeps to its limit, and recovers after the disturbance.
figure = Figure(figsize=(9.0, 5.0), layout="constrained")
upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.0, 1.0))
upper.axhline(LIMIT, color="tab:orange", label="limit")
upper.step(range(len(targets)), targets, "0.6", where="post", ls="--", label="set-point")
upper.plot(levels, color="tab:red", label="level")
upper.axvline(150, color="0.8")
upper.set_ylabel("level")
upper.legend(frameon=False, loc="lower right", ncols=3)
lower.step(range(len(targets)), commands, "k", where="post", lw=1)
lower.set(xlabel="sample", ylabel="voltage")
