"""Fit of one configuration with its calibration, of several seeds, and refit: what models/rgp.py forwards to.

Several seeds are fitted in turn, in processes, on a cluster, or batched on an accelerator.

A refit starts at the trained parameters. The latent states of all records are inferred by the trained model
(simulation/smoothing.py), so it needs to know nothing of the records that it was fitted to before.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import jax
import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.quality import warn_about_quality
from revarb.data.series import Series, as_records
from revarb.data.training_records import shorten_records
from revarb.data.windows import current_windows, input_windows_after, map_blocks
from revarb.errors import ComputationError, InputError, RevarbError, check_integer, check_seed, warn_user
from revarb.fitting.arx import fit_rows
from revarb.fitting.batched_fits import fit_batched
from revarb.fitting.calibrate import calibrate, count_calibration_steps
from revarb.fitting.held_out import cut_held_out_blocks
from revarb.fitting.initial_values import initialise_means
from revarb.fitting.lbfgs import Optimum
from revarb.fitting.problem import (
    Problem,
    Report,
    Task,
    TaskRows,
    build_task_rows,
    fill_blocks,
    initialise,
    make_plan,
    make_preprocessor,
    make_problem,
    prepare,
)
from revarb.fitting.weight_path import (
    build_model,
    count_steps,
    make_scipy_optimiser,
    raise_weights,
    show_progress,
    solve,
)
from revarb.gp.layer import inverse_softplus
from revarb.models.base import Fitted
from revarb.models.configuration import check_flag
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.recipe import Status
from revarb.models.rgp import RGP
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.journal import Journal
from revarb.runtime.machine import collect_versions, count_devices
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_lines
from revarb.runtime.unfinished import Checkpoint, discard_journals, make_checkpoints
from revarb.runtime.workers import (
    TaskReport,
    check_jobs,
    count_workers,
    is_cluster_set,
    run_in_processes,
    run_in_turn,
    stop_on_interrupt,
)
from revarb.simulation.filtering import smooth_means
from revarb.simulation.moments import observe_independent
from revarb.simulation.starts import make_standard_start
from revarb.variational.noise import StudentNoise, make_noise
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates

Outcome = FittedRGP | RevarbError  # a member, or the error of its fit: the other members are kept

SHARE = 5  # a refit has one iteration for every five of a fit from scratch
MUCH_MORE = 1.5  # times the rows of the first fit: with twice as many on Drive its error is 0.39 instead of 0.27
MAX_SHIFT, MAX_RATIO = 1.0, 2.0  # by which a mean may move, in standard deviations, and a standard deviation grow


@with_numerics
def fit_rgp(spec: RGP, train: Series | Sequence[Series], seed: int, progress: bool, resume: bool) -> FittedRGP:
    """Train `spec` on one record or several; see `RGP.fit`."""
    seed, task = check_seed(seed), prepare(spec, as_records(train))
    warn_about_quality(as_records(train))
    [checkpoint] = _locate_checkpoints(task, [seed], resume)
    with show_progress("fitting", _count_all_steps(task), progress) as report:
        model = fit_task(task, seed, checkpoint, report)
    if model.status is not Status.INTERRUPTED:
        discard_journals([checkpoint])
    return model


@with_numerics
def fit_task(task: Task, seed: int, checkpoint: Checkpoint | None, report: Report) -> FittedRGP:
    """Fit the model of a task, and calibrate it if the task has blocks to hold out."""
    with Journal(checkpoint) as journal:
        model = calibrate(solve(initialise(task, seed), "fit", report, journal), task, report, journal)
        if model.status is Status.INTERRUPTED:
            journal.keep()
    return model


def _count_all_steps(task: Task) -> int:
    return count_steps(task.spec) + count_calibration_steps(task)


def _locate_checkpoints(task: Task, seeds: Sequence[int], resume: bool) -> list[Checkpoint | None]:
    # By a digest of configuration, seed, records and versions. Of records that are cut into blocks, the other rows have
    # an effect on the scaling only.
    data, scaling = hashlib.sha256(), vars(task.preprocessor.scaling).values()
    for values in (*scaling, *(values for record in task.records for values in (record.u, record.y))):
        data.update(f"{values.shape}".encode() + values.tobytes())
    fits = [json.dumps([task.spec.to_dict(), seed, data.hexdigest(), collect_versions()]) for seed in seeds]
    return make_checkpoints([hashlib.sha256(fit.encode()).hexdigest() for fit in fits], resume)


@with_numerics
def fit_restarts(
    spec: RGP,
    train: Series | Sequence[Series],
    seed: int,
    restarts: int,
    jobs: int | None,
    progress: bool,
    resume: bool,
) -> Ensemble:
    """Fit `spec` with the seeds seed, seed + 1, …; see `RGP.fit(restarts=…)`.

    Journals of finished members are kept until all members have finished: a resumed call replays them.
    """
    first = check_seed(seed)
    seeds = range(first, check_seed(first + check_integer("restarts", restarts, least=1) - 1) + 1)
    jobs, task = check_jobs(jobs), prepare(spec, as_records(train))
    warn_about_quality(as_records(train))
    checkpoints = _locate_checkpoints(task, seeds, resume)
    lines = progress_lines([f"seed {seed}" for seed in seeds], _count_all_steps(task), progress)
    with lines as update, capture_interrupts(raise_after=1) as pressed:
        tasks = [(task, seed, checkpoint) for seed, checkpoint in zip(seeds, checkpoints, strict=True)]
        outcomes = list(_fit_all(tasks, jobs, update, pressed))
    ensemble = _build_ensemble(outcomes, len(seeds), interrupted=bool(pressed))
    if len(outcomes) == len(seeds) and ensemble.status is not Status.INTERRUPTED:
        discard_journals(checkpoints)
    return ensemble


def _fit_all(
    tasks: Sequence[tuple[Task, int, Checkpoint | None]], jobs: int | None, report: TaskReport, pressed: Sequence[int]
) -> Iterator[Outcome]:
    if not is_cluster_set():
        if jax.default_backend() != "cpu" and count_devices() == 1:
            stoppable = stop_on_interrupt(report, pressed)
            return iter(fit_batched(tasks[0][0], [seed for _, seed, _ in tasks], stoppable))
        if count_workers(jobs) == 1:
            return (member for _, member in run_in_turn(fit_task, tasks, report, pressed))
    if count_devices() > 1:
        raise InputError("a mesh cannot be shared with other processes; use jobs=1 and no cluster inside set_mesh")
    return (member for _, member in run_in_processes(fit_task, tasks, jobs, report, pressed, lost="restarts"))


def _build_ensemble(outcomes: Sequence[Outcome], wanted: int, interrupted: bool) -> Ensemble:
    members = [outcome for outcome in outcomes if isinstance(outcome, FittedRGP)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, RevarbError)]
    if not members and failures:
        raise failures[0]
    if not members and interrupted:
        raise KeyboardInterrupt  # before the first step of any member
    if not members:
        raise ComputationError("no fit was completed: the worker processes died (out of memory?); use fewer jobs")
    for failure in failures:
        warn_user(f"a restart was left out: {failure}")
    ensemble = Ensemble.from_members(members)
    if interrupted:
        return replace(ensemble, status=Status.INTERRUPTED)
    if len(outcomes) < wanted:
        warn_user(f"only {len(outcomes)} of {wanted} fits were completed: workers died (out of memory?)")
    return ensemble


@with_numerics
def refit_rgp(model: FittedRGP, train: Series | Sequence[Series], progress: bool, calibrated: bool) -> FittedRGP:
    """Train a model on more records; see `FittedRGP.refit`."""
    records = as_records(train)
    task = prepare_refit(model, records, calibrated)
    warn_about_quality(records)
    _warn_about_growth(model, records)
    iterations = -(-sum(model.spec.recipe.iterations) // SHARE)
    total = _count_all_steps(task) if calibrated else iterations
    with show_progress("refitting", total, progress) as report:
        problem = start_at(model, task)
        found = build_model(problem, optimise_again(problem, iterations, report))
        # Its scaling is that of the model, so the calibration of the model still has the right units.
        kept = replace(found, choice=model.choice, calibration=model.calibration)
        return calibrate(kept, task, report, Journal())


def _warn_about_growth(model: FittedRGP, records: Sequence[Series]) -> None:
    # Before it starts: a refit stays near the optimum of the first fit.
    known, rows = sum(model.lengths), sum(map(len, records))
    if rows > MUCH_MORE * known:
        warn_user(
            f"the records have {rows} rows, but the model was fitted to {known}: a refit stays near its first optimum, "
            "and a new fit of all records is often clearly better"
        )


@with_numerics
def refit_arx(model: FittedARX, train: Series | Sequence[Series]) -> FittedARX:
    """Fit a linear model of the same order to more records by least squares; see `FittedARX.refit`."""
    records = as_records(train)
    _check_columns(model, records)
    warn_about_quality(records)
    prep = _keep_scaling(model.preprocessor, Preprocessor.from_records(records, model.order))
    found = FittedARX.from_records(records, prep, fit_rows(prep, records), model.residual_std, model.seed)
    return replace(found, horizon_std=model.horizon_std, choice=model.choice)


def _check_columns(model: Fitted, records: Sequence[Series]) -> None:
    for record in records:
        model.preprocessor.check_window(record)


def prepare_refit(model: FittedRGP, records: Sequence[Series], calibrated: bool) -> Task:
    """Check the records against the model, shorten long ones, and cut held-out blocks for a new calibration."""
    if model.spec.recognition is not None:
        raise InputError("a model with recognition networks cannot be refitted; fit it again: model.spec.fit(records)")
    check_flag("calibrate", calibrated)
    _check_columns(model, records)
    prep = _keep_scaling(model.preprocessor, make_preprocessor(model.spec, records))
    short = shorten_records(records, prep.order, model.spec.recipe.max_rows)
    blocks = tuple(cut_held_out_blocks(short.records, prep)) if calibrated else ()
    return Task(model.spec, short.records, prep, blocks, short.last)


def _keep_scaling(known: Preprocessor, new: Preprocessor) -> Preprocessor:
    # Lengthscales, inducing inputs and noises are in units of this scaling.
    ours, theirs = known.scaling, new.scaling
    names = (*known.input_names, *known.output_names)
    mean, std = (np.concatenate(each) for each in ((ours.u_mean, ours.y_mean), (ours.u_std, ours.y_std)))
    shift = np.abs(np.concatenate([theirs.u_mean, theirs.y_mean]) - mean) / std
    far = (shift > MAX_SHIFT) | (np.concatenate([theirs.u_std, theirs.y_std]) / std > MAX_RATIO)
    if far.any():
        warn_user(
            f"{names[int(np.argmax(far))]!r} is far from where it was in the records that the model was fitted to; "
            "model.spec.fit(records) fits from scratch, in units of the new records"
        )
    return replace(new, scaling=ours, input_names=known.input_names, output_names=known.output_names, dt=known.dt)


def start_at(model: FittedRGP, task: Task) -> Problem:
    """The fit of a task, from the parameters of a trained model."""
    built, trained = build_task_rows(task), model.trained.parameters
    assert isinstance(trained.states, FreeStates)
    states = infer_states(model, task.preprocessor, built.records)
    if task.spec.recipe.keeps_states:
        _, filled = fill_blocks(task.preprocessor, built)
        states = replace(states, mu=tuple(_keep_at_outputs(filled, np.asarray(x)) for x in states.mu))
    noise = None if trained.noise is None else _weigh(model, built, states, trained.noise)
    return make_problem(task, model.seed, built, Parameters(trained.layers, states, trained.priors, noise))


def infer_states(model: FittedRGP, prep: Preprocessor, records: Sequence[Series]) -> FreeStates:
    """Infer the latent states of records, with the typical variance of the trained ones.

    That variance is the recipe's own where variances are fixed.
    """
    trained = model.trained.parameters.states
    assert isinstance(trained, FreeStates)
    layers = zip(*(_infer_means(model, prep, record) for record in records), strict=True)
    mu = tuple(np.concatenate(layer) for layer in layers)
    typical = [inverse_softplus(np.exp(np.mean(np.log(np.asarray(lam)), axis=0))) for lam in trained.lam]
    return FreeStates(mu, tuple(np.tile(raw, (len(mean), 1)) for raw, mean in zip(typical, mu, strict=True)))


def _infer_means(model: FittedRGP, prep: Preprocessor, record: Series) -> list[Float64[np.ndarray, "P _"]]:
    # From the first sample; the states of a fit begin L samples before its first row.
    start = make_standard_start(prep, model.trained.chain)
    u_bar = input_windows_after(start.past_u, prep.scaling.inputs(record.u), prep.order)
    means = smooth_means(model.trained.chain, start, u_bar, prep.scaling.outputs(record.y))
    return [mean[prep.order.first_row - prep.order.lags :] for mean in means]


def _keep_at_outputs(filled: Sequence[Float64[np.ndarray, "_ Dy"]], inferred: np.ndarray) -> np.ndarray:
    # Where the states of a fit are kept. Principal components of these records can have other means, sizes, signs and
    # another order than those of the trained layers: the affine map to these is that of least squares.
    start = initialise_means(filled, inferred.shape[1])
    if len(filled[0][0]) == 1:
        return start
    start = np.column_stack([start, np.ones(len(start))])
    return start @ np.linalg.lstsq(start, inferred)[0]


def _weigh(model: FittedRGP, built: TaskRows, states: FreeStates, noise: StudentNoise) -> StudentNoise:
    # The best weights of all samples (Eq. 52), given the outputs of the trained model at these states.
    chain, lengths, measured = model.trained.chain, built.layout.lengths, built.rows.measured
    windows = [map_blocks(current_windows, x[-1], chain.lags, lengths) for x in (states.mu, states.lam)]
    y = observe_independent(replace(chain, degrees=None), *(np.asarray(each) for each in windows))
    squares = (np.asarray(built.rows.y) - y.mean) ** 2 + y.variance - chain.last_layer.sigma2
    counted = 1.0 if measured is None else np.asarray(measured)
    weighted = make_noise(counted * squares / chain.last_layer.sigma2, float(noise.degrees))
    return replace(noise, log_rate=np.asarray(weighted.log_rate))


def optimise_again(problem: Problem, iterations: int, report: Report) -> Optimum:
    """Maximise the bound from a trained start; with the free-run term, at its full weight, if the model has one."""
    plan, recipe = make_plan(problem), problem.spec.recipe
    plan = plan._replace(phases=[plan.phases[-1]._replace(iterations=iterations)])
    optimise = make_scipy_optimiser(problem, report, Journal(), "refit", shared=True)
    [found] = optimise(recipe.free_run_weight, [plan.start], [plan.phases], 1)
    if isinstance(found, RevarbError) and recipe.free_run_weight > 0.0:
        # The runs diverge at the start: as in a fit from scratch, the weight rises from zero.
        *_, (_, [found]) = raise_weights(recipe, [plan], optimise)
    if isinstance(found, RevarbError):
        raise found
    assert found is not None  # a single fit that has ended ends the iteration
    return found
