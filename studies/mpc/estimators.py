"""What a controller knows of its model's state: estimates from measured outputs, the same interface for all models.

A sample begins with `predict`, which takes the input that has acted until now and gives the output before it is
measured; `correct` takes the measured one. Then the controller reads the `state`, and plans with `step`, a CasADi
function step(state, u) → (next state, y). `predict_std` has the standard deviations of the next outputs under a plan.
"""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float64

import revarb
from revarb.baselines import FittedARX
from studies.mpc.controller import import_casadi
from studies.mpc.reactor import ReactorState, advance_reactor

DIFFERENCE = (1e-6, 1e-3)  # of concentration and temperature, for derivatives
MODEL_STD = (1e-4, 0.1)  # what the equations of the plant may be wrong by in a sample, for its Kalman filter


class RGPEstimator:
    """The observer of a recurrent GP, `revarb.Live`: the joint Gaussian of its states, conditioned on the outputs."""

    def __init__(self, model: revarb.FittedRGP, warm_up: revarb.Window):
        self._model, self.step = model, model.to_casadi()
        self._live = revarb.Live(model, start=warm_up, observe=True)

    def predict(self, u: float) -> float:
        """Advance to this sample; return the mean of the output before it is measured."""
        return float(self._live.step(np.array([u])).mean[0])

    def correct(self, y: float) -> None:
        """Condition the joint state on the output of this sample."""
        self._live.correct(np.array([y]))

    def state(self) -> Float64[np.ndarray, " S"]:
        """The mean of the joint state, and the last inputs."""
        return self._model.step_state(self._live.state)

    def predict_std(self, inputs: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
        """Standard deviations by the moments along the plan, calibrated, noise of the measurement included."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # inputs at the end of their training range, by rounding
            path = self._live.predict(len(inputs), u=inputs[:, None])
        assert path.std is not None
        return path.std[:, 0]


class ARXEstimator:
    """An ARX model: its state is the measured outputs as they are, and the last inputs."""

    def __init__(self, model: FittedARX, warm_up: revarb.Window):
        self.step, self._state = model.to_casadi(), model.step_state(warm_up)
        self._mean, self._std = float(model.scaling.y_mean[0]), float(model.scaling.y_std[0])
        self._band = float(model.residual_std[0]) * self._std

    def predict(self, u: float) -> float:
        """Advance to this sample; return the output before it is measured."""
        following, y = self.step(self._state, u)
        self._state = following.full().ravel()
        return float(y)

    def correct(self, y: float) -> None:
        """Replace the newest output by the measured one."""
        self._state[0] = (y - self._mean) / self._std

    def state(self) -> Float64[np.ndarray, " S"]:
        """The measured outputs, z-scored, and the last inputs."""
        return self._state.copy()

    def predict_std(self, inputs: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
        """That of the free run's held-out errors, at every sample."""
        return np.full(len(inputs), self._band)


class PlantEstimator:
    """The plant's own equations, with an extended Kalman filter: the temperature is not measured."""

    def __init__(self, rest: ReactorState, noise: float):
        self.step, self._x, self._noise = make_plant_step(), np.array(rest, dtype=np.float64), noise
        self._model_cov = np.diag(np.square(MODEL_STD))
        self._cov = self._model_cov.copy()

    def predict(self, u: float) -> float:
        """Advance to this sample; return the output before it is measured."""
        slopes = [
            (_advance(self._x + change, u) - _advance(self._x - change, u)) / (2.0 * change.sum())
            for change in np.diag(DIFFERENCE)
        ]
        jacobian = np.stack(slopes, axis=1)
        self._x, self._cov = _advance(self._x, u), jacobian @ self._cov @ jacobian.T + self._model_cov
        return float(self._x[0])

    def correct(self, y: float) -> None:
        """Update by the Kalman filter."""
        gain = self._cov[:, 0] / (self._cov[0, 0] + self._noise**2)
        self._x = self._x + gain * (y - self._x[0])
        self._cov = self._cov - np.outer(gain, self._cov[0])

    def state(self) -> Float64[np.ndarray, " S"]:
        """Concentration and temperature."""
        return self._x.copy()

    def predict_std(self, inputs: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
        """That of the measurement: the equations are known."""
        return np.full(len(inputs), self._noise)


Estimator = RGPEstimator | ARXEstimator | PlantEstimator


def make_plant_step() -> Any:
    """The plant as a step of its state: concentration and temperature."""
    ca = import_casadi()
    state, u = ca.SX.sym("state", 2), ca.SX.sym("u")
    now = advance_reactor(ReactorState(state[0], state[1]), u, ca.exp)
    return ca.Function("step", [state, u], [ca.vertcat(*now), now.concentration], ["state", "u"], ["next_state", "y"])


def _advance(x: Float64[np.ndarray, " 2"], u: float) -> Float64[np.ndarray, " 2"]:
    return np.array(advance_reactor(ReactorState(*x.tolist()), u))
