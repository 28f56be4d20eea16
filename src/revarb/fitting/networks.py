"""Training of a recognition model by Adam: first the networks simulate y, then the bound is maximised.

Every round on the bound starts with new inducing inputs at k-means centres of the regressors, because the networks have
changed the latent paths. L-BFGS-B continues from the result.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, Int

from revarb.data.windows import initial_states, regressors, split_rows
from revarb.fitting.initial_values import draw_inducing_inputs
from revarb.fitting.lbfgs import maximise
from revarb.fitting.objective import make_objective
from revarb.fitting.problem import Problem, Report, make_plan
from revarb.models.recipe import Recognition
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.journal import Journal
from revarb.runtime.numerics import AnyArray
from revarb.variational.bound import Layout, Rows, revarb_bound
from revarb.variational.parameters import Parameters, flatten, get_form, select_entries, unflatten
from revarb.variational.states import FreeStates, Network, RecognisedStates, draw_networks, run_networks

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


def train_networks(problem: Problem, report: Report, journal: Journal) -> Problem:
    """Train the recognition model by Adam; without one the problem is returned unchanged."""
    recognition, free_form = problem.spec.recognition, problem.start
    if recognition is None:
        return problem
    rng = np.random.default_rng([problem.seed, 1])  # independent of the numbers drawn for the start values
    if recognition.start == "free-form":
        objective = journal.wrap_objective("free form", make_objective(problem))
        optimum = maximise(objective, *make_plan(problem), lambda step: report(0, f"free form: bound {step.bound:.1f}"))
        free_form = unflatten(optimum.vector, get_form(problem.start))
    starts = start_networks(recognition, problem, free_form, rng, journal)
    return problem._replace(start=run_adam_rounds(problem, recognition, starts, rng, report, journal))


def start_networks(
    spec: Recognition, problem: Problem, start: Parameters, rng: np.random.Generator, journal: Journal
) -> list[Parameters]:
    """Replace the means of a free form, at its start values or trained, by networks, several times (one per start)."""
    states, rows, layout, order = start.states, problem.rows, problem.layout, problem.preprocessor.order
    assert isinstance(states, FreeStates)
    dims = [mu.shape[1] for mu in states.mu]
    inputs = rows.u_bar.shape[1] // order.input_lags if order.input_lags else 0
    drawn = [draw_networks(spec.hidden, order, dims, inputs, rng) for _ in range(spec.starts)]
    initial = tuple(np.asarray(initial_states(mu, layout.lags, layout.lengths)) for mu in states.mu)
    if spec.start != "random":
        drawn = pretrain_networks(spec, problem, drawn, initial, states.mu, journal)
    raw_lam = states.raw_lam if spec.variance == "free" else tuple(raw[:1] for raw in states.raw_lam)
    return [Parameters(start.layers, RecognisedStates(networks, initial, raw_lam), start.priors) for networks in drawn]


def pretrain_networks(
    spec: Recognition,
    problem: Problem,
    drawn: Sequence[tuple[Network, ...]],
    initial: Sequence[AnyArray],
    targets: Sequence[Float[AnyArray, "S _"]],
    journal: Journal,
) -> list[tuple[Network, ...]]:
    """Train the networks to simulate the means of a free form, which start at y or its principal components.

    All starts are trained in parallel.
    """
    rows, layout = problem.rows, problem.layout
    compared = _locate_targets(rows, layout)

    def loss(candidate: tuple[Network, ...]) -> AnyArray:
        paths = run_networks(candidate, initial, rows.u_bar, layout.lags, layout.lengths)
        errors = [jnp.mean((path - target)[compared] ** 2) for path, target in zip(paths, targets, strict=True)]
        sizes = [jnp.sum(weight**2) for network in candidate for weight in network.weights]
        return jnp.mean(jnp.stack(errors)) + spec.weight_decay * jnp.sum(jnp.stack(sizes))

    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *drawn)
    rule = optax.chain(optax.clip(1.0), optax.adam(spec.start_rate))  # entry by entry: the starts stay independent
    descend = make_descent(lambda networks: jnp.sum(jax.vmap(loss)(networks)), rule, journal, "output error")
    trained = descend(stacked, spec.start_steps, lambda steps, value: None).point
    return [jax.tree.map(lambda leaf, k=k: leaf[k], trained) for k in range(len(drawn))]


def _locate_targets(rows: Rows, layout: Layout) -> Int[np.ndarray, " _"]:
    # The states whose path is compared with the target: in a gap of y the target is only interpolated.
    measured = np.ones(len(rows.y), dtype=bool) if rows.measured is None else np.any(np.asarray(rows.measured), axis=1)
    parts = split_rows(measured, layout.lags, layout.lengths)
    return np.flatnonzero(np.concatenate([np.pad(part, (layout.lags, 0), constant_values=True) for part in parts]))


def run_adam_rounds(
    problem: Problem,
    spec: Recognition,
    starts: Sequence[Parameters],
    rng: np.random.Generator,
    report: Report,
    journal: Journal,
) -> Parameters:
    """Maximise the bound in rounds of Adam, over the parameters that the recipe's last stage frees.

    Every start gets the first round; the one with the best bound after it gets the others.
    """
    rows, layout = problem.rows, problem.layout
    count, form = len(rows.y), get_form(starts[0])
    free = select_entries(starts[0], problem.spec.recipe.stages[-1].free)
    only_free = optax.stateless(
        lambda gradient, _: jax.tree.map(lambda entries: jnp.where(free, entries, 0.0), gradient)
    )
    rule = optax.chain(only_free, optax.clip_by_global_norm(spec.clip), optax.adam(spec.learning_rate))

    def loss(vector: AnyArray) -> AnyArray:
        return -revarb_bound(unflatten(vector, form), rows, layout) / count

    descend = make_descent(loss, rule, journal, "rounds of Adam")

    def run_round(start: Parameters, steps: int, before: int) -> Descent:
        renewed = renew_inducing_inputs(problem, start, rng)
        return descend(
            flatten(renewed), steps, lambda done, value: report(before + done, f"bound {-value * count:.1f}")
        )

    first, *later = spec.rounds
    descents: list[Descent] = []
    for number, start in enumerate(starts):
        descents.append(run_round(start, first, number * first))
        if descents[-1].stopped:
            break
    best, steps_before = min(descents, key=lambda descent: descent.value), len(starts) * first
    for steps in later:
        if descents[-1].stopped or best.stopped:
            break
        best = run_round(unflatten(best.point, form), steps, steps_before)
        steps_before += steps
    return unflatten(best.point, form)


def renew_inducing_inputs(problem: Problem, parameters: Parameters, rng: np.random.Generator) -> Parameters:
    """Move the inducing inputs to k-means centres of the regressors on the current latent paths."""
    rows, layout = problem.rows, problem.layout
    states = parameters.states.evaluate(rows.u_bar, layout.lags, layout.lengths)
    x_hat, moved = regressors(states.mu, rows.u_bar, layout.lags, layout.lengths), []
    for mean, layer in zip(x_hat, parameters.layers, strict=True):
        zeta = draw_inducing_inputs(problem.spec.recipe, np.asarray(mean), len(layer.zeta), rng)
        moved.append(replace(layer, zeta=zeta))
    return replace(parameters, layers=tuple(moved))
