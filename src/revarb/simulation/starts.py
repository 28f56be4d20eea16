"""Start states of a run: cold, the end of a training record, or after a measured window (filtering)."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, Window
from revarb.data.windows import input_windows_after
from revarb.errors import InputError, check_integer
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState, make_cold_start
from revarb.simulation.filtering import filter_states
from revarb.simulation.moments import JointState

StartChoice = Literal["cold", "continue"] | Window | StartState
Filter = Callable[[Chain, StartState, AnyArray, AnyArray], JointState]  # chain, start, input windows, measured outputs


class Origin(NamedTuple):
    """The state before the first step, its name in reports, and the number of steps since the last measured output."""

    state: StartState
    name: str
    age: int = 0

    @property
    def cold(self) -> bool:
        """Whether the start is cold: the run is then reset at the first row with a full window of inputs."""
        return self.name == "cold"


def make_cold_origin(prep: Preprocessor, chain: Chain) -> Origin:
    """Make a cold start: zero mean, as in the authors' code, and unit variance."""
    return Origin(make_cold_start(chain.latent_dims, chain.lags, prep.order.reach, len(prep.input_names)), "cold")


def resolve_start(
    start: StartChoice,
    prep: Preprocessor,
    chain: Chain,
    final_states: Sequence[StartState],
    filter_record: Filter = filter_states,
) -> Origin:
    """Return the start state of a chain that the `start` argument of `simulate` stands for."""
    cold = make_cold_origin(prep, chain)
    return choose_origin(start, cold, final_states, lambda window: infer_state(window, prep, chain, filter_record))


def choose_origin(
    start: StartChoice, cold: Origin, final_states: Sequence[StartState], infer: Callable[[Window], StartState]
) -> Origin:
    """Return the start state that the `start` argument of `simulate` stands for; `infer` filters a measured window."""
    if isinstance(start, Window):
        return Origin(infer(start), f"window of {len(start)} samples")
    if isinstance(start, StartState) and _list_shapes(start) == _list_shapes(cold.state) and _is_numeric(start):
        # The age is part of a state's tree, and every other tree is compiled again: the runs get states of age 0.
        mean, cov, past_u = (np.asarray(leaf, dtype=np.float64) for leaf in jax.tree.leaves(start))
        return Origin(StartState(mean, cov, past_u), "given state", check_integer("age", start.age, least=0))
    if isinstance(start, str) and start == "cold":
        return cold
    if isinstance(start, str) and start == "continue":
        if not final_states:
            raise InputError(
                "this model does not know how its training records ended and cannot continue them; start cold or "
                "after a revarb.Window(u, y), or fit an RGP or ARX model, which store it"
            )
        return Origin(final_states[-1], "continued")
    raise InputError(
        "start must be 'cold', 'continue', a revarb.Window(u, y), or one of the final_states of a model with the same "
        f"states, lags and inputs; received {start if isinstance(start, str) else type(start).__name__!r}"
    )


def infer_state(record: Series, prep: Preprocessor, chain: Chain, filter_record: Filter) -> StartState:
    """Infer the state after the last sample of a measured record by filtering from a cold start."""
    z, y = prep.check_window(record)
    cold = make_cold_origin(prep, chain).state
    state = filter_record(chain, cold, input_windows_after(cold.past_u, z, prep.order), y)
    past_u = np.concatenate([cold.past_u, z])[len(z) :]  # the last `reach` inputs
    return StartState(np.asarray(state.mean), np.asarray(state.cov), past_u)


def _is_numeric(tree: Any) -> bool:
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    return all(leaf.dtype.kind in "biuf" and np.isfinite(leaf).all() for leaf in leaves)


def _list_shapes(tree: Any) -> list[tuple[int, ...]]:
    return [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
