"""The verdict of a comparison: rows summarised over seeds, models ranked, and a model recommended in a sentence or two.

Every model is judged by one method, the one that its `simulate` uses by default: its error, its NLPD and its band are
those of the same trajectory, which is also the one that a user gets.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from revarb.models.choice import HARDLY_BETTER

SCORES = ("rmse", "nrmse", "nlpd", "coverage95", "fit_seconds", "simulate_seconds")  # columns that are summarised
RESIDUALS = "residuals"  # the method of models that have only one

# Rules of thumb. A linear model is enough where the best other model gains less than a twentieth of the error of the
# mean, and less than a third of the linear model's own error.
NOT_BETTER_THAN_MEAN = 0.95
MIN_GAIN = 0.05
SIMILAR_ERROR = 1.5
METHODS_DISAGREE = 1.25
MEAN, LINEAR = "Mean", "ARX"  # names of the reference models, where they take part

Score = Literal["rmse", "nrmse"]


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

    def median(self, score: str) -> float:
        """The median of a score over the seeds that did not fail."""
        return self.ranges[score].median

    @property
    def worked(self) -> int:
        """Number of seeds that did not fail."""
        return self.seeds - len(self.failures)

    @property
    def reasons(self) -> list[str]:
        """Why seeds failed: each reason once, with the number of seeds."""
        counts = Counter(self.failures)
        return [f"{count} of {self.seeds} seed(s) failed: {reason}" for reason, count in counts.items()]


def summarise(rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    """One line per model and method; failed seeds appear in the reasons, not in the ranges."""
    lines = []
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        failed = {row["seed"]: row["reason"] for row in own if row["reason"] is not None}
        seeds = len({row["seed"] for row in own})
        worked = [row for row in own if row["seed"] not in failed]
        methods = dict.fromkeys(row["method"] for row in worked)
        if len(methods) > 1:
            # A model that chooses may be linear with one seed and not with another. The single run of a linear one
            # then counts under all methods of the others, so that every line is over all seeds.
            methods.pop(RESIDUALS, None)
        for method in methods or ("",):
            good = [row for row in worked if row["method"] in (method, RESIDUALS)]
            ranges = {score: _seed_range([row[score] for row in good]) for score in SCORES}
            lines.append(Line(model, method, ranges, seeds, tuple(failed.values())))
    return lines


def _seed_range(values: Sequence[float | None]) -> SeedRange:
    numbers = np.array([np.nan if value is None else value for value in values] or [np.nan], dtype=float)
    return SeedRange(float(numbers.min()), float(np.median(numbers)), float(numbers.max()))


def rank_lines(lines: Sequence[Line], score: Score) -> dict[str, Line]:
    """Models of which most seeds did not fail, best median first, each by the method that `simulate` uses by default.

    That is the last of its lines.
    """
    steady = [line for line in {line.model: line for line in lines}.values() if 2 * line.worked > line.seeds]
    return {line.model: line for line in sorted(steady, key=lambda line: line.median(score))}


def describe_verdict(lines: Sequence[Line], score: Score = "rmse") -> str:
    """The sentences; a model that is not better than predicting the mean is never recommended."""
    ranked = rank_lines(lines, score)
    if not ranked:
        return "Every model failed; the reasons are listed with the table."
    verdict = _describe_nothing_learnt(ranked, score) or _describe_linear(ranked, score) or _recommend(ranked, score)
    return f"{verdict}{_describe_mean_only_runs(ranked, lines, score)}"


def _describe_nothing_learnt(ranked: Mapping[str, Line], score: Score) -> str | None:
    # No model is better than the mean: that of the training records, or where no such model takes part that of the
    # test record, whose error is the spread of the measured output.
    best = next((line for name, line in ranked.items() if name != MEAN), None)
    if best is None:
        return None
    error, relative = best.median(score), best.median("nrmse")
    named, reference = "predicting the mean of the test record", error / relative if relative else math.inf
    if MEAN in ranked:
        named, reference = "predicting the training mean", ranked[MEAN].median(score)
    if not error > NOT_BETTER_THAN_MEAN * reference:
        return None
    compared = "worse" if error > reference else "hardly better"
    return (
        f"Nothing was learnt here: {named} has an error of {reference:.3g}, and the best model, {_name(best, score)}, "
        f"is {compared}. Use none of them: check the columns, the delay and the sampling, or take a longer record."
    )


def _describe_linear(ranked: Mapping[str, Line], score: Score) -> str | None:
    # The linear model does as well as the best of the others, by the rules of thumb above.
    linear = ranked.get(LINEAR)
    other = next((line for name, line in ranked.items() if name not in (MEAN, LINEAR)), None)
    if linear is None or other is None:
        return None
    error, least = linear.median(score), other.median(score)
    small = MEAN not in ranked or error - least < MIN_GAIN * ranked[MEAN].median(score)
    if error > least and not (small and error < SIMILAR_ERROR * least):
        return None
    names = f"{_name(linear, score)}, best of the others {_name(other, score)} ({score.upper()})"
    if linear.median("nrmse") >= HARDLY_BETTER:
        return f"No model is good enough here, and a linear one is as good as the others: {names}."
    return f"A linear model is enough here: {names}."


def _recommend(ranked: Mapping[str, Line], score: Score) -> str:
    best, *others = ranked.values()
    covered = best.median("coverage95")
    band = f" Its 95 % band contains {100.0 * covered:.0f} % of the measurements." if covered >= 0.0 else ""
    number = f"{score.upper()} {_number(best, score)}"
    if not others:
        return f"{best.model} has {number}; there is nothing to compare it with.{band}"
    overlap = best.ranges[score].high >= others[0].ranges[score].low
    doubt = "; their seeds overlap, so run more of them before relying on the order" if overlap else ""
    return f"Use {best.model}: {number}, the next best is {_name(others[0], score)}{doubt}.{band}"


def _describe_mean_only_runs(ranked: Mapping[str, Line], lines: Sequence[Line], score: Score) -> str:
    # What the rule leaves out of sight: a mean-only run, the first line of a model, with a clearly smaller error.
    best = next(iter(ranked.values()))
    plain = next(iter(rank_lines(list({line.model: line for line in reversed(lines)}.values()), score).values()))
    if METHODS_DISAGREE * plain.median(score) >= best.median(score):
        return ""
    return (
        f" The mean-only run of {plain.model} has a smaller error, {_number(plain, score)}, but no band; do not rely "
        "on its simulations with uncertainty here."
    )


def _name(line: Line, score: Score) -> str:
    return f"{line.model} {_number(line, score)}"


def _number(line: Line, score: Score) -> str:
    partly = "" if line.worked == line.seeds else f" ({line.worked} of {line.seeds} seeds)"
    return f"{line.median(score):.3g}{partly}"
