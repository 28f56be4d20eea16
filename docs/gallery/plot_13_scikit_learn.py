"""
Search over lags with scikit-learn
==================================

``revarb.sklearn.Simulator`` is a regressor: configurations of revarb in ``GridSearchCV``, ``Pipeline`` and
``cross_val_score``. Its rows are samples in the order of time, so folds come from ``TimeSeriesSplit``, and every
prediction continues the record of the fit.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import revarb
from revarb.sklearn import Simulator

split = revarb.datasets.load("two_tanks")
u, y = split.train.u[:300], split.train.y[:300, 0]

# %%
# The values of a configuration are parameters of the estimator: ``model__lags``, or ``simulate__model__lags`` in a
# pipeline. Three folds, in each of which the model is fitted to the 150 rows before the 50 that it is scored on. The
# score is R². Folds of the same length are fitted by the same compiled program.
spec = revarb.RGP(hidden=1, inducing=30, calibrate=False)
pipeline = Pipeline([("scale", StandardScaler()), ("simulate", Simulator(spec))])
lags = [1, 2, 4, 8]
grid = [{"simulate__model__lags": [each], "simulate__model__input_lags": [each]} for each in lags]
folds = TimeSeriesSplit(3, test_size=50, max_train_size=150)
search = GridSearchCV(pipeline, grid, cv=folds).fit(u, y)
print(search.best_params_, f"R² {search.best_score_:.3f}")

# %%
# The best one is fitted to all 300 rows. The pipeline passes ``return_std`` on, and ``model_`` is the trained model
# with all of revarb's methods.
new_u, new_y = split.train.u[300:], split.train.y[300:, 0]
mean, std = search.best_estimator_.predict(new_u, return_std=True)
print("inside the band:", np.mean(np.abs(new_y - mean) < 1.96 * std))
model = search.best_estimator_["simulate"].model_
print(model)

# %%
# The held-out R² of every fold, and the simulation of the rows after the record.
figure = Figure(figsize=(8.0, 3.2), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=(1, 2))
scores = np.array([search.cv_results_[f"split{fold}_test_score"] for fold in range(3)])
left.plot(lags, scores.T, "o", color="0.7")
left.plot(lags, scores.mean(axis=0), "o-", label="mean of the folds")
left.set(xlabel="lags", ylabel="R²", xticks=lags)
left.legend(frameon=False)
rows = np.arange(300, 300 + len(mean))
right.fill_between(rows, mean - 1.96 * std, mean + 1.96 * std, alpha=0.3, lw=0, label="95 % band")
right.plot(rows, mean, label="simulated")
right.plot(rows, new_y, ".", color="0.3", ms=3, label="measured")
right.set(xlabel="sample", ylabel="level (cm)")
right.legend(frameon=False)
