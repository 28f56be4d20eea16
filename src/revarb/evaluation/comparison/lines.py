"""Rows of a comparison summarised over seeds: one line per model and method."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

SCORES = ("rmse", "nrmse", "nlpd", "coverage95", "fit_seconds", "simulate_seconds")  # columns that are summarised

RESIDUALS = "residuals"  # the method of models that have only one


class SeedRange(NamedTuple):
    """Smallest, median and largest value over the seeds that did not fail."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Line:
    """One model by one method over all seeds: ranges of its scores, and the reasons of the seeds that failed."""

    model: str
    method: str
    ranges: Mapping[str, SeedRange]
    seeds: int
    failures: tuple[str, ...] = ()

    @property
    def worked(self) -> int:
        """Number of seeds that did not fail."""
        return self.seeds - len(self.failures)

    @property
    def reasons(self) -> list[str]:
        """Why seeds failed: each reason once, with the number of seeds."""
        counts = Counter(self.failures)
        return [f"{count} of {self.seeds} seed(s) failed: {reason}" for reason, count in counts.items()]


def summarise(rows: Sequence[Mapping[str, Any]], scores: Sequence[str] = SCORES) -> list[Line]:
    """One line per model and method; failed seeds appear in the reasons, not in the ranges."""
    lines = []
    for model in dict.fromkeys(row["model"] for row in rows):
        own = _share_methods([row for row in rows if row["model"] == model])
        failed = {row["seed"]: row["reason"] for row in own if row["reason"] is not None}
        seeds = len({row["seed"] for row in own})
        for method in dict.fromkeys(row["method"] for row in own if row["seed"] not in failed) or ("",):
            good = [row for row in own if row["method"] == method and row["seed"] not in failed]
            ranges = {score: _seed_range([row[score] for row in good]) for score in scores}
            lines.append(Line(model, method, ranges, seeds, tuple(failed.values())))
    return lines


def mean_only_lines(lines: Sequence[Line]) -> dict[str, Line]:
    """One line per model: its mean-only run, which all models have."""
    plain: dict[str, Line] = {}
    for line in lines:
        plain.setdefault(line.model, line)
    return plain


def default_lines(lines: Sequence[Line]) -> dict[str, Line]:
    """One line per model: the method that its `simulate` uses by default, the last one."""
    return {line.model: line for line in lines}


def _share_methods(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    # A model that chooses may be linear with one seed and not with another. The single run of a linear one then counts
    # under all methods of the others, so that every line is over all seeds.
    methods = dict.fromkeys(row["method"] for row in rows if row["reason"] is None)
    if RESIDUALS not in methods or len(methods) == 1:
        return list(rows)
    others = [method for method in methods if method != RESIDUALS]
    return [
        {**row, "method": method}
        for row in rows
        for method in (others if row["method"] == RESIDUALS else [row["method"]])
    ]


def _seed_range(values: Sequence[float | None]) -> SeedRange:
    numbers = np.array([np.nan if value is None else value for value in values] or [np.nan], dtype=float)
    return SeedRange(float(numbers.min()), float(np.median(numbers)), float(numbers.max()))
