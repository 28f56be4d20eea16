"""Adam on any tree of arrays, a compiled call for a fixed number of steps at a time; the best point is kept."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.journal import Journal
from revarb.runtime.numerics import AnyArray

STEPS_PER_CALL = 50  # an interrupt is noticed after a call; much fewer steps would make the calls costly


class DescentState(NamedTuple):
    """The current point, the optimiser's state, and the best point so far with its value."""

    point: Any
    memory: Any
    best: Any
    best_value: AnyArray


class Descent(NamedTuple):
    """The best point of a descent, its value, and whether it was interrupted."""

    point: Any
    value: float
    stopped: bool


def make_descent(
    loss: Callable[[Any], AnyArray], rule: optax.GradientTransformation, journal: Journal, name: str
) -> Callable[[Any, int, Callable[[int, float], None]], Descent]:
    """Make a function that minimises `loss` for a number of steps; its calls are recorded in the journal by `name`."""

    def step(now: DescentState, _: None) -> tuple[DescentState, None]:
        value, gradient = jax.value_and_grad(loss)(now.point)
        better = value < now.best_value  # never for NaN
        best = jax.tree.map(partial(jnp.where, better), now.point, now.best)
        updates, memory = rule.update(gradient, now.memory, now.point)
        moved = optax.apply_updates(now.point, updates)
        return DescentState(moved, memory, best, jnp.where(better, value, now.best_value)), None

    compiled = jax.jit(lambda now: jax.lax.scan(step, now, None, length=STEPS_PER_CALL)[0])
    advance = journal.wrap_function(name, compiled)

    def descend(start: Any, steps: int, report: Callable[[int, float], None]) -> Descent:
        start = jax.tree.map(jnp.asarray, start)
        now = DescentState(start, rule.init(start), start, jnp.asarray(jnp.inf))
        with capture_interrupts() as pressed:
            for done in range(0, steps, STEPS_PER_CALL):
                now = advance(now)
                try:
                    report(done + STEPS_PER_CALL, float(now.best_value))
                except KeyboardInterrupt:  # the receiver of the report stops the descent
                    pressed.append(done)
                if pressed:
                    break
        return Descent(jax.tree.map(np.asarray, now.best), float(now.best_value), bool(pressed))

    return descend
