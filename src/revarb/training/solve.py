"""Staged optimisation of a prepared fit, and the model at its optimum."""

from collections.abc import Callable, Sequence

import jax
import numpy as np

from revarb.config.rgp import RGP
from revarb.models.fitted_rgp import FittedRGP, Trained
from revarb.optim.journal import Journal
from revarb.optim.lbfgs import Optimum, maximise
from revarb.optim.status import Step
from revarb.runtime.interrupts import held_interrupts
from revarb.runtime.mesh import on_every_device
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, Start
from revarb.training.network_training import adam_rounds, recognised_starts
from revarb.training.objective import objective_of
from revarb.training.problem import Problem, plan_of
from revarb.variational.bound import Layout, layer_posteriors
from revarb.variational.networks import RecognisedStates
from revarb.variational.parameters import Parameters, form_of, unflatten
from revarb.variational.states import FreeStates

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


_posteriors = jax.jit(on_every_device(layer_posteriors), static_argnames="layout")


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
