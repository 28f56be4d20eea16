"""Refit of a trained model to more records: what `FittedRGP.refit` calls.

The fit starts at the trained parameters. The latent states of all records are inferred by the trained model
(simulation/smoothing.py), so it needs to know nothing of the records that it was fitted to before.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.quality import warn_about_quality
from revarb.data.series import Series, as_records
from revarb.data.training_records import shorten_records
from revarb.data.windows import current_windows, input_windows_after, map_blocks
from revarb.errors import InputError, RevarbError, warn_user
from revarb.fitting.calibrate import calibrate, count_calibration_steps
from revarb.fitting.held_out import cut_held_out_blocks
from revarb.fitting.lbfgs import Optimum
from revarb.fitting.problem import (
    Problem,
    Report,
    Task,
    TaskRows,
    build_task_rows,
    make_plan,
    make_preprocessor,
    make_problem,
)
from revarb.fitting.weight_path import build_model, count_steps, make_scipy_optimiser, raise_weights, show_progress
from revarb.gp.layer import inverse_softplus
from revarb.models.configuration import check_flag
from revarb.models.fitted_rgp import FittedRGP
from revarb.runtime.journal import Journal
from revarb.runtime.numerics import with_numerics
from revarb.simulation.filtering import smooth_means
from revarb.simulation.moments import observe_independent
from revarb.simulation.starts import make_cold_origin
from revarb.variational.noise import StudentNoise, make_noise
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates

SHARE = 5  # a refit has one iteration for every five of a fit from scratch
MAX_SHIFT, MAX_RATIO = 1.0, 2.0  # by which a mean may move, in standard deviations, and a standard deviation grow


@with_numerics
def refit_rgp(model: FittedRGP, train: Series | Sequence[Series], progress: bool, calibrated: bool) -> FittedRGP:
    """Train a model on more records; see `FittedRGP.refit`."""
    records = as_records(train)
    task = prepare_refit(model, records, calibrated)
    warn_about_quality(records)
    iterations = -(-sum(model.spec.recipe.iterations) // SHARE)
    total = count_steps(model.spec) + count_calibration_steps(task) if calibrated else iterations
    with show_progress("refitting", total, progress) as report:
        problem = start_at(model, task)
        found = build_model(problem, optimise_again(problem, iterations, report))
        # Its scaling is that of the model, so the calibration of the model still has the right units.
        kept = replace(found, choice=model.choice, calibration=model.calibration)
        return calibrate(kept, task, report, Journal())


def prepare_refit(model: FittedRGP, records: Sequence[Series], calibrated: bool) -> Task:
    """Check the records against the model, shorten long ones, and cut held-out blocks for a new calibration."""
    if model.spec.recognition is not None:
        raise InputError("a model with recognition networks cannot be refitted; fit it again: model.spec.fit(records)")
    check_flag("calibrate", calibrated)
    for record in records:
        model.preprocessor.check_window(record)
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
    # From a cold start at the first sample; the states of a fit begin L samples before its first row.
    cold = make_cold_origin(prep, model.trained.chain).state
    u_bar = input_windows_after(cold.past_u, prep.scaling.inputs(record.u), prep.order)
    means = smooth_means(model.trained.chain, cold, u_bar, prep.scaling.outputs(record.y))
    return [mean[prep.order.first_row - prep.order.lags :] for mean in means]


def _weigh(model: FittedRGP, built: TaskRows, states: FreeStates, noise: StudentNoise) -> StudentNoise:
    # The best weights of all samples (Eq. 52), given the outputs of the trained model at these states.
    chain, lengths, measured = model.trained.chain, built.layout.lengths, built.rows.measured
    windows = [map_blocks(current_windows, x[-1], chain.lags, lengths) for x in (states.mu, states.lam)]
    y = observe_independent(replace(chain, degrees=None), *(np.asarray(each) for each in windows))
    squares = (np.asarray(built.rows.y) - y.mean) ** 2 + y.variance - chain.last_layer.sigma2
    counted = 1.0 if measured is None else np.asarray(measured)
    weighted = make_noise(counted * squares / chain.last_layer.sigma2, float(noise.degrees))
    return StudentNoise(np.asarray(weighted.log_rate), np.asarray(noise.raw_degrees))


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
