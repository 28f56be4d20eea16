"""The verdict of a comparison: one or two sentences that recommend a model.

Every model is judged by one method, the one that its `simulate` uses by default: its error, its NLPD and its band are
those of the same trajectory, which is also the one that a user gets.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from revarb.evaluation.comparison.lines import Line, default_lines, mean_only_lines

# Rules of thumb. A linear model is enough where the best other model gains less than a twentieth of the error of the
# mean, and less than a third of the linear model's own error.
NOT_BETTER_THAN_MEAN = 0.95
MIN_GAIN = 0.05
SIMILAR_ERROR = 1.5
METHODS_DISAGREE = 1.25

Score = Literal["rmse", "nrmse"]


@dataclass(frozen=True)
class Standing:
    """A model in the ranking: its line, and its median error."""

    line: Line
    error: float

    def __str__(self) -> str:
        return f"{self.line.model} {self.number}"

    @property
    def number(self) -> str:
        """The error as text, with the number of seeds that failed."""
        partly = "" if self.line.worked == self.line.seeds else f" ({self.line.worked} of {self.line.seeds} seeds)"
        return f"{self.error:.3g}{partly}"


def ranking(lines: Sequence[Line], score: Score) -> dict[str, Standing]:
    """Models of which most seeds did not fail, best first, each by the method that its `simulate` uses by default.

    For a ranking by other methods pass one line per model, such as `mean_only_lines`.
    """
    steady = [line for line in default_lines(lines).values() if 2 * line.worked > line.seeds]
    standings = [Standing(line, line.ranges[score].median) for line in steady]
    return {each.line.model: each for each in sorted(standings, key=lambda each: each.error)}


def state_verdict(lines: Sequence[Line], score: Score = "rmse", constant: str = "Mean", linear: str = "ARX") -> str:
    """The sentences; `constant` and `linear` name the reference models, where they take part.

    A model that is not better than predicting the mean is never recommended.
    """
    ranked = ranking(lines, score)
    if not ranked:
        return "Every model failed; the reasons are listed with the table."
    best, straight = next(iter(ranked.values())), ranked.get(linear)
    remark = _about_mean_only_runs(best, lines, score)
    if (nothing := _nothing_learnt(ranked, constant)) is not None:
        return " ".join(filter(None, [nothing, remark]))
    if straight is not None and is_linear_enough(lines, score, constant, linear):
        other = _best_of_the_others(ranked, constant, linear)
        enough = f"A linear model is enough here: {straight}, best of the others {other} ({score.upper()})."
        return " ".join(filter(None, [enough, remark]))
    return " ".join(filter(None, [_use(ranked, score), _about_the_band(best), remark]))


def _nothing_learnt(ranked: Mapping[str, Standing], constant: str) -> str | None:
    # The sentence where no model is better than the mean: that of the training records, or where no such model takes
    # part that of the test record, whose error is the spread of the measured output.
    mean, best = ranked.get(constant), next((each for name, each in ranked.items() if name != constant), None)
    if best is None:
        return None
    if mean is not None:
        named, reference = "predicting the training mean", mean.error
    else:
        relative = best.line.ranges["nrmse"].median
        named, reference = "predicting the mean of the test record", best.error / relative if relative else math.inf
    if not best.error > NOT_BETTER_THAN_MEAN * reference:
        return None
    compared = "worse" if best.error > reference else "hardly better"
    return (
        f"Nothing was learnt here: {named} has an error of {reference:.3g}, and the best model, {best}, is {compared}. "
        "Use none of them: check the columns, the delay and the sampling, or take a longer record."
    )


def is_linear_enough(lines: Sequence[Line], score: Score, constant: str = "Mean", linear: str = "ARX") -> bool:
    """Whether the linear model does as well as the best of the others, by the rules of thumb above."""
    ranked = ranking(lines, score)
    mean, straight, other = ranked.get(constant), ranked.get(linear), _best_of_the_others(ranked, constant, linear)
    if straight is None or other is None:
        return False
    gain = straight.error - other.error
    small = mean is None or gain < MIN_GAIN * mean.error
    return gain <= 0.0 or (small and straight.error < SIMILAR_ERROR * other.error)


def _best_of_the_others(ranked: Mapping[str, Standing], constant: str, linear: str) -> Standing | None:
    return next((each for name, each in ranked.items() if name not in (constant, linear)), None)


def _use(ranked: Mapping[str, Standing], score: Score) -> str:
    best, *others = ranked.values()
    if not others:
        return f"{best.line.model} has {score.upper()} {best.number}; there is nothing to compare it with."
    second = others[0]
    overlap = best.line.ranges[score].high >= second.line.ranges[score].low
    doubt = "; their seeds overlap, so run more of them before relying on the order" if overlap else ""
    return f"Use {best.line.model}: {score.upper()} {best.number}, the next best is {second}{doubt}."


def _about_the_band(best: Standing) -> str:
    covered = best.line.ranges["coverage95"].median
    return f"Its 95 % band contains {100.0 * covered:.0f} % of the measurements." if covered >= 0.0 else ""


def _about_mean_only_runs(best: Standing, lines: Sequence[Line], score: Score) -> str:
    # What the rule leaves out of sight: a mean-only run with a clearly smaller error.
    plain = next(iter(ranking(list(mean_only_lines(lines).values()), score).values()))
    if METHODS_DISAGREE * plain.error >= best.error:
        return ""
    return (
        f"The mean-only run of {plain.line.model} has a smaller error, {plain.number}, but no band; do not rely on its "
        "simulations with uncertainty here."
    )
