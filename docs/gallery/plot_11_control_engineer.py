"""
Poles, Bode diagram, step response
==================================

What a control engineer asks of a model before a controller is designed: is it stable, how fast is it, how large is the
gain, and how much does all that change with the operating point? ``linearise``, ``step_response``,
``frequency_response`` and ``static_gain_curve`` answer for every model with inputs and a state: recurrent GPs,
ensembles, ARX, GP-NARX and MLP-NARX.
"""

import numpy as np
from matplotlib.figure import Figure

import revarb

DT = 4.0  # seconds


def simulate_tanks(voltage, noise=0.0, seed=0, start=0.5):
    """Two tanks in a cascade: the pump fills the upper one, the level of the lower one is measured."""
    upper = lower = start
    level = np.empty(len(voltage))
    for k, v in enumerate(voltage):
        between, out = 0.22 * np.sqrt(upper), 0.22 * np.sqrt(lower)
        upper += 0.16 * v - between
        lower += between - out
        level[k] = lower
    return level + noise * np.random.default_rng(seed).standard_normal(len(level))


rng = np.random.default_rng(1)
voltage = np.repeat(rng.uniform(0.4, 1.5, 40), rng.integers(5, 40, 40))[:500]
record = revarb.Series(voltage, simulate_tanks(voltage, 0.005), DT, ["voltage"], ["level"])
settings = {"lags": 10, "input_lags": 10, "input_delay": 0, "hidden": 1, "inducing": 40, "linear": True}
spec = revarb.RGP(**settings, recipe="linear", calibrate=False)
model = spec.fit(record, seed=0)

# %%
# Outputs at rest over the range of the input, and their slope, the static gain. Torricelli's law makes the level at
# rest a parabola of the voltage, so the gain grows with it.
curve = model.static_gain_curve()
static = curve.plot()
truth = (0.16 * curve.inputs / 0.22) ** 2
print(f"largest error of the curve: {np.abs(curve.outputs[:, 0] - truth).max():.3f}, of levels up to {truth.max():.2f}")

# %%
# The model as a linear one near an operating point: x⁺ = A x + B u, y = C x + D u in deviations from the equilibrium,
# raw units. The state is what the model remembers. The slowest pole says how fast it comes to rest; the ring of others
# is how ten lags draw the shape of an answer; those at 0 are delays.
linear = model.linearise(at=1.0)
print(linear)
print("level at rest:", linear.point.outputs.round(3), "static gain:", linear.static_gain.round(3))
print("slowest poles:", linear.poles[:3].round(3), "time constants (s):", linear.time_constants[:3].round(1))
poles = linear.plot()

# %%
# With python-control installed (``pip install "revarb[control]"``) the same is a ``StateSpace``, ready for its tools.
system = linear.to_control()
print(system.nstates, "states, dt =", system.dt)

# %%
# The answer to a step, by simulation of the nonlinear model from the equilibrium, with the band of its measurements.
response = model.step_response(0.4, at=1.0)
rise, settling = response.rise_time[0], response.settling_time[0]
print(f"gain {response.gain[0]:.3f}, 10 % to 90 % in {rise:g} s, settled after {settling:g} s")
step = response.plot()

# %%
# Frequency responses: gain and corner frequency depend on the operating point. Where the magnitude is a hundredth of
# the static gain there was nothing in the record to learn from.
bode = model.frequency_response(at=1.0).plot()
for at in (0.5, 1.0, 1.4):
    found = model.frequency_response(at=at, frequencies=[1e-4, 2e-3])
    gains, phase = found.magnitude[:, 0, 0], found.phase[1, 0, 0]
    print(f"at {at:g}: gain {gains[0]:.2f}, at 2 mHz {gains[1]:.2f} with {phase:.0f}°")

# %%
# The nonlinear answer beside those of the linearisation and of the tanks: linear is right for a small step only.
figure = Figure(figsize=(8.0, 3.2), layout="constrained")
for axes, size in zip(figure.subplots(1, 2), (0.02, 0.45), strict=True):
    path = model.step_response(size, at=1.0, steps=60).path.mean[:, 0]
    tanks = simulate_tanks(np.full(60, 1.0 + size), start=(0.16 / 0.22) ** 2)
    axes.plot(DT * np.arange(60), tanks - (0.16 / 0.22) ** 2, color="0.7", lw=3, label="tanks")
    axes.plot(DT * np.arange(60), path - linear.point.outputs[0], label="model")
    axes.plot(DT * np.arange(60), size * linear.step(60)[:, 0, 0], "--", label="linearised")
    axes.set(xlabel="time (s)", ylabel="change of the level", title=f"step of {size:g}")
    axes.legend(frameon=False)
