"""Adam on any tree of arrays, in compiled stretches of steps, keeping the best point."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.numerics import AnyArray

STEPS_PER_CALL = 50


class DescentState(NamedTuple):
    """Where the descent is, the optimiser's memory, and the best point that it has passed."""

    point: Any
    memory: Any
    best: Any
    best_value: AnyArray


class Descent(NamedTuple):
    """The best point on the way, its value, and whether Ctrl-C ended it."""

    point: Any
    value: float
    stopped: bool


def make_descent(
    loss: Callable[[Any], AnyArray],
    rule: optax.GradientTransformation,
    noted: Callable[[Callable[[DescentState], DescentState]], Callable[[DescentState], DescentState]],
) -> Callable[[Any, int, Callable[[int, float], None]], Descent]:
    """A function that goes down `loss` for so many steps, which are `noted` call by call."""

    def step(now: DescentState, _: None) -> tuple[DescentState, None]:
        value, gradient = jax.value_and_grad(loss)(now.point)
        better = value < now.best_value  # never for NaN
        best = jax.tree.map(partial(jnp.where, better), now.point, now.best)
        updates, memory = rule.update(gradient, now.memory, now.point)
        moved = optax.apply_updates(now.point, updates)
        return DescentState(moved, memory, best, jnp.where(better, value, now.best_value)), None

    advance = noted(jax.jit(lambda now: jax.lax.scan(step, now, None, length=STEPS_PER_CALL)[0]))

    def descend(start: Any, steps: int, tell: Callable[[int, float], None]) -> Descent:
        start = jax.tree.map(jnp.asarray, start)
        now = DescentState(start, rule.init(start), start, jnp.asarray(jnp.inf))
        with capture_interrupts() as pressed:
            for done in range(0, steps, STEPS_PER_CALL):
                now = advance(now)
                try:
                    tell(done + STEPS_PER_CALL, float(now.best_value))
                except KeyboardInterrupt:  # whoever listens wants it to stop
                    pressed.append(done)
                if pressed:
                    break
        return Descent(jax.tree.map(np.asarray, now.best), float(now.best_value), bool(pressed))

    return descend
