"""Start states of a run: cold, the end of a training record, or after a measured window (filtering).

Before a cold run nothing is known but what the states were like in training (docs/theory/derivation.md, section 8).
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float64, Int

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, Window
from revarb.data.windows import input_windows_after
from revarb.errors import InputError, check_integer
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.filtering import filter_states
from revarb.simulation.moments import JointState

WINDOW = 20  # measured samples, or as many as the lags need, after which a run starts that is to start measured
StartChoice = Literal["cold", "continue", "measured"] | Window | StartState
Filter = Callable[[Chain, StartState, AnyArray, AnyArray], JointState]  # chain, start, input windows, measured outputs


class Origin(NamedTuple):
    """The state before the first step, its name in reports, and the number of steps since the last measured output.

    If the run is `cold`, no output was measured, and the steps are those since the cold start. `given_apart` is the
    `apart` of the state.
    """

    state: StartState
    name: str
    age: int = 0
    cold: bool = False
    given_apart: Float64[np.ndarray, "3 S"] | None = None

    @property
    def apart(self) -> Float64[np.ndarray, "3 S"]:
        """The states of the mean-only run, and of those that are held inside."""
        return np.tile(np.asarray(self.state.mean), (3, 1)) if self.given_apart is None else self.given_apart


class StepCount(NamedTuple):
    """Numbers of steps since the last measured output; while none was measured it is `cold`, and since the start."""

    steps: Int[np.ndarray, " T"]
    cold: Bool[np.ndarray, " T"]


def count_steps_since(y: Float64[np.ndarray, "T Dy"]) -> StepCount:
    """Count them after every row of a record."""
    rows = np.arange(len(y))
    last = np.maximum.accumulate(np.where(np.isnan(y).all(axis=1), -1, rows))
    return StepCount(rows - last, last < 0)


def make_start(prep: Preprocessor, mean: Float64[np.ndarray, " S"], cov: Float64[np.ndarray, "S S"]) -> StartState:
    """Make the start state with this Gaussian of the windows; past inputs are at their training mean (zero)."""
    return StartState(mean, cov, np.zeros((prep.order.reach, len(prep.input_names))))


def make_standard_start(prep: Preprocessor, chain: Chain) -> StartState:
    """Make a start of zero mean and unit variance: that of held-out runs, and of states that are yet to be inferred."""
    size = chain.lags * sum(chain.latent_dims)
    return make_start(prep, np.zeros(size), np.eye(size))


def make_level_start(prep: Preprocessor) -> StartState:
    """Make the cold start of a NARX model that has not kept how its outputs varied: at rest, at an unknown level.

    The past values of an output are all the same, z-scored: zero mean, unit variance.
    """
    lags, outputs = prep.order.lags, len(prep.output_names)
    return make_start(prep, np.zeros(lags * outputs), np.kron(np.ones((lags, lags)), np.eye(outputs)))


def summarise_windows(
    prep: Preprocessor, windows: Float64[np.ndarray, "R S"], variance: Float64[np.ndarray, " S"]
) -> StartState:
    """Make a cold start: the distribution of the windows over the training rows, with their own mean variance."""
    cov = np.cov(windows.T, bias=True).reshape(2 * windows.shape[1:])
    return make_start(prep, windows.mean(axis=0), 0.5 * (cov + cov.T) + np.diag(variance))


def begin_measured(prep: Preprocessor, u: Any, start: Any) -> tuple[Any, Any]:
    """With the start "measured" the record after its first samples, and these as a window; else both as they are."""
    if not (isinstance(start, str) and start == "measured"):
        return u, start
    if not isinstance(u, Series):
        raise InputError(
            'start="measured" needs the measured outputs: pass a revarb.Series(u, y) to simulate, received a '
            f"{type(u).__name__}"
        )
    count = min(max(WINDOW, prep.skip), (len(u) + 1) // 2)
    first = u[:count]
    return u[count:], Window(first.u, first.y, first.dt, first.input_names, first.output_names)


def resolve_start(
    start: StartChoice,
    prep: Preprocessor,
    chain: Chain,
    cold: StartState,
    final_states: Sequence[StartState],
    filter_record: Filter = filter_states,
) -> Origin:
    """Return the start state of a chain that the `start` argument of `simulate` stands for."""

    def infer(window: Window) -> StartState:
        return infer_state(window, prep, chain, cold, filter_record)

    return choose_origin(start, cold, final_states, infer)


def choose_origin(
    start: StartChoice, cold: StartState, final_states: Sequence[StartState], infer: Callable[[Window], StartState]
) -> Origin:
    """Return the start state that the `start` argument of `simulate` stands for; `infer` filters a measured window."""
    if isinstance(start, Window):
        return _separate(infer(start), f"window of {len(start)} samples")
    if isinstance(start, StartState) and _list_shapes(start)[:3] == _list_shapes(cold) and _is_numeric(start):
        return _separate(start, "given state")
    if isinstance(start, str) and start == "cold":
        return Origin(cold, "cold", cold=True)
    if isinstance(start, str) and start == "measured":
        raise InputError(
            'start="measured" is for model.simulate(record, start="measured"); here pass a revarb.Window(u, y)'
        )
    if isinstance(start, str) and start == "continue":
        if not final_states:
            raise InputError(
                "this model does not know how its training records ended and cannot continue them; start cold or "
                "after a revarb.Window(u, y), or fit an RGP or ARX model, which store it"
            )
        return Origin(final_states[-1], "continued")
    raise InputError(
        "start must be 'cold', 'measured', 'continue', a revarb.Window(u, y), or one of the final_states of a model "
        f"with the same states, lags and inputs; received {start if isinstance(start, str) else type(start).__name__!r}"
    )


def _separate(start: StartState, name: str) -> Origin:
    # What else a state has is part of its tree, and every other tree is compiled again: runs get the defaults.
    mean, cov, past_u, *apart = (np.asarray(leaf, dtype=np.float64) for leaf in jax.tree.leaves(start))
    age, given = check_integer("age", start.age, least=0), _check_apart(apart, mean)
    return Origin(StartState(mean, cov, past_u), name, age, start.cold is True, given)


def infer_state(
    record: Series, prep: Preprocessor, chain: Chain, cold: StartState, filter_record: Filter
) -> StartState:
    """Infer the state after the last sample of a measured record by filtering from a cold start."""
    z, y = prep.check_window(record)
    state = filter_record(chain, cold, input_windows_after(cold.past_u, z, prep.order), y)
    past_u = np.concatenate([cold.past_u, z])[len(z) :]  # the last `reach` inputs
    known = count_steps_since(y)
    return StartState(np.asarray(state.mean), np.asarray(state.cov), past_u, int(known.steps[-1]), bool(known.cold[-1]))


def _check_apart(
    apart: Sequence[Float64[np.ndarray, "..."]], mean: Float64[np.ndarray, " S"]
) -> Float64[np.ndarray, "3 S"] | None:
    if apart and apart[0].shape != (3, len(mean)):
        raise InputError(f"apart of a state must have shape (3, {len(mean)}), received {apart[0].shape}")
    return apart[0] if apart else None


def _is_numeric(tree: Any) -> bool:
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    return all(leaf.dtype.kind in "biuf" and np.isfinite(leaf).all() for leaf in leaves)


def _list_shapes(tree: Any) -> list[tuple[int, ...]]:
    return [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
