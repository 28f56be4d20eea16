"""Model predictive control of one output by one input: the optimisation over a horizon, by CasADi and its Ipopt.

The model is a function step(state, u) → (next state, y) as `model.to_casadi()` gives it: u acts until y is measured.
"""

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb import InputError

# Errors and moves are scaled to about 1, so that the last digits do not matter. A plan that has been good enough for
# four iterations is taken, and a small barrier at the beginning keeps the guess: it is nearly the solution.
IPOPT = {"print_level": 0, "sb": "yes", "tol": 1e-4, "acceptable_tol": 1e-2, "acceptable_iter": 4, "max_iter": 100,
         "mu_init": 1e-3}  # fmt: skip
# The method of Gauss and Newton takes four iterations, and rarely more than ten. After a large step of the set-point
# the curvature that it leaves out can be larger than what it has: its steps oscillate, for hundreds of iterations.
GAUSS_NEWTON_ITERATIONS = 20


@dataclass(frozen=True)
class ControlSettings:
    """What the controller weighs and keeps to, raw units."""

    horizon: int  # samples
    lowest: float  # inputs
    highest: float
    limit: float  # of the output, from above
    output_scale: float  # errors are in these units,
    input_scale: float  # and moves in these
    move_weight: float  # of a squared move beside a squared error
    slack_weight: float  # of an excess over the limit beside a squared error, both in units of `output_scale`


class Plan(NamedTuple):
    """Solution at one sample: the inputs from this sample on, and what it took."""

    inputs: Float64[np.ndarray, " N"]
    seconds: float
    solved: bool


class Controller:
    """The optimisation of one model, compiled once; every solve starts at the last solution, moved by a sample.

    Single shooting: the outputs are written in terms of the inputs, which are the only unknowns besides one slack. The
    limit of the output is soft, so that a state outside of it has a solution too. The Hessian is that of Gauss and
    Newton: the first derivatives of the outputs are enough, and it is positive definite. Where that does not converge,
    the solve is repeated with the exact Hessian, whose iterations take several times as long.
    """

    def __init__(self, step: Any, settings: ControlSettings):
        self.settings = settings
        self._solvers, self._bounds = _make_solvers(step, settings)
        self._guess: Any = None

    def solve(
        self,
        state: Float64[np.ndarray, " S"],
        last: float,
        offset: float,
        target: float,
        limits: Float64[np.ndarray, " N"],
    ) -> Plan:
        """Plan the inputs from a state on.

        `last` is the input before, `offset` is added to all predicted outputs, `target` is the set-point over the
        horizon, `limits` are those of the outputs at the next N samples.
        """
        start = time.perf_counter()
        values = np.concatenate([state, [last, offset, target], limits])
        guess = np.append(np.full(self.settings.horizon, last), 0.0) if self._guess is None else self._guess
        x, solved = self._optimise(guess, values)
        seconds = time.perf_counter() - start
        inputs = np.clip(x[:-1], self.settings.lowest, self.settings.highest)  # bounds hold to 1e-8 only
        self._guess = np.concatenate([inputs[1:], inputs[-1:], x[-1:]])
        return Plan(inputs, seconds, solved)

    def _optimise(
        self, guess: Float64[np.ndarray, " X"], values: Float64[np.ndarray, " P"]
    ) -> tuple[Float64[np.ndarray, " X"], bool]:
        x, solved = guess, False
        for solver in self._solvers:
            x, solved = solver(x0=guess, p=values, **self._bounds)["x"].full().ravel(), solver.stats()["success"]
            if solved:
                break
        return x, bool(solved)


def _make_solvers(step: Any, settings: ControlSettings) -> tuple[list[Any], dict[str, Any]]:
    # The one that is tried first, the one after it, and the bounds of both.
    ca, count = import_casadi(), settings.horizon
    size = step.size1_in(0)
    u, slack = ca.MX.sym("u", count), ca.MX.sym("slack")
    state, last, offset, target = ca.MX.sym("state", size), *(ca.MX.sym(name) for name in ("last", "offset", "target"))
    limits = ca.MX.sym("limits", count)
    y = step.mapaccum("run", count)(state, u.T)[1].T + offset
    errors = (y - target) / settings.output_scale
    moves = (u - ca.vertcat(last, u[:-1])) / settings.input_scale
    residuals = ca.vertcat(errors, np.sqrt(settings.move_weight) * moves)
    cost = ca.sumsqr(residuals) + settings.slack_weight * (slack + slack**2)
    unknown, known = ca.vertcat(u, slack), ca.vertcat(state, last, offset, target, limits)
    problem = {"x": unknown, "p": known, "f": cost, "g": (y - limits) / settings.output_scale - slack}
    exact = {"ipopt": IPOPT, "print_time": False}
    quick = {"ipopt": {**IPOPT, "max_iter": GAUSS_NEWTON_ITERATIONS}, "print_time": False,
             "hess_lag": _make_hessian(ca, unknown, known, residuals, settings)}  # fmt: skip
    bounds = {"lbx": np.append(np.full(count, settings.lowest), 0.0),
              "ubx": np.append(np.full(count, settings.highest), np.inf), "lbg": -np.inf, "ubg": 0.0}  # fmt: skip
    return [ca.nlpsol("controller", "ipopt", problem, options) for options in (quick, exact)], bounds


def _make_hessian(ca: Any, unknown: Any, known: Any, residuals: Any, settings: ControlSettings) -> Any:
    # Gauss and Newton: twice JᵀJ of the residuals; the slack has its own square. Ipopt takes the upper triangle.
    factor, multipliers = ca.MX.sym("factor"), ca.MX.sym("multipliers", settings.horizon)
    jacobian = ca.jacobian(residuals, unknown)
    slack = ca.DM(np.diag(np.append(np.zeros(settings.horizon), 2.0 * settings.slack_weight)))
    hessian = factor * (2.0 * ca.mtimes(jacobian.T, jacobian) + slack)
    return ca.Function("hessian", [unknown, known, factor, multipliers], [ca.triu(hessian)])


def import_casadi() -> Any:
    """CasADi; where it is not installed a line says so."""
    try:
        import casadi
    except ModuleNotFoundError as error:
        raise InputError(f'model predictive control needs {error.name}; pip install "revarb[casadi]"') from None
    return casadi
