"""A fit that is ready to begin: records as rows, start values and stages."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from revarb.config.rgp import RGP
from revarb.data.preprocessor import Frame
from revarb.data.series import Series
from revarb.optim.lbfgs import Phase, Settings, Vector
from revarb.training.initial_values import initial_parameters
from revarb.variational.bound import Layout, Rows
from revarb.variational.parameters import Parameters, flatten, free_entries


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
