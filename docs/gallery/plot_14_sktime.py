"""
What-if forecasts with sktime
=============================

``revarb.sktime.Forecaster`` is a forecaster with exogenous inputs. Its forecast is a simulation from where the record
ended, so it answers for any plan of the inputs, with an interval.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import revarb
from revarb.sktime import Forecaster

split = revarb.datasets.load("two_tanks")
times = pd.date_range("2026-03-01 08:00", periods=len(split.train), freq="4s")
X = pd.DataFrame({"pump": split.train.u[:, 0]}, index=times)
y = pd.Series(split.train.y[:, 0], index=times, name="level")

# %%
# The first 300 samples are the past. The model is calibrated: its bands come from parts of the record that were held
# out.
spec = revarb.RGP(lags=4, input_lags=4, hidden=1, inducing=30)
forecaster = Forecaster(spec).fit(y[:300], X=X[:300])

# %%
# What the pump really did next:
ahead = np.arange(1, 101)
forecast = forecaster.predict(ahead, X=X[300:400])
interval = forecaster.predict_interval(ahead, X=X[300:400], coverage=0.95)["level", 0.95]
inside = y[300:400].between(interval["lower"], interval["upper"])
print(f"inside the interval: {inside.mean():.0%}")

# %%
# What if it had been held at half a volt more, or less, than on average?
average = float(X["pump"][:300].mean())
plans = {"as it was": X[300:400]}
for volts in (average + 0.5, average - 0.5):
    plans[f"pump at {volts:.2g} V"] = pd.DataFrame({"pump": volts}, index=times[300:400])

figure = Figure(figsize=(8.0, 4.5), layout="constrained")
top, bottom = figure.subplots(2, 1, sharex=True)
top.plot(y[240:400], ".", color="0.3", ms=3, label="measured")
bottom.plot(X["pump"][240:301], color="0.3")
for name, plan in plans.items():
    [line] = top.plot(forecaster.predict(ahead, X=plan), label=name)
    ends = forecaster.predict_interval(ahead, X=plan, coverage=0.95)["level", 0.95]
    top.fill_between(ends.index, ends["lower"], ends["upper"], color=line.get_color(), alpha=0.2, lw=0)
    bottom.plot(plan["pump"], color=line.get_color())
top.set(ylabel="level (cm)")
top.legend(frameon=False, ncols=4, loc="lower right", bbox_to_anchor=(1.0, 1.0))
bottom.set(ylabel="pump (V)", xlabel="time")
