"""The state vector that a run of an exported step starts from."""

from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError
from revarb.models.base import Fitted
from revarb.models.ensemble import Ensemble
from revarb.models.export.step_model import make_step_model
from revarb.models.fitted_rgp import FittedRGP
from revarb.simulation.chain import StartState
from revarb.simulation.narx_filtering import filter_narx
from revarb.simulation.starts import resolve_start


def make_start_vector(model: Fitted, start: Any) -> Float64[np.ndarray, " S"]:
    """The state vector of a start; see `Fitted.step_state`."""
    step = make_step_model(model)
    parts = model.members if isinstance(model, Ensemble) else (model,)
    starts = [_find_state(part, own) for part, own in zip(parts, _split_start(start, len(parts)), strict=True)]
    longest = max(starts, key=lambda each: len(each.past_u))
    scaling = step.members[0].scaling
    past_u = np.asarray(longest.past_u) * scaling.u_std + scaling.u_mean
    return np.concatenate([*(np.asarray(each.mean, dtype=np.float64) for each in starts), past_u.ravel()])


def _split_start(start: Any, members: int) -> list[Any]:
    # A state belongs to one model: an ensemble takes one for each member.
    if isinstance(start, list | tuple):
        if len(start) != members:
            raise InputError(f"start has {len(start)} state(s), but the model {members} member(s); pass one for each")
        return list(start)
    if isinstance(start, StartState) and members > 1:
        raise InputError(f"start is one state, but the model has {members} members; pass one of its final_states")
    return [start] * members


def _find_state(model: Any, start: Any) -> StartState:
    if isinstance(model, FittedRGP):
        return model.resolve_start(start).state
    final_states = getattr(model, "final_states", None)
    if final_states is None and _is_continued(start):
        raise InputError(
            f"a {type(model).__name__} does not keep how its training records ended and cannot continue them; start "
            "cold or after a revarb.Window(u, y)"
        )
    return resolve_start(start, model.preprocessor, model.chain, final_states or (), filter_narx).state


def _is_continued(start: object) -> bool:
    return isinstance(start, str) and start == "continue"
