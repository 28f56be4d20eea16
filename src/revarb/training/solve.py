"""Optimisation of a prepared fit in stages, and the model at the optimum."""

from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np

from revarb.config.rgp import RGP
from revarb.errors import ComputationError
from revarb.models.fitted_rgp import FittedRGP, Trained
from revarb.optim.journal import Journal
from revarb.optim.lbfgs import Optimum, Vector, maximise
from revarb.optim.status import Status, Step
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.mesh import replicate_results
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState
from revarb.training.free_run import FreeRuns, weigh_runs
from revarb.training.network_training import run_adam_rounds, start_networks
from revarb.training.objective import make_objective, make_penalised_objective
from revarb.training.padding import remove_padding
from revarb.training.problem import Problem, Report, make_plan
from revarb.variational.bound import compute_posteriors
from revarb.variational.networks import RecognisedStates
from revarb.variational.parameters import Parameters, get_form, unflatten
from revarb.variational.states import FreeStates


def solve(problem: Problem, name: str, report: Report, journal: Journal) -> FittedRGP:
    """Optimise a prepared fit and build its model; evaluations in the journal are replayed."""
    problem = train_networks(problem, report, journal)
    objective = journal.wrap_objective(name, make_objective(problem))
    optimum = maximise(objective, *make_plan(problem), make_step_report(problem.spec, report))
    for _, later in raise_weights(problem, optimum, name, report, journal):
        optimum = later
    return build_model(problem, optimum)


def raise_weights(
    problem: Problem, optimum: Optimum, name: str, report: Report, journal: Journal
) -> Iterator[tuple[float, Optimum]]:
    """Go on with the free-run term from the optimum without it; yield each of the rising weights and its optimum.

    Ends early after Ctrl-C, and where the runs diverge at the best point so far. `bound` is without the term.
    """
    if problem.runs is None:
        return
    _, (*_, phase), settings = make_plan(problem)
    phase = phase._replace(iterations=problem.spec.recipe.free_run_iterations)
    bound = make_penalised_objective(problem, problem.runs, 0.0)  # the program of all weights: nothing more to compile
    for weight in problem.spec.recipe.free_run_weights:
        if optimum.status in (Status.INTERRUPTED, Status.NOT_FINITE):
            return
        runs = weigh_at(problem, optimum.vector)
        objective = journal.wrap_objective(f"{name}, free run", make_penalised_objective(problem, runs, weight))
        stage = 1 + max((step.stage for step in optimum.history), default=len(problem.spec.recipe.stages))
        history = list(optimum.history)

        def record(step: Step, stage: int = stage, history: list[Step] = history) -> None:
            history.append(step._replace(stage=stage))
            make_step_report(problem.spec, report)(history[-1])

        try:
            best = maximise(objective, optimum.vector, [phase], settings, record)
        except ComputationError:  # the runs diverge at the start
            yield weight, optimum._replace(status=Status.NOT_FINITE)
            return
        optimum = Optimum(best.vector, bound(best.vector)[0], best.status, tuple(history))
        yield weight, optimum


def weigh_at(problem: Problem, vector: Vector) -> FreeRuns:
    """The free runs of a problem; with Student-t noise, weighted as the bound weighs their samples at this point."""
    assert problem.runs is not None
    noise = unflatten(vector, get_form(problem.start)).noise
    return problem.runs if noise is None else weigh_runs(problem.runs, np.asarray(noise.weights))


def train_networks(problem: Problem, report: Report, journal: Journal) -> Problem:
    """Train the recognition model by Adam; without one the problem is returned unchanged."""
    recognition, recipe = problem.spec.recognition, problem.spec.recipe
    if recognition is None:
        return problem
    rng = np.random.default_rng([problem.seed, 1])  # independent of the numbers drawn for the start values
    rows, layout, free_form = problem.rows, problem.layout, problem.start
    if recognition.start == "free-form":
        objective = journal.wrap_objective("free form", make_objective(problem))
        optimum = maximise(objective, *make_plan(problem), lambda step: report(0, f"free form: bound {step.bound:.1f}"))
        free_form = unflatten(optimum.vector, get_form(problem.start))
    starts = start_networks(recognition, free_form, rows, layout, problem.preprocessor.order, rng, journal)
    return problem._replace(start=run_adam_rounds(recognition, recipe, starts, rows, layout, rng, report, journal))


def count_steps(spec: RGP) -> int:
    """Count the steps of one fit, at most: those of Adam, if there are networks, and of L-BFGS-B."""
    return _count_adam_steps(spec) + sum(spec.recipe.iterations)


def make_step_report(spec: RGP, report: Report) -> Callable[[Step], None]:
    """Make a report for L-BFGS-B that counts its steps as steps of the whole fit."""

    def report_step(step: Step) -> None:
        steps_before = sum(spec.recipe.iterations[: step.stage - 1])
        report(_count_adam_steps(spec) + steps_before + step.iteration, f"bound {step.bound:.1f}")

    return report_step


def _count_adam_steps(spec: RGP) -> int:
    return spec.recognition.steps if spec.recognition else 0


_compute_posteriors = jax.jit(replicate_results(compute_posteriors), static_argnames="layout")


def build_model(problem: Problem, optimum: Optimum) -> FittedRGP:
    """Build the model at the optimum."""
    spec, layout = problem.spec, problem.layout
    found = unflatten(optimum.vector, get_form(problem.start))
    with capture_interrupts():  # an exception here would lose the result
        layers = jax.tree.map(np.asarray, _compute_posteriors(found, problem.rows, layout=layout))
        states = jax.tree.map(np.asarray, found.states.evaluate(problem.rows.u_bar, layout.lags, layout.lengths))
    noise = None if found.noise is None else jax.tree.map(np.asarray, found.noise)
    kept = remove_padding(Parameters(found.layers, states, found.priors, noise), problem.rows, layout)
    assert isinstance(kept.parameters.states, FreeStates)  # evaluated above
    networks = found.states.networks if isinstance(found.states, RecognisedStates) else None
    chain = Chain(layers[:-1], layers[-1], spec.lags, None if noise is None else np.asarray(noise.degrees))
    return FittedRGP(
        preprocessor=problem.preprocessor,
        status=optimum.status,
        seed=problem.seed,
        spec=spec,
        trained=Trained(kept.parameters, chain, _collect_final_states(kept.parameters.states, problem), networks),
        lengths=kept.lengths,
        bound=optimum.bound,
        history=optimum.history,
    )


def _collect_final_states(states: FreeStates, problem: Problem) -> tuple[StartState, ...]:
    lags = problem.layout.lags
    return tuple(
        StartState(_join_windows(states.mu, end, lags), np.diag(_join_windows(states.lam, end, lags)), u)
        for end, u in zip(problem.ends, problem.past_u, strict=True)
    )


def _join_windows(layers: Sequence[AnyArray], end: int, lags: int) -> np.ndarray:
    # The joint state of simulation/chain.py: the windows of all layers, newest state first.
    return np.concatenate([np.ravel(np.asarray(x)[end - lags : end][::-1]) for x in layers])
