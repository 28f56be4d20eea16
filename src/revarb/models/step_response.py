"""Response of a model to a step of an input, by simulation from an equilibrium."""

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from revarb.data.trajectory import Trajectory
from revarb.data.windows import input_windows_after
from revarb.errors import check_integer, check_number
from revarb.gp.posterior import Posterior
from revarb.models.base import Fitted
from revarb.models.by_residuals import FittedNarx
from revarb.models.ensemble import Ensemble, mix_paths
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.operating_point import (
    OperatingPoint,
    find_column,
    find_equilibria,
    find_operating_point,
    list_chains,
)
from revarb.simulation.chain import StartState
from revarb.simulation.mean import run_mean
from revarb.simulation.run import simulate_chain
from revarb.simulation.starts import Origin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_STEPS, MOST_STEPS = 20, 2000  # of a response whose length is not given
SETTLED, TAIL = 0.01, 1.3  # it ends when 1 % of the change is left, and a third of that time later
RISE, SETTLING = (0.1, 0.9), 0.02  # shares of the change, as is usual


@dataclass(frozen=True, eq=False, repr=False)
class StepResponse:
    """Response of the outputs to a step of one input, as `model.step_response` returns it.

    The input steps at row 0; before it the model was at rest. Times are in units of `dt`, counted from the step.

    Attributes
    ----------
    path : Trajectory
        The outputs. The mean is that of the mean-only run, so that it begins at the equilibrium. The band, where the
        model has one, is that of measurements, with the state before the step known.
    point : OperatingPoint
        Inputs and outputs before the step.
    input_name : str
        The input that steps.
    size : float
        Height of the step, raw units.
    final : array [outputs]
        Outputs at rest after the step; where the model does not come to rest there, those of the last row.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(90.0) ** 1.5)
    >>> y = np.convolve(u, 0.8 ** np.arange(30))[:90]
    >>> model = revarb.ARX(lags=1, input_lags=1, input_delay=0).fit(revarb.Series(u, y))
    >>> response = model.step_response(size=0.1, at=0.0)
    >>> response
    StepResponse(0.1 of 'u', 26 rows, outputs ('y',))
    >>> response.gain.round(2).tolist(), response.rise_time.tolist(), response.settling_time.tolist()
    ([5.0], [10.0], [17.0])
    """

    path: Trajectory
    point: OperatingPoint
    input_name: str
    size: float
    final: Float64[np.ndarray, " Dy"]

    def __repr__(self) -> str:
        return (
            f"StepResponse({self.size:g} of {self.input_name!r}, {len(self.path)} rows, "
            f"outputs {self.path.output_names})"
        )

    @property
    def time(self) -> Float64[np.ndarray, " T"]:
        """Time since the step."""
        return np.arange(len(self.path)) * self.path.dt

    @property
    def change(self) -> Float64[np.ndarray, " Dy"]:
        """Outputs at rest after the step minus those before it."""
        return self.final - self.point.outputs

    @property
    def gain(self) -> Float64[np.ndarray, " Dy"]:
        """Change of the outputs per change of the input."""
        return self.change / self.size

    @property
    def rise_time(self) -> Float64[np.ndarray, " Dy"]:
        """Time from 10 % to 90 % of the change; NaN where the rows do not reach it."""
        low, high = (self._first_row(share) for share in RISE)
        return (high - low) * self.path.dt

    @property
    def settling_time(self) -> Float64[np.ndarray, " Dy"]:
        """Time after which the output stays within 2 % of the change; NaN where the rows end before."""
        outside = np.abs(self._shares() - 1.0) > SETTLING
        last = np.where(outside.any(axis=0), len(outside) - np.argmax(outside[::-1], axis=0), 0).astype(np.float64)
        return np.where(last < len(outside), last, np.nan) * self.path.dt

    @property
    def overshoot(self) -> Float64[np.ndarray, " Dy"]:
        """How far the output goes beyond its final value, as a share of the change; 0 where it does not."""
        return np.maximum(self._shares().max(axis=0) - 1.0, 0.0)

    def plot(self) -> "Figure":
        """Draw the input, and every output with its band, its value before the step and its final one.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("step.png")`; a notebook displays it.
        """
        from revarb.models.response_figures import draw_step_response  # matplotlib is slow to import

        return draw_step_response(self)

    def _shares(self) -> Float64[np.ndarray, "T Dy"]:
        # Of the change that is done at every row; NaN where nothing changes.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.change != 0.0, (self.path.mean - self.point.outputs) / self.change, np.nan)

    def _first_row(self, share: float) -> Float64[np.ndarray, " Dy"]:
        reached = self._shares() >= share
        return np.where(reached.any(axis=0), np.argmax(reached, axis=0), np.nan)


def compute_step_response(
    model: Fitted, size: float | None = None, at: Any = None, steps: int | None = None, name: str | None = None
) -> StepResponse:
    """Simulate a step of one input from the equilibrium at constant inputs."""
    parts, column = list_chains(model), find_column(model, name)
    height = float(model.scaling.u_std[column]) if size is None else check_number("size", size)
    if steps is not None:
        steps = check_integer("steps", steps, least=1)
    point = find_operating_point(model, at)
    after = point.inputs.copy()
    after[column] += height
    rests = [find_equilibria(part, after[None]) for part in parts]
    final = None
    if all(rest.found[0] for rest in rests):
        outputs = [part.scaling.raw_outputs(rest.outputs[0]) for part, rest in zip(parts, rests, strict=True)]
        final = np.mean(outputs, axis=0)
    rows = _choose_steps(model, point, after, final) if steps is None else steps
    path = _simulate_from(model, point, np.tile(after, (rows, 1)))
    return StepResponse(path, point, model.input_names[column], height, path.mean[-1] if final is None else final)


def _choose_steps(
    model: Fitted, point: OperatingPoint, after: Float64[np.ndarray, " Du"], final: Float64[np.ndarray, " Dy"] | None
) -> int:
    # As many as the slowest output needs to settle; the most where it never does.
    if final is None:
        return MOST_STEPS
    left = np.abs(_run_mean_from(model, point, np.tile(after, (MOST_STEPS, 1))) - final)
    moving = np.flatnonzero((left > SETTLED * np.abs(final - point.outputs)).any(axis=1))
    last = int(moving[-1]) + 1 if len(moving) else 0
    return int(np.clip(np.ceil(TAIL * last), LEAST_STEPS, MOST_STEPS))


def _run_mean_from(model: Fitted, point: OperatingPoint, u: Float64[np.ndarray, "T Du"]) -> Float64[np.ndarray, "T Dy"]:
    # The mean-only run of a model from its equilibrium, raw units; the mean of the members of an ensemble.
    runs = []
    for (chain, scaling, order), state in zip(list_chains(model), point.states, strict=True):
        u_bar = input_windows_after(np.asarray(state.past_u), scaling.inputs(u), order)
        runs.append(scaling.raw_outputs(np.asarray(run_mean(chain, state, u_bar, 0))))
    return np.mean(runs, axis=0)


def _simulate_from(model: Fitted, point: OperatingPoint, u: Float64[np.ndarray, "T Du"]) -> Trajectory:
    # The mean-only run, with the band of the model's own simulation from there.
    parts = model.members if isinstance(model, Ensemble) else (model,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that inputs leave their training range is said once, below
        paths = [_simulate_part(part, state, u) for part, state in zip(parts, point.states, strict=True)]
    banded = mix_paths(paths) if len(paths) > 1 else paths[0]
    path = replace(banded, mean=_run_mean_from(model, point, u), disagreement=None, start="equilibrium")
    return model.preprocessor.add_inputs(path, u)


def _simulate_part(model: Fitted, state: StartState, u: Float64[np.ndarray, "T Du"]) -> Trajectory:
    if isinstance(model, FittedRGP):
        return model.simulate(u, start=state)
    [part] = list_chains(model)
    if isinstance(part.chain.last_layer, Posterior):
        origin = Origin(state, "equilibrium")
        return simulate_chain(model.preprocessor, part.chain, u, "moments", origin, None, 0, 0)
    mean = run_mean(
        part.chain, state, input_windows_after(np.asarray(state.past_u), part.scaling.inputs(u), part.order), 0
    )
    assert isinstance(model, FittedNarx)  # all others are GPs
    variance = model._variances(1 + np.arange(len(u)), np.zeros(len(u), dtype=bool))
    return model.preprocessor.to_trajectory("residuals", 0, mean, variance, start="equilibrium")
