"""Where a run begins: cold, where training ended, or after a measured window whose latent states are inferred."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Window
from revarb.data.windows import input_windows
from revarb.errors import InputError
from revarb.gp.posterior import Posterior
from revarb.simulation.chain import Chain, StartState, cold_start
from revarb.simulation.filtering import filter_states

StartChoice = Literal["cold", "continue"] | Window | StartState


class Origin(NamedTuple):
    """The state before the first step, and what it is called in reports."""

    state: StartState
    name: str

    @property
    def cold(self) -> bool:
        """Whether nothing is known: the rows until the inputs' window is full are no part of the run then."""
        return self.name == "cold"


def cold_origin(prep: Preprocessor, chain: Chain) -> Origin:
    """Zero mean and unit variance, as in the authors' code."""
    return Origin(cold_start(chain.latent_dims, chain.lags, prep.order.reach, len(prep.input_names)), "cold")


def resolve_start(
    start: StartChoice, prep: Preprocessor, chain: Chain[Posterior], final_states: Sequence[StartState]
) -> Origin:
    """What a choice of the user comes to, for a chain as it was fitted."""
    cold = cold_origin(prep, chain)
    if isinstance(start, Window):
        return Origin(_after(start, prep, chain, cold.state), f"window of {len(start)} samples")
    if isinstance(start, StartState) and _shapes(start) == _shapes(cold.state) and _are_numbers(start):
        return Origin(jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), start), "given state")
    if isinstance(start, str) and start == "cold":
        return cold
    if isinstance(start, str) and start == "continue":
        return Origin(final_states[-1], "continued")
    raise InputError(
        "start must be 'cold', 'continue', a revarb.Window(u, y), or one of the final_states of a model with the same "
        f"lags, layers and inputs; received {start if isinstance(start, str) else type(start).__name__!r}"
    )


def _after(window: Window, prep: Preprocessor, chain: Chain[Posterior], before: StartState) -> StartState:
    z, y = prep.check_window(window)
    inputs = np.concatenate([before.past_u, z])
    known = filter_states(chain, before, input_windows(inputs, prep.order), y)
    return StartState(np.asarray(known.mean), np.asarray(known.cov), _last(inputs, prep.order.reach))


def _last(rows: Float64[np.ndarray, "N Du"], count: int) -> Float64[np.ndarray, "_ Du"]:
    return rows[len(rows) - count :]


def _are_numbers(tree: Any) -> bool:
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    return all(leaf.dtype.kind in "biuf" and np.isfinite(leaf).all() for leaf in leaves)


def _shapes(tree: Any) -> list[tuple[int, ...]]:
    return [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
