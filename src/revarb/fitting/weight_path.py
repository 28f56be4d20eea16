"""The optimisation of a fit: the stages of the recipe, then rising weights of the free-run term; the model at the end.

`raise_weights` is the algorithm, over a function that optimises starts at one weight: SciPy's L-BFGS-B for a single fit
(here), or the batched L-BFGS for an accelerator (batched_fits.py). A `WeightPath` has the models of all weights.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np

from revarb.data.series import Series
from revarb.errors import ComputationError, RevarbError
from revarb.fitting.held_out import HeldOutBlock, mask_fold
from revarb.fitting.lbfgs import Optimum, Phase, Vector, maximise
from revarb.fitting.networks import train_networks
from revarb.fitting.objective import make_objective, weigh_at
from revarb.fitting.problem import (
    Plan,
    Problem,
    Report,
    Task,
    initialise,
    make_plan,
    make_preprocessor,
    pad_problem,
    remove_padding,
)
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.model_file import Trained
from revarb.models.recipe import Recipe, Status, Step
from revarb.models.rgp import RGP
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.journal import Journal
from revarb.runtime.machine import replicate_results
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.runtime.progress import progress_bar
from revarb.simulation.chain import Chain, StartState
from revarb.variational.bound import compute_posteriors
from revarb.variational.parameters import Parameters, get_form, unflatten
from revarb.variational.states import FreeStates, RecognisedStates

Found = Optimum | RevarbError
"""The optimum of a fit, or the error where it is not finite at its start."""

OptimiseStarts = Callable[[float, Sequence[Vector], Sequence[Sequence[Phase]], int], Sequence[Found]]
"""A function that optimises fits at a weight of the free-run term, from their starts and in phases of their own.

The last argument is the number of the first phase among all stages. The bounds that it finds are without the term.
"""


def raise_weights(
    recipe: Recipe, plans: Sequence[Plan], optimise: OptimiseStarts
) -> Iterator[tuple[float, list[Found | None]]]:
    """Optimise fits without the free-run term, then at each of its rising weights from the optimum before.

    Yields every weight with what was found for each fit. A fit ends where its runs diverge at the best point so far,
    which is then found once more, and after Ctrl-C or an error; from the next weight on it is None.
    """
    starts, phases = [plan.start for plan in plans], [plan.phases for plan in plans]
    found = list(optimise(0.0, starts, phases, 1))
    yield 0.0, [*found]
    last = [[each[-1]._replace(iterations=recipe.free_run_iterations)] for each in phases]
    for stage, weight in enumerate(recipe.free_run_weights, start=len(phases[0]) + 1):
        continued = [isinstance(each, Optimum) and each.status not in _ENDED for each in found]
        if not any(continued):
            return
        starts = [
            each.vector if isinstance(each, Optimum) else start for each, start in zip(found, starts, strict=True)
        ]
        for member, later in enumerate(optimise(weight, starts, last, stage)):
            if continued[member]:
                found[member] = _append(found[member], later)
        yield weight, [each if goes_on else None for each, goes_on in zip(found, continued, strict=True)]


_ENDED = (Status.INTERRUPTED, Status.NOT_FINITE)


def _append(before: Found, later: Found) -> Optimum:
    assert isinstance(before, Optimum)
    if isinstance(later, RevarbError):  # the runs diverge at the start
        return before._replace(status=Status.NOT_FINITE)
    return later._replace(history=(*before.history, *later.history))


def optimise_alone(
    problem: Problem, report: Report, journal: Journal, name: str = "fit", *, shared: bool = False
) -> Iterator[tuple[float, Optimum]]:
    """Optimise one fit by SciPy's L-BFGS-B; yield the weights of the free-run term, from zero, and their optima.

    With `shared`, stages, weights, and folds share one compiled program: that of the free-run term.
    """
    optimise = make_scipy_optimiser(problem, report, journal, name, shared=shared)
    for weight, [found] in raise_weights(problem.spec.recipe, [make_plan(problem)], optimise):
        if isinstance(found, RevarbError):
            raise found
        assert found is not None  # a single fit that has ended ends the iteration
        yield weight, found


def make_scipy_optimiser(
    problem: Problem, report: Report, journal: Journal, name: str, *, shared: bool
) -> OptimiseStarts:
    """Make the function that optimises one fit at a weight; evaluations in the journal are replayed."""
    settings = make_plan(problem).settings

    def optimise(
        weight: float, starts: Sequence[Vector], phases: Sequence[Sequence[Phase]], first_stage: int
    ) -> list[Found]:
        [start], [own] = starts, phases
        if weight == 0.0:
            objective = journal.wrap_objective(name, make_objective(problem, problem.runs if shared else None))
        else:
            objective = make_objective(problem, weigh_at(problem, start), weight)
            objective = journal.wrap_objective(f"{name}, free run", objective)
        try:
            best = maximise(objective, start, own, settings, make_step_report(problem.spec, report), first_stage)
        except ComputationError as error:
            return [error]
        if weight > 0.0:  # by the program of all weights: nothing more to compile
            best = best._replace(bound=make_objective(problem, problem.runs)(best.vector)[0])
        return [best]

    return optimise


def solve(problem: Problem, name: str, report: Report, journal: Journal) -> FittedRGP:
    """Optimise a prepared fit and build its model; evaluations in the journal are replayed."""
    problem = train_networks(problem, report, journal)
    *_, (_, optimum) = optimise_alone(problem, report, journal, name)
    return build_model(problem, optimum)


_compute_posteriors = jax.jit(replicate_results(compute_posteriors), static_argnames="layout")


def build_model(problem: Problem, optimum: Optimum) -> FittedRGP:
    """Build the model at the optimum."""
    spec, layout = problem.spec, problem.layout
    found = unflatten(optimum.vector, get_form(problem.start))
    with capture_interrupts():  # an exception here would lose the result
        layers = jax.tree.map(np.asarray, _compute_posteriors(found, problem.rows, layout=layout))
        states = jax.tree.map(np.asarray, found.states.evaluate(problem.rows.u_bar, layout.lags, layout.lengths))
    noise = None if found.noise is None else jax.tree.map(np.asarray, found.noise)
    parameters, lengths = remove_padding(Parameters(found.layers, states, found.priors, noise), problem.rows, layout)
    assert isinstance(parameters.states, FreeStates)  # evaluated above
    networks = found.states.networks if isinstance(found.states, RecognisedStates) else None
    chain = Chain(layers[:-1], layers[-1], spec.lags, None if noise is None else np.asarray(noise.degrees))
    return FittedRGP(
        preprocessor=problem.preprocessor,
        status=optimum.status,
        seed=problem.seed,
        spec=spec,
        trained=Trained(parameters, chain, _collect_final_states(parameters.states, problem), networks),
        lengths=lengths,
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


@contextmanager
def show_progress(title: str, steps: int, shown: bool) -> Iterator[Report]:
    """Yield a report for a progress bar; the first Ctrl-C ends the fit after the current step, a second one at once."""
    with progress_bar(title, steps, shown) as update, capture_interrupts(raise_after=1) as pressed:

        def report(done: int, text: str) -> None:
            update(done, text)
            if pressed:
                raise KeyboardInterrupt

        yield report


ALL = -1  # in place of a fold: nothing is left out


class WeightPath(NamedTuple):
    """One model per weight of the free-run term, in rising order, and the time they took.

    There are fewer models than weights where the runs diverged, and none after Ctrl-C.
    """

    models: tuple[FittedRGP, ...]
    seconds: float


@with_numerics
def fit_whole_path(
    spec: RGP, records: Sequence[Series], blocks: Sequence[HeldOutBlock], fold: int, seed: int, report: Report
) -> WeightPath:
    """Fit the records without one fold, at weight 0 and at all of the recipe's weights: a task for a process."""
    started = time.perf_counter()
    try:
        problem = initialise_fold(spec, records, blocks, fold, seed)
        path = optimise_alone(problem, report, Journal(), shared=True)
        models = tuple(build_at(problem, optimum, weight) for weight, optimum in path)
    except KeyboardInterrupt:
        models = ()
    return WeightPath(models, time.perf_counter() - started)


def initialise_fold(
    spec: RGP, records: Sequence[Series], blocks: Sequence[HeldOutBlock], fold: int, seed: int
) -> Problem:
    """The fit of the records without one fold, in the same shape for all folds, for `ALL` and for similar lengths."""
    masked = list(records) if fold == ALL else mask_fold(records, blocks, fold)
    prep = make_preprocessor(spec, masked)
    return pad_problem(_mark_measured(initialise(Task(spec, tuple(masked), prep, tuple(blocks)), seed)))


def _mark_measured(problem: Problem) -> Problem:
    # Without a gap: a mask all the same, so that the fit to all rows shares the program of the folds.
    if problem.rows.measured is not None:
        return problem
    measured = np.ones((len(problem.rows.y), 1), dtype=bool)
    groups = (tuple(range(problem.rows.y.shape[1])),)
    return problem._replace(
        rows=problem.rows._replace(measured=measured), layout=problem.layout._replace(groups=groups)
    )


def build_at(problem: Problem, optimum: Optimum, weight: float) -> FittedRGP:
    """Build the model at the optimum of a weight of the free-run term; Ctrl-C raises KeyboardInterrupt."""
    if optimum.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    recipe = replace(problem.spec.recipe, free_run_weight=weight)
    return replace(build_model(problem, optimum), spec=replace(problem.spec, recipe=recipe))
