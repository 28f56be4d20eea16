"""Staged optimisation of a prepared fit, and the model at its optimum."""

from collections.abc import Callable, Sequence

import jax
import numpy as np

from revarb.config.rgp import RGP
from revarb.models.fitted_rgp import FittedRGP, Trained
from revarb.optim.journal import Journal
from revarb.optim.lbfgs import Optimum, maximise
from revarb.optim.status import Step
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.mesh import replicate_results
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState
from revarb.training.network_training import run_adam_rounds, start_networks
from revarb.training.objective import make_objective
from revarb.training.problem import Problem, Report, make_plan
from revarb.variational.bound import Layout, compute_posteriors
from revarb.variational.networks import RecognisedStates
from revarb.variational.parameters import Parameters, get_form, unflatten
from revarb.variational.states import FreeStates


def solve(problem: Problem, name: str, report: Report, journal: Journal) -> FittedRGP:
    """Optimise a prepared fit and build its model; evaluations that the journal has are not repeated."""
    problem = train_networks(problem, report, journal)
    objective = journal.wrap_objective(name, make_objective(problem))
    return build_model(problem, maximise(objective, *make_plan(problem), report_steps(problem.spec, report)))


def train_networks(problem: Problem, report: Report, journal: Journal) -> Problem:
    """The problem with its recognition model trained by Adam; unchanged where there is none."""
    recognition, recipe = problem.spec.recognition, problem.spec.recipe
    if recognition is None:
        return problem
    rng = np.random.default_rng([problem.seed, 1])  # independent of the numbers drawn for the start
    rows, layout, free_form = problem.rows, problem.layout, problem.start
    if recognition.start == "free-form":
        objective = journal.wrap_objective("free form", make_objective(problem))
        optimum = maximise(objective, *make_plan(problem), lambda step: report(0, f"free form: bound {step.bound:.1f}"))
        free_form = unflatten(optimum.vector, get_form(problem.start))
    starts = start_networks(recognition, free_form, rows, layout, problem.preprocessor.order, rng, journal)
    return problem._replace(start=run_adam_rounds(recognition, recipe, starts, rows, layout, rng, report, journal))


def max_steps(spec: RGP) -> int:
    """The largest number of steps of one fit: Adam, where there are networks, and L-BFGS-B."""
    return _adam_steps(spec) + sum(stage.iterations for stage in spec.recipe.stages)


def report_steps(spec: RGP, report: Report) -> Callable[[Step], None]:
    """Translate steps of L-BFGS-B into steps of the whole fit."""

    def tell(step: Step) -> None:
        before = sum(stage.iterations for stage in spec.recipe.stages[: step.stage - 1])
        report(_adam_steps(spec) + before + step.iteration, f"bound {step.bound:.1f}")

    return tell


def _adam_steps(spec: RGP) -> int:
    return spec.recognition.steps if spec.recognition else 0


_posteriors = jax.jit(replicate_results(compute_posteriors), static_argnames="layout")


def build_model(problem: Problem, optimum: Optimum) -> FittedRGP:
    """The model at the optimum."""
    spec, layout = problem.spec, problem.layout
    found = unflatten(optimum.vector, get_form(problem.start))
    with capture_interrupts():  # an interrupt now would lose the result
        layers = jax.tree.map(np.asarray, _posteriors(found, problem.rows, layout=layout))
        states = jax.tree.map(np.asarray, found.states.evaluate(problem.rows.u_bar, layout.lags, layout.lengths))
    parameters = Parameters(found.layers, states, found.priors)
    networks = found.states.networks if isinstance(found.states, RecognisedStates) else None
    chain = Chain(layers[:-1], layers[-1], spec.lags)
    return FittedRGP(
        preprocessor=problem.preprocessor,
        status=optimum.status,
        seed=problem.seed,
        spec=spec,
        trained=Trained(parameters, chain, _final_states(states, layout, problem.past_u), networks),
        lengths=layout.lengths,
        bound=optimum.bound,
        history=optimum.history,
    )


def _final_states(states: FreeStates, layout: Layout, past_u: Sequence[np.ndarray]) -> tuple[StartState, ...]:
    ends = np.cumsum(layout.lengths).tolist()
    return tuple(
        StartState(_last_windows(states.mu, end, layout.lags), np.diag(_last_windows(states.lam, end, layout.lags)), u)
        for end, u in zip(ends, past_u, strict=True)
    )


def _last_windows(layers: Sequence[AnyArray], end: int, lags: int) -> np.ndarray:
    # Newest first, layer after layer: the joint state of simulation/chain.py.
    return np.concatenate([np.ravel(np.asarray(x)[end - lags : end][::-1]) for x in layers])
