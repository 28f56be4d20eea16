"""L-BFGS for a batch of problems of one shape: the whole optimisation is one compiled program, for an accelerator.

Every tick of the program evaluates all members once, each at the point that its own line search asks for, so that
members in different iterations advance together. The stages, iteration limits and tolerances are those of lbfgs.py;
the digits are not: SciPy has another line search.

Notation: minimised is f = −bound along x + t d; a step is accepted by the weak Wolfe conditions. The memory has the
last m steps s and changes y of the gradient, oldest first, and gives the direction in the compact form of Byrd,
Nocedal and Schnabel (1994).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Bool, Float, Int

from revarb.errors import ComputationError
from revarb.fitting.lbfgs import Optimum, Phase, Settings
from revarb.models.recipe import Status, Step
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.numerics import AnyArray

MemberObjective = Callable[[AnyArray, Any, Any], tuple[AnyArray, AnyArray]]
"""A function from the flat vector of one member, its own data and data of all members to its bound and gradient.

Equal ones share a compiled program.
"""

TICKS = 20  # evaluations between two looks at progress and Ctrl-C
DECREASE, CURVATURE = 1e-4, 0.9  # the weak Wolfe conditions
SHORTEST, LONGEST = 0.1, 0.5  # of the interval: where a step that went too far is tried again
MAX_TRIALS = 20  # evaluations of one line search

QUICK = {"xla_gpu_autotune_level": "0"}  # programs are compiled in a tenth of the time, and run as fast

RUNNING, CONVERGED, LIMIT, STALLED, NOT_FINITE = range(5)
_STATUSES = {
    CONVERGED: Status.CONVERGED,
    LIMIT: Status.ITERATION_LIMIT,
    STALLED: Status.STALLED,
    NOT_FINITE: Status.NOT_FINITE,
}


class Search(NamedTuple):
    """The state of one member: the point, its memory, the direction, and the interval of the line search."""

    x: Float[AnyArray, " V"]
    f: Float[AnyArray, ""]
    g: Float[AnyArray, " V"]  # zero where an entry is not free
    steps: Float[AnyArray, "m V"]
    changes: Float[AnyArray, "m V"]
    d: Float[AnyArray, " V"]
    t: Float[AnyArray, ""]
    low: Float[AnyArray, ""]
    high: Float[AnyArray, ""]
    trials: Int[AnyArray, ""]  # of this line search
    iteration: Int[AnyArray, ""]
    status: Int[AnyArray, ""]
    met_nan: Bool[AnyArray, ""]  # since the last accepted step
    free: Bool[AnyArray, " V"]  # entries that may change in this stage
    limit: Int[AnyArray, ""]  # of iterations in this stage


Trace = tuple[Int[jax.Array, "T K"], Float[jax.Array, "T K"]]
"""The iteration and the value of every member after each tick; zero where there was none."""


def maximise_batch(
    objective: MemberObjective,
    own: Any,
    shared: Any,
    starts: Float[np.ndarray, "K V"],
    phases: Sequence[Sequence[Phase]],
    settings: Settings,
    report: Callable[[int, Step], None],
    first_stage: int = 1,
) -> list[Optimum | ComputationError]:
    """Maximise all members in phases; `report` gets the number of a member and each of its steps.

    `own` has a leading axis of members, and `phases` the phases of each, the same number for all. A member that is not
    finite at its start gives an error, the others continue; Ctrl-C ends all of them at their best points.
    """
    searches, interrupted = make_searches(starts, settings), False
    histories: list[list[Step]] = [[] for _ in starts]
    with capture_interrupts() as pressed:
        try:
            for number, stage in enumerate(zip(*phases, strict=True), start=first_stage):
                searches, active = _restart(searches, stage, settings), True
                while active:  # once at least: the start has to be evaluated
                    searches, trace = _advance(objective, settings, own, shared, searches, TICKS)
                    _record(trace, number, histories, report)
                    active = not pressed and bool(np.any(np.asarray(searches.status) == RUNNING))
                if pressed:
                    break
        except KeyboardInterrupt:  # of the report
            interrupted = True
    return _finish(searches, histories, interrupted or bool(pressed))


def make_searches(starts: Float[np.ndarray, "K V"], settings: Settings) -> Search:
    """The states of all members before their first evaluation.

    The start is the last trial of a step of length zero: it is accepted, or the member has ended.
    """
    count, nowhere = len(starts), np.zeros_like(starts)
    zeros, memory = np.zeros(count), np.zeros((count, settings.memory, starts.shape[1]))
    return Search(
        x=starts, f=zeros + np.inf, g=nowhere, steps=memory, changes=memory, d=nowhere, t=zeros, low=zeros,
        high=zeros + np.inf, trials=np.full(count, MAX_TRIALS - 1), iteration=np.full(count, -1),
        status=np.full(count, RUNNING), met_nan=np.zeros(count, bool), free=np.ones(starts.shape, bool),
        limit=np.ones(count, int),
    )  # fmt: skip


def _restart(searches: Search, stage: Sequence[Phase], settings: Settings) -> Search:
    # Every stage begins with an empty memory; a member that is not finite has ended for good.
    fresh, ended = make_searches(np.asarray(searches.x), settings), np.asarray(searches.status) == NOT_FINITE
    return fresh._replace(
        status=np.where(ended, NOT_FINITE, RUNNING),
        f=np.where(ended, searches.f, np.inf),
        free=np.stack([phase.free for phase in stage]),
        limit=np.array([phase.iterations for phase in stage]),
    )


def _finish(searches: Search, histories: list[list[Step]], interrupted: bool) -> list[Optimum | ComputationError]:
    found: list[Optimum | ComputationError] = []
    for vector, f, code, history in zip(
        *map(np.asarray, (searches.x, searches.f, searches.status)), histories, strict=True
    ):
        status = Status.INTERRUPTED if interrupted else _STATUSES[int(code)]
        found.append(
            Optimum(vector, -float(f), status, tuple(history))
            if np.isfinite(f)
            else ComputationError(f"the bound is {-float(f)} at the start of the fit, before any step")
        )
    return found


def _record(
    trace: tuple[AnyArray, AnyArray], stage: int, histories: list[list[Step]], report: Callable[[int, Step], None]
) -> None:
    # A member has a new step wherever its iteration has moved on.
    iterations, values = (np.asarray(part) for part in trace)
    for member, history in enumerate(histories):
        for iteration, f in zip(iterations[:, member].tolist(), values[:, member].tolist(), strict=True):
            last = history[-1].iteration if history and history[-1].stage == stage else 0
            if iteration > last:
                history.append(Step(stage, iteration, -f))
                report(member, history[-1])


def evaluate_batch(
    objective: MemberObjective,
    own: Any,
    shared: Any,
    vectors: Float[np.ndarray, "K V"],
    settings: Settings,
    ticks: int = 1,
) -> Float[np.ndarray, " K"]:
    """The bounds of all members, by the program that optimises them; −∞ where one is not finite.

    With `ticks=0` the program is only traced, compiled and loaded, which another thread can do ahead.
    """
    searches = make_searches(vectors, settings)
    return -np.asarray(_advance(objective, settings, own, shared, searches, ticks)[0].f)


@partial(jax.jit, static_argnames=("objective", "settings"), compiler_options=QUICK)
def _advance(
    objective: MemberObjective, settings: Settings, own: Any, shared: Any, searches: Search, ticks: AnyArray | int
) -> tuple[Search, Trace]:
    # `ticks` are at most `TICKS`, the rows of the trace.
    tick = jax.vmap(partial(_tick, objective, settings), (0, 0, None))
    empty = jnp.zeros((TICKS, len(searches.f)), int), jnp.zeros((TICKS, len(searches.f)))

    def is_running(state: tuple[AnyArray, Search, Trace]) -> AnyArray:
        return (state[0] < ticks) & jnp.any(state[1].status == RUNNING)

    def advance(state: tuple[AnyArray, Search, Trace]) -> tuple[AnyArray, Search, Trace]:
        number, before, (iterations_so_far, values) = state
        after = tick(before, own, shared)
        trace = iterations_so_far.at[number].set(after.iteration), values.at[number].set(after.f)
        return number + 1, after, trace

    return jax.lax.while_loop(is_running, advance, (jnp.zeros((), int), searches, empty))[1:]


def _tick(objective: MemberObjective, settings: Settings, search: Search, own: Any, shared: Any) -> Search:
    # One evaluation: of a step, which is accepted, or the line search continues. A member that has ended does not
    # change.
    x = search.x + search.t * search.d
    bound, gradient = objective(x, own, shared)
    f, g = -bound, jnp.where(search.free, -gradient, 0.0)
    slope = search.g @ search.d
    finite = jnp.isfinite(f) & jnp.all(jnp.isfinite(g))
    too_far = ~finite | (f > search.f + DECREASE * search.t * slope)
    too_short = ~too_far & (g @ search.d < CURVATURE * slope)
    accepted = _accept(search, settings, x, f, g)
    continued = _continue(search, f, slope, too_far, finite)
    # A step that decreases f enough is kept where the search has run out of trials.
    last = search.trials + 1 >= MAX_TRIALS
    take = ~too_far & (~too_short | last)
    ended = search._replace(status=jnp.where(search.met_nan | ~finite, NOT_FINITE, STALLED))
    changed = _choose(take, accepted, _choose(last, ended, continued))
    return _choose(search.status == RUNNING, changed, search)


def _accept(search: Search, settings: Settings, x: AnyArray, f: AnyArray, g: AnyArray) -> Search:
    s, y = x - search.x, g - search.g
    useful = s @ y > 1e-16 * (y @ y)  # else the memory would not stay positive definite
    steps = jnp.where(useful, _push(search.steps, s), search.steps)
    changes = jnp.where(useful, _push(search.changes, y), search.changes)
    relative = (search.f - f) / jnp.maximum(jnp.maximum(jnp.abs(search.f), jnp.abs(f)), 1.0)
    flat = jnp.max(jnp.abs(g)) <= settings.gtol
    iteration = search.iteration + 1
    status = jnp.where(iteration >= search.limit, LIMIT, RUNNING)
    status = jnp.where((relative <= settings.ftol) | flat, CONVERGED, status)
    d = find_direction(steps, changes, g)
    downhill = (g @ d < 0.0) & jnp.all(jnp.isfinite(d))
    # Along the gradient, and thus at the start, the first step has length one at most.
    short = jnp.minimum(1.0, 1.0 / jnp.maximum(jnp.linalg.norm(g), 1e-300))
    return search._replace(
        x=x, f=f, g=g, steps=steps, changes=changes, d=jnp.where(downhill, d, -g),
        t=jnp.where(downhill & (iteration > 0), 1.0, short), low=jnp.zeros(()), high=jnp.full((), jnp.inf),
        trials=jnp.zeros_like(search.trials), iteration=iteration, status=status,
        met_nan=jnp.zeros_like(search.met_nan),
    )  # fmt: skip


def _continue(search: Search, f: AnyArray, slope: AnyArray, too_far: AnyArray, finite: AnyArray) -> Search:
    # Too far: the minimum of the parabola through both ends, within limits. Too short: further out.
    high = jnp.where(too_far, search.t, search.high)
    low = jnp.where(too_far, search.low, search.t)
    length = search.t - search.low
    parabola = -0.5 * slope * search.t**2 / (f - search.f - slope * search.t)
    inner = jnp.where(finite & (search.low == 0.0), parabola, search.low + LONGEST * length)
    inner = jnp.clip(inner, search.low + SHORTEST * length, search.low + LONGEST * length)
    outer = jnp.where(jnp.isfinite(high), 0.5 * (low + high), 2.0 * search.t)
    return search._replace(
        t=jnp.where(too_far, inner, outer), low=low, high=high, trials=search.trials + 1,
        met_nan=search.met_nan | ~finite,
    )  # fmt: skip


def find_direction(
    steps: Float[AnyArray, "m V"], changes: Float[AnyArray, "m V"], g: Float[AnyArray, " V"]
) -> Float[AnyArray, " V"]:
    """−H g with the inverse Hessian H of the memory, whose last row is the newest; rows of zeros are empty.

    Byrd, Nocedal and Schnabel (1994), Eq. 3.13: two products with the memory, and triangles of its size.
    """
    products = steps @ changes.T
    curvature = jnp.diagonal(products)
    empty = curvature <= 0.0
    triangle = jnp.triu(products) + jnp.diag(jnp.where(empty, 1.0, 0.0))
    newest = changes[-1] @ changes[-1]
    scale = jnp.where(newest > 0.0, curvature[-1] / jnp.where(newest > 0.0, newest, 1.0), 1.0)
    a, b = steps @ g, scale * (changes @ g)
    p = solve_triangular(triangle, a)
    q = (curvature * p) + scale * (changes @ (changes.T @ p)) - b
    return -(scale * g + steps.T @ solve_triangular(triangle, q, trans=1) - scale * (changes.T @ p))


def _push(memory: AnyArray, newest: AnyArray) -> AnyArray:
    return jnp.concatenate([memory[1:], newest[None]])


def _choose(condition: AnyArray, chosen: Search, other: Search) -> Search:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), chosen, other)
