"""A prepared fit: checked records, training rows padded to common shapes, start values and stages."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float64, Int

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.training_records import mark_outliers, mask_outliers, shorten_records
from revarb.data.windows import Order, split_rows
from revarb.errors import InputError, warn_user
from revarb.fitting.free_run import FreeRuns, cut_cold_runs, cut_runs_from_states
from revarb.fitting.held_out import HeldOutBlock, cut_held_out_blocks
from revarb.fitting.initial_values import (
    initialise_means,
    initialise_noise,
    initialise_parameters,
    simulate_gaps,
    start_linear_parts,
)
from revarb.fitting.lbfgs import Phase, Settings, Vector
from revarb.gp.layer import Linear
from revarb.models.rgp import RGP
from revarb.runtime.machine import on_host
from revarb.runtime.numerics import AnyArray, pad_rows, round_up_rows
from revarb.variational.bound import Layout, Rows
from revarb.variational.parameters import Parameters, select_entries

Report = Callable[[int, str], None]
"""A function that takes the number of steps done and a text, for a progress bar; KeyboardInterrupt stops the fit."""


# Settled on the development set (docs/design/decisions): the time of a fit grows with the square of inducing inputs.
SAMPLES_PER_INDUCING = 4
FEW_INDUCING = 50  # enough for the shortest records


class Task(NamedTuple):
    """A configuration and the records it is fitted to, checked once for all seeds.

    `blocks` are held out in turn for the calibration; empty without calibration or if the records are too short.
    Where the records are blocks of longer ones, `last` has the numbers of those that end one; None: not cut yet.
    """

    spec: RGP
    records: tuple[Series, ...]
    preprocessor: Preprocessor
    blocks: tuple[HeldOutBlock, ...]
    last: tuple[int, ...] | None = None


def prepare(spec: RGP, records: Sequence[Series]) -> Task:
    """Check the records against the configuration, shorten long ones, and cut held-out blocks for the calibration."""
    order = spec.order_for(records[0].u.shape[1])
    prep = make_preprocessor(spec, records)
    short = shorten_records(records, order, spec.recipe.max_rows)
    task = Task(_limit_inducing(spec, order, short.records), short.records, prep, (), short.last)
    if not spec.calibrate:
        return task
    if not all(np.isfinite(part.y[: prep.skip]).any() for part in short.records):
        # Nothing of a part would be left where its block is masked: blocks of whole records, which are slower.
        task = task._replace(records=tuple(records), last=None)
    return task._replace(blocks=tuple(cut_held_out_blocks(task.records, prep)))


def make_preprocessor(spec: RGP, records: Sequence[Series]) -> Preprocessor:
    """The preprocessor of these records; with Student-t noise, outliers have no effect on the scaling."""
    order = spec.order_for(records[0].u.shape[1])
    if spec.noise == "gaussian":
        return Preprocessor.from_records(records, order)
    return Preprocessor.from_records(mask_if_possible(records), order)


def mask_if_possible(records: Sequence[Series]) -> Sequence[Series]:
    """The records without suspects; as they are where too little would be left: an output may be nothing but pulses."""
    masked = mask_outliers(records)
    try:
        Standardiser.from_records(masked)
    except InputError:
        return records
    return masked


def count_enough_inducing(records: Sequence[Series]) -> int:
    """The number of inducing inputs beyond which held-out errors on these records do not fall."""
    return max(FEW_INDUCING, sum(len(record) for record in records) // SAMPLES_PER_INDUCING)


def _limit_inducing(spec: RGP, order: Order, records: Sequence[Series]) -> RGP:
    rows = sum(len(record) - order.first_row for record in records)
    if spec.inducing <= rows:
        return spec
    warn_user(f"inducing={spec.inducing}, but there are only {rows} training rows: using {rows}")
    return replace(spec, inducing=rows)


class Problem(NamedTuple):
    """A fit with its rows and start values."""

    spec: RGP
    seed: int
    preprocessor: Preprocessor
    start: Parameters
    rows: Rows
    layout: Layout
    ends: tuple[int, ...]  # where each record ends in the stacked states, for simulations that continue it
    past_u: tuple[np.ndarray, ...]  # the last inputs of each record, z-scored
    runs: FreeRuns | None = None  # of the free-run term


class TaskRows(NamedTuple):
    """The training rows of a task, and what they were made from."""

    records: tuple[Series, ...]
    last: tuple[int, ...]  # the numbers of the records, or blocks, that end where a given record ends
    rows: Rows
    layout: Layout
    y_blocks: list[np.ndarray]  # outputs at the times of each record's states, NaN if missing or suspected


@on_host()
def initialise(task: Task, seed: int) -> Problem:
    """Choose the start values with random numbers from `seed`; long records are represented by blocks of them."""
    spec, built = task.spec, build_task_rows(task)
    u_blocks, filled = fill_blocks(task.preprocessor, built)
    mu = tuple(initialise_means(filled, dim) for dim in spec.latent_dims)
    linear: Sequence[Linear | None] = (None,) * (spec.hidden + 1)
    if spec.linear:
        linear = start_linear_parts(task.preprocessor.order, u_blocks, built.y_blocks, mu)
    start = initialise_parameters(spec, mu, linear, built.rows, built.layout, np.random.default_rng(seed))
    if spec.noise == "student-t":
        start = replace(start, noise=initialise_noise(spec, built.rows, filled))
    return make_problem(task, seed, built, start)


def fill_blocks(
    prep: Preprocessor, built: TaskRows
) -> tuple[list[Float64[np.ndarray, "_ Du"]], list[Float64[np.ndarray, "_ Dy"]]]:
    """Inputs, and outputs without gaps, at the times of the states of every record, z-scored."""
    u_blocks = [prep.scaling.inputs(each.u)[prep.order.first_row - prep.order.lags :] for each in built.records]
    return u_blocks, simulate_gaps(prep.order, u_blocks, built.y_blocks)


def build_task_rows(task: Task) -> TaskRows:
    """Build the training rows of a task, with a group for every output if its noise is Student-t."""
    records, last = task.records, task.last
    if last is None:
        records, last = shorten_records(records, task.preprocessor.order, task.spec.recipe.max_rows)
    rows, layout, y_blocks = build_rows(task.preprocessor, records, task.spec.recipe.jitter)
    if task.spec.noise == "student-t":
        rows, layout = separate_outputs(rows, layout)
        y_blocks = [np.where(marks, np.nan, y) for y, marks in zip(y_blocks, mark_outliers(y_blocks), strict=True)]
    if task.spec.recipe.keeps_states and task.spec.recognition is None:
        known = np.concatenate([_mark_known(y, layout.lags) for y in y_blocks])
        # Outliers among the states have another noise.
        exact = task.spec.linear and task.spec.latent_dims[-1] == rows.y.shape[1] and task.spec.noise == "gaussian"
        rows, layout = rows._replace(known=known), layout._replace(certain=exact and task.spec.recipe.knows_states)
        if not known.any():
            raise InputError(
                f"the recipe keeps the states at the measured outputs, but no {layout.lags + 1} rows in a row have all "
                "of them; use fewer lags, or another recipe"
            )
    return TaskRows(records, last, rows, layout, y_blocks)


def _mark_known(y: Float64[np.ndarray, "P Dy"], lags: int) -> Bool[np.ndarray, " R"]:
    # Rows whose window and target of states, kept at the outputs, are all measured.
    complete = np.isfinite(y).all(axis=1)
    return np.asarray(np.lib.stride_tricks.sliding_window_view(complete, lags + 1).all(axis=1))


def make_problem(task: Task, seed: int, built: TaskRows, start: Parameters) -> Problem:
    """The fit of a task with these rows from these start values."""
    recipe, prep, records = task.spec.recipe, task.preprocessor, built.records
    ends = tuple(np.cumsum(built.layout.lengths)[list(built.last)].tolist())
    past_u = tuple(prep.scaling.inputs(records[end].u)[len(records[end]) - prep.order.reach :] for end in built.last)
    if recipe.free_run_weight == 0.0:
        runs = None
    elif isinstance(recipe.free_run, int):
        runs = cut_runs_from_states(prep, records, recipe.free_run)
    else:
        runs = cut_cold_runs(prep, records)
    return Problem(task.spec, seed, prep, start, built.rows, built.layout, ends, past_u, runs)


def build_rows(prep: Preprocessor, records: Sequence[Series], jitter: float) -> tuple[Rows, Layout, list[np.ndarray]]:
    """Build the z-scored rows of all records, and the outputs at the times of each record's states (NaN if missing)."""
    blocks = prep.scale_records(records)
    lags, y_blocks = prep.order.lags, [block.y for block in blocks]
    rows = Rows(np.concatenate([block.u_bar for block in blocks]), np.concatenate([y[lags:] for y in y_blocks]))
    layout = Layout(lags, tuple(len(y) for y in y_blocks), jitter)
    return *mask_missing(rows, layout), y_blocks


def mask_missing(rows: Rows, layout: Layout) -> tuple[Rows, Layout]:
    """Mask missing outputs (NaN); outputs that are missing at the same rows form one group (Eq. 42)."""
    measured = ~np.isnan(rows.y)
    if measured.all():
        return rows, layout
    patterns, group_of = np.unique(measured, axis=1, return_inverse=True)
    groups = tuple(tuple(np.flatnonzero(group_of == g).tolist()) for g in range(patterns.shape[1]))
    return Rows(rows.u_bar, np.nan_to_num(rows.y), patterns), layout._replace(groups=groups)


def separate_outputs(rows: Rows, layout: Layout) -> tuple[Rows, Layout]:
    """The same rows with a group for every output: Student-t outputs have their own weights (Eq. 51)."""
    measured, columns = np.ones(rows.y.shape, dtype=bool), range(rows.y.shape[1])
    if rows.measured is not None and layout.groups is not None:
        for group, members in enumerate(layout.groups):
            measured[:, list(members)] = np.asarray(rows.measured)[:, [group]]
    return rows._replace(measured=measured), layout._replace(groups=tuple((column,) for column in columns))


class Plan(NamedTuple):
    """Arguments of the optimiser: start vector, phases and settings."""

    start: Vector
    phases: list[Phase]
    settings: Settings


def make_plan(problem: Problem) -> Plan:
    """Make the arguments of the optimiser from the start values and the recipe."""
    recipe, start = problem.spec.recipe, problem.start
    estimated = ("nu",) if problem.spec.degrees_of_freedom is None else ()
    phases = [Phase(select_entries(start, (*stage.free, *estimated)), stage.iterations) for stage in recipe.stages]
    vector = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(start)], dtype=np.float64)
    return Plan(vector, phases, Settings(recipe.memory, recipe.ftol, recipe.gtol))


def pad_problem(problem: Problem) -> Problem:
    """The same fit with rows appended to every record; which outputs were measured must be marked (`Rows.measured`).

    `ends` stay those of the records: they are positions in the states of the trained model.
    """
    rows, layout, start = problem.rows, problem.layout, problem.start
    assert rows.measured is not None
    counts = [length - layout.lags for length in layout.lengths]
    sizes = [round_up_rows(count) for count in counts]
    lengths = tuple(layout.lags + size for size in sizes)
    copied, copied_states = _copy_last(counts, sizes), _copy_last(layout.lengths, lengths)
    inside = np.concatenate([np.arange(size) < count for count, size in zip(counts, sizes, strict=True)])
    measured = np.asarray(rows.measured)[copied] & inside[:, None]
    known = None if rows.known is None else np.asarray(rows.known)[copied]
    padded = Rows(rows.u_bar[copied], rows.y[copied], measured, inside, known)
    states = jax.tree.map(lambda values: values[copied_states], start.states)
    noise = None if start.noise is None else replace(start.noise, log_rate=start.noise.log_rate[copied])
    layout = layout._replace(lengths=lengths)
    runs = None if problem.runs is None else _pad_runs(problem.runs, inside, _mark_states(inside, layout))
    return problem._replace(start=replace(start, states=states, noise=noise), rows=padded, layout=layout, runs=runs)


def _copy_last(counts: Sequence[int], sizes: Sequence[int]) -> Int[np.ndarray, " P"]:
    # The positions that a padded array copies: appended entries are the last one of their record.
    begins = np.cumsum([0, *counts[:-1]])
    return np.concatenate([
        begin + np.minimum(np.arange(size), count - 1)
        for begin, count, size in zip(begins, counts, sizes, strict=True)
    ])  # fmt: skip


def _mark_states(inside: Bool[AnyArray, " R"], layout: Layout) -> Bool[np.ndarray, " S"]:
    # The states of the records; every block begins with the L initial ones.
    initial = np.ones(layout.lags, dtype=bool)
    parts = split_rows(np.asarray(inside), layout.lags, layout.lengths)
    return np.concatenate([each for part in parts for each in (initial, np.asarray(part))])


def _pad_runs(runs: FreeRuns, inside: Bool[np.ndarray, " R"], inside_states: Bool[np.ndarray, " S"]) -> FreeRuns:
    # Their rows and windows are positions in the padded rows and states.
    rows = np.where(np.asarray(runs.rows) < 0, -1, np.flatnonzero(inside)[runs.rows])
    windows = None if runs.windows is None else np.flatnonzero(inside_states)[runs.windows]
    return FreeRuns(pad_rows(runs.u_bar), pad_rows(runs.y), pad_rows(runs.weights), pad_rows(rows, -1), windows)


def remove_padding(parameters: Parameters, rows: Rows, layout: Layout) -> tuple[Parameters, tuple[int, ...]]:
    """The parameters without those of appended rows, and the number of states of each record."""
    if rows.inside is None:
        return parameters, layout.lengths
    inside, inside_states = np.asarray(rows.inside), _mark_states(rows.inside, layout)
    noise = parameters.noise
    parameters = replace(
        parameters,
        states=jax.tree.map(lambda values: values[inside_states], parameters.states),
        noise=None if noise is None else replace(noise, log_rate=noise.log_rate[inside]),
    )
    parts = split_rows(inside, layout.lags, layout.lengths)
    return parameters, tuple(layout.lags + int(np.sum(part)) for part in parts)
