"""The verdict of a comparison: one or two sentences that recommend a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from revarb.evaluation.comparison.lines import Line, mean_only_lines

# Rules of thumb, on the errors of the mean-only runs. A linear model is enough where the best other model gains less
# than a twentieth of the error of the mean, and less than a third of the linear model's own error.
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
    """Models of which most seeds did not fail, by their mean-only runs, best first."""
    plain = {name: line for name, line in mean_only_lines(lines).items() if 2 * line.worked > line.seeds}
    standings = [Standing(line, line.ranges[score].median) for line in plain.values()]
    return {each.line.model: each for each in sorted(standings, key=lambda each: each.error)}


def state_verdict(lines: Sequence[Line], score: Score = "rmse", constant: str = "Mean", linear: str = "ARX") -> str:
    """The sentences; `constant` and `linear` name the reference models, where they take part."""
    ranked = ranking(lines, score)
    if not ranked:
        return "Every model failed; the reasons are listed with the table."
    best = next(iter(ranked.values()))
    mean, straight = ranked.get(constant), ranked.get(linear)
    if mean is not None and len(ranked) > 1 and best.error > NOT_BETTER_THAN_MEAN * mean.error:
        return _nothing_learnt_sentence(mean, best)
    if straight is not None and is_linear_enough(lines, score, constant, linear):
        other = _best_of_the_others(ranked, constant, linear)
        return f"A linear model is enough here: {straight}, best of the others {other} ({score.upper()})."
    return " ".join(filter(None, [_use(ranked, score), _about_the_band(best, lines, score)]))


def _nothing_learnt_sentence(mean: Standing, best: Standing) -> str:
    named = "no model is better" if best is mean else f"the best model, {best}, is hardly better"
    return (
        f"Nothing was learnt here: predicting the training mean has an error of {mean.error:.3g}, and {named}. "
        "Check the columns, the delay and the sampling, or take a longer record."
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


def _about_the_band(best: Standing, lines: Sequence[Line], score: Score) -> str:
    banded = [line for line in lines if line.model == best.line.model and line.ranges["coverage95"].median >= 0.0]
    if not banded:
        return ""
    line = banded[-1]
    if line.ranges[score].median > METHODS_DISAGREE * best.error:
        return (
            f"But with its uncertainty propagated ({line.method}) its error is {line.ranges[score].median:.3g}: "
            "do not rely on its band here."
        )
    return f"Its 95 % band contains {100.0 * line.ranges['coverage95'].median:.0f} % of the measurements."
