"""Records of a fit padded to a few lengths, so that fits to records of nearby length share compiled programs.

Rows without weight are appended to the block of every record (variational/bound.py: Rows.inside). Their states have no
effect on the bound: the gradient there is zero, and they stay where they start. A trained model is without them.
"""

from collections.abc import Sequence
from dataclasses import replace

import jax
import numpy as np
from jaxtyping import Bool, Int

from revarb.data.windows import split_rows
from revarb.fitting.free_run import FreeRuns
from revarb.fitting.problem import Problem
from revarb.runtime.compilation import pad_rows, round_up_rows
from revarb.runtime.numerics import AnyArray
from revarb.variational.bound import Layout, Rows
from revarb.variational.parameters import Parameters


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
    padded = Rows(rows.u_bar[copied], rows.y[copied], measured, inside)
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
