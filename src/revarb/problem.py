"""A fit that is ready to begin, and the model at its end: rows, start, staged optimisation, posterior."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np

from revarb.adam import adam_rounds, recognised_starts
from revarb.bound import Layout, Rows, layer_posteriors, revarb_bound
from revarb.fitted import FittedRGP, Trained
from revarb.frame import Frame
from revarb.initialise import initial_parameters
from revarb.interrupts import held_interrupts
from revarb.journal import Journal
from revarb.mesh import on_every_device
from revarb.numerics import AnyArray
from revarb.optimise import Objective, Optimum, Phase, Settings, Step, Vector, maximise
from revarb.parameters import Form, Parameters, flatten, form_of, free_entries, unflatten
from revarb.recognition import RecognisedStates
from revarb.rgp import RGP
from revarb.series import Series
from revarb.simulate import Chain, Start
from revarb.states import FreeStates

Report = Callable[[int, str], None]
"""How many steps are behind, and a text."""


def solved(problem: "Problem", name: str, report: Report, journal: Journal) -> FittedRGP:
    """The whole way from a prepared fit to its model; what lies in the journal is not computed again."""
    problem = with_trained_networks(problem, report, journal)
    objective = journal.objective(name, objective_of(problem))
    return trained(problem, maximise(objective, *plan_of(problem), by_steps(problem.spec, report)))


def with_trained_networks(problem: "Problem", report: Report, journal: Journal) -> "Problem":
    """Where the model has a recognition model: the fit that begins after Adam has trained it."""
    recognition, recipe = problem.spec.recognition, problem.spec.recipe
    if recognition is None:
        return problem
    rng = np.random.default_rng([problem.seed, 1])  # apart from the numbers that the start has drawn
    rows, layout, free_form = problem.rows, problem.layout, problem.start
    if recognition.start == "free-form":
        objective = journal.objective("free form", objective_of(problem))
        optimum = maximise(objective, *plan_of(problem), lambda step: report(0, f"free form: bound {step.bound:.1f}"))
        free_form = unflatten(optimum.vector, form_of(problem.start))
    starts = recognised_starts(recognition, free_form, rows, layout, problem.frame.lags, rng, journal)
    return problem._replace(start=adam_rounds(recognition, recipe, starts, rows, layout, rng, report, journal))


class Problem(NamedTuple):
    """A fit that is ready to begin."""

    spec: RGP
    seed: int
    frame: Frame
    start: Parameters
    rows: Rows
    layout: Layout
    past_u: tuple[np.ndarray, ...]  # the last inputs of each record, z-scored: a simulation can go on from there


def affordable(spec: RGP, records: Sequence[Series]) -> RGP:
    """Check the records; where they have fewer rows than there are inducing inputs: as many, and say so."""
    lags = spec.lags_for(records[0].u.shape[1])
    Frame.of(records, lags)
    rows = sum(len(record) - lags.first for record in records)
    if spec.inducing <= rows:
        return spec
    message = f"inducing={spec.inducing}, but there are only {rows} training rows: using {rows}"
    warnings.warn(message, stacklevel=5)
    return replace(spec, inducing=rows)


def prepare(spec: RGP, records: Sequence[Series], seed: int) -> Problem:
    """Find the start."""
    frame = Frame.of(records, spec.lags_for(records[0].u.shape[1]))
    rows, layout, y_blocks = training_rows(frame, records, spec.recipe.jitter)
    rng = np.random.default_rng(seed)
    start = initial_parameters(spec.recipe, spec.latent_dims, spec.inducing, rows, y_blocks, layout, rng)
    past_u = tuple(frame.scaling.inputs(record.u)[len(record) - frame.lags.reach :] for record in records)
    return Problem(spec, seed, frame, start, rows, layout, past_u)


def training_rows(frame: Frame, records: Sequence[Series], jitter: float) -> tuple[Rows, Layout, list[np.ndarray]]:
    """The z-scored rows of all records, and the outputs at the times of each record's latent states (may be NaN)."""
    blocks = frame.blocks(records)
    lags, y_blocks = frame.lags.states, [block.y for block in blocks]
    rows = Rows(np.concatenate([block.u_bar for block in blocks]), np.concatenate([y[lags:] for y in y_blocks]))
    layout = Layout(lags, tuple(len(y) for y in y_blocks), jitter)
    return *masked(rows, layout), y_blocks


def masked(rows: Rows, layout: Layout) -> tuple[Rows, Layout]:
    """The same rows with what is missing of y (NaN) masked: outputs with the same gaps are one group."""
    seen = ~np.isnan(rows.y)
    if seen.all():
        return rows, layout
    patterns, group_of = np.unique(seen, axis=1, return_inverse=True)
    groups = tuple(tuple(np.flatnonzero(group_of == g).tolist()) for g in range(patterns.shape[1]))
    return Rows(rows.u_bar, np.nan_to_num(rows.y), patterns), layout._replace(groups=groups)


def _bound_and_gradient(vector: AnyArray, rows: Rows, form: Form, layout: Layout) -> tuple[AnyArray, AnyArray]:
    bound, gradient = jax.value_and_grad(revarb_bound)(unflatten(vector, form), rows, layout)
    return bound, flatten(gradient)


bound_and_gradient = jax.jit(on_every_device(_bound_and_gradient), static_argnames=("form", "layout"))
bounds_and_gradients = jax.jit(  # of many starts together
    on_every_device(jax.vmap(_bound_and_gradient, in_axes=(0, None, None, None))), static_argnums=(2, 3)
)
_posteriors = jax.jit(on_every_device(layer_posteriors), static_argnames="layout")


def objective_of(problem: Problem) -> Objective:
    """The bound of this fit as a function of the flat vector."""
    form = form_of(problem.start)

    def objective(vector: Vector) -> tuple[float, Vector]:
        bound, gradient = bound_and_gradient(vector, problem.rows, form=form, layout=problem.layout)
        return float(bound), np.asarray(gradient)

    return objective


class Plan(NamedTuple):
    """The recipe as the optimiser sees it."""

    start: Vector
    phases: list[Phase]
    settings: Settings


def plan_of(problem: Problem) -> Plan:
    """Where to start, and the stages of the recipe."""
    recipe, start = problem.spec.recipe, problem.start
    phases = [Phase(free_entries(start, stage.free), stage.iterations) for stage in recipe.stages]
    return Plan(np.array(flatten(start)), phases, Settings(recipe.memory, recipe.ftol, recipe.gtol))


def steps_of(spec: RGP) -> int:
    """The most steps that a fit can take: of Adam, where there are networks, and of L-BFGS-B."""
    return _adam_steps(spec) + sum(stage.iterations for stage in spec.recipe.stages)


def by_steps(spec: RGP, report: Report) -> Callable[[Step], None]:
    """A report of L-BFGS-B's steps as one of steps that are behind the fit, and a text."""

    def tell(step: Step) -> None:
        before = sum(stage.iterations for stage in spec.recipe.stages[: step.stage - 1])
        report(_adam_steps(spec) + before + step.iteration, f"bound {step.bound:.1f}")

    return tell


def _adam_steps(spec: RGP) -> int:
    return spec.recognition.steps if spec.recognition else 0


def trained(problem: Problem, optimum: Optimum) -> FittedRGP:
    """The model at the optimum."""
    spec, layout = problem.spec, problem.layout
    found = unflatten(optimum.vector, form_of(problem.start))
    with held_interrupts():  # what was found is not lost in the last second
        layers = jax.tree.map(np.asarray, _posteriors(found, problem.rows, layout=layout))
        states = jax.tree.map(np.asarray, found.states.along(problem.rows.u_bar, layout.lags, layout.lengths))
    parameters = Parameters(found.layers, states, found.priors)
    networks = found.states.networks if isinstance(found.states, RecognisedStates) else None
    chain = Chain(layers[:-1], layers[-1], spec.lags)
    return FittedRGP(
        frame=problem.frame,
        status=optimum.status,
        seed=problem.seed,
        spec=spec,
        trained=Trained(parameters, chain, _final_states(states, layout, problem.past_u), networks),
        lengths=layout.lengths,
        bound=optimum.bound,
        history=optimum.history,
    )


def _final_states(states: FreeStates, layout: Layout, past_u: Sequence[np.ndarray]) -> tuple[Start, ...]:
    ends = np.cumsum(layout.lengths).tolist()
    return tuple(
        Start(_last_windows(states.mu, end, layout.lags), np.diag(_last_windows(states.lam, end, layout.lags)), u)
        for end, u in zip(ends, past_u, strict=True)
    )


def _last_windows(layers: Sequence[AnyArray], end: int, lags: int) -> np.ndarray:
    # Newest first, layer after layer: the joint state of simulate.py.
    return np.concatenate([np.ravel(np.asarray(x)[end - lags : end][::-1]) for x in layers])
