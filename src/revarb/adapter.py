"""What the adapters to scikit-learn and sktime share: their parameter `model`, and runs that follow a record."""

import inspect
from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.data.series import Series, Window
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, describe
from revarb.models.base import ModelSpec
from revarb.models.configuration import Configuration
from revarb.selection.choose import Chosen


def merge_model_params(model: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator with those of its model, such as `model__lags`, merged into a changed `model`."""
    inner = {name.removeprefix("model__"): value for name, value in params.items() if name.startswith("model__")}
    if not inner:
        return params
    own = {name: value for name, value in params.items() if not name.startswith("model__")}
    changed = own.get("model", model)
    if not isinstance(changed, Configuration):
        raise InputError(
            f"model is {describe(changed)}, which has no parameter {next(iter(inner))!r}; set model=revarb.RGP() or "
            "another configuration first"
        )
    return {**own, "model": changed.set_params(**inner)}


def fit_model(model: Any, record: Series, seed: int) -> Any:
    """Fit a configuration to a record; None: what `revarb.fit` chooses."""
    spec = Chosen() if model is None else model
    if isinstance(spec, type) or not isinstance(spec, ModelSpec):
        raise InputError(f"model must be a configuration, such as revarb.RGP(), received {describe(spec)}")
    return spec.fit([record], seed=seed)


def simulate_after(
    model: Any, past: Series, u: Float64[np.ndarray, "T Du"], start: str | Window = "continue"
) -> Trajectory:
    """Simulate the rows that follow a record: after the training record, or after a measured window.

    A model whose simulations have a cold start only (GP-NARX, MLP-NARX, LSTM, Mean, PerOutput) starts at the beginning
    of the record.
    """
    if "start" in inspect.signature(model.simulate).parameters:
        return simulate_inputs(model, u, start=start)
    return _take_last(simulate_inputs(model, np.concatenate([past.u, u])), len(u))


def simulate_inputs(model: Any, u: Float64[np.ndarray, "T Du"], **options: Any) -> Trajectory:
    """Simulate a model with these inputs; a matrix without columns says for how many steps."""
    return model.simulate(u, **options) if u.shape[1] else model.simulate(steps=len(u), **options)


def _take_last(path: Trajectory, rows: int) -> Trajectory:
    std = None if path.std is None else path.std[-rows:]
    skip = max(path.skip - (len(path) - rows), 0)
    return Trajectory(
        path.mean[-rows:], std, path.method, skip, path.output_names, path.dt,
        degrees_of_freedom=path.degrees_of_freedom,
    )  # fmt: skip
