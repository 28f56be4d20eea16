"""Quick configurations of every model, and models that fail."""

import os
from dataclasses import dataclass, replace

import numpy as np

from revarb.baselines.gp_narx import GPNARX
from revarb.baselines.lstm import LSTM
from revarb.baselines.mean import Mean
from revarb.baselines.mlp_narx import MLPNARX
from revarb.baselines.per_output import PerOutput
from revarb.data.trajectory import Trajectory
from revarb.fitting.arx import ARX
from support import small

QUICK_MODELS = {
    "Mean": Mean(),
    "ARX": ARX(lags=3, input_lags=3),
    "MLP-NARX": MLPNARX(lags=2, input_lags=2, units=(3,), iterations=15),
    "LSTM": LSTM(layers=(1,), units=4, subsequence=20, updates=50),
    "GP-NARX": GPNARX(lags=2, input_lags=2, iterations=15),
    "GP-NARX, sparse": GPNARX(lags=2, input_lags=2, iterations=15, inducing=10),
    "GP-NARX, per output": PerOutput(GPNARX(lags=2, input_lags=2, iterations=15)),
    "RGP": small.spec(),
}


@dataclass(frozen=True)
class Broken:
    """A rival that fails, always or for one seed."""

    seed: int | None = None

    def fit(self, train, seed=0, progress=False):
        if self.seed in (None, seed):
            raise RuntimeError("no\nluck today")
        return Mean().fit(train)


@dataclass(frozen=True)
class Runaway:
    """A rival whose simulation diverges."""

    def fit(self, train, seed=0, progress=False):
        model = Mean().fit(train)
        model.scaling.y_mean[:] = np.inf
        return model


@dataclass(frozen=True)
class Misshapen:
    """A rival that simulates too few rows, or returns a band of NaN, or ends its process."""

    how: object

    def fit(self, train, seed=0, progress=False):
        if self.how == "dies":
            os._exit(1)
        model = Mean().fit(train)
        path = model.simulate(train[0].u[:-1])
        if self.how == "band":
            path = replace(model.simulate(train[0].u), std=np.full((len(train[0]), 1), np.nan))
        object.__setattr__(model, "simulate", lambda *arguments, **options: path)
        return model


class Zero:
    """A user's own model, which has only `fit` and `simulate`."""

    def fit(self, train, seed=0):
        return self

    def simulate(self, u):
        return Trajectory(np.zeros((len(u), 1)), None, "nothing", 0, ("y",))
