"""What a comparison comes to, in a sentence or two that a person can act on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from revarb.evaluation.comparison.lines import Line, mean_only_lines

# Rules of thumb, on the errors of the mean-only runs. A linear model is enough where the best of the others is closer
# by less than a twentieth of what predicting the mean misses, and by less than a third of the linear model's own error.
NOTHING_LEARNT = 0.95


WORTH_IT = 0.05


SAME_LEAGUE = 1.5


METHODS_DISAGREE = 1.25


Score = Literal["rmse", "nrmse"]


@dataclass(frozen=True)
class Standing:
    """A model in the ranking: its line, and its median error in the score that ranks."""

    line: Line
    error: float

    def __str__(self) -> str:
        return f"{self.line.model} {self.number}"

    @property
    def number(self) -> str:
        """The error as text, with a word on seeds that failed."""
        partly = "" if self.line.worked == self.line.seeds else f" ({self.line.worked} of {self.line.seeds} seeds)"
        return f"{self.error:.3g}{partly}"


def ranking(lines: Sequence[Line], score: Score) -> dict[str, Standing]:
    """The models of which most seeds worked, by their mean-only runs, best first."""
    plain = {name: line for name, line in mean_only_lines(lines).items() if 2 * line.worked > line.seeds}
    standings = [Standing(line, line.spread[score].median) for line in plain.values()]
    return {each.line.model: each for each in sorted(standings, key=lambda each: each.error)}


def state_verdict(lines: Sequence[Line], score: Score = "rmse", constant: str = "Mean", linear: str = "ARX") -> str:
    """The sentences. `constant` and `linear` are the rows to measure the others by, where they are there."""
    ranked = ranking(lines, score)
    if not ranked:
        return "No model worked: the reasons stand beside the table."
    best = next(iter(ranked.values()))
    mean, straight = ranked.get(constant), ranked.get(linear)
    if mean is not None and len(ranked) > 1 and best.error > NOTHING_LEARNT * mean.error:
        return _nothing_learnt(mean, best)
    if straight is not None and is_linear_enough(lines, score, constant, linear):
        rival = _best_of_the_others(ranked, constant, linear)
        return f"A linear model is enough here: {straight}, best of the others {rival} ({score.upper()})."
    return " ".join(filter(None, [_use(ranked, score), _about_the_band(best, lines, score)]))


def _nothing_learnt(mean: Standing, best: Standing) -> str:
    named = "none is closer" if best is mean else f"the best model, {best}, is hardly closer"
    return (
        f"Nothing was learnt here: predicting the training mean misses by {mean.error:.3g}, and {named}. "
        "Check the columns, the delay and the sampling, or take a longer record."
    )


def is_linear_enough(lines: Sequence[Line], score: Score, constant: str = "Mean", linear: str = "ARX") -> bool:
    """Whether the linear model does as well as the best of the others, by the rules of thumb above."""
    ranked = ranking(lines, score)
    mean, straight, rival = ranked.get(constant), ranked.get(linear), _best_of_the_others(ranked, constant, linear)
    if straight is None or rival is None:
        return False
    gain = straight.error - rival.error
    small = mean is None or gain < WORTH_IT * mean.error
    return gain <= 0.0 or (small and straight.error < SAME_LEAGUE * rival.error)


def _best_of_the_others(ranked: Mapping[str, Standing], constant: str, linear: str) -> Standing | None:
    return next((each for name, each in ranked.items() if name not in (constant, linear)), None)


def _use(ranked: Mapping[str, Standing], score: Score) -> str:
    best, *others = ranked.values()
    if not others:
        return f"{best.line.model} has {score.upper()} {best.number}; there is nothing to compare it with."
    second = others[0]
    overlap = best.line.spread[score].high >= second.line.spread[score].low
    doubt = "; their seeds overlap, so run more of them before you rely on the order" if overlap else ""
    return f"Use {best.line.model}: {score.upper()} {best.number}, the next best is {second}{doubt}."


def _about_the_band(best: Standing, lines: Sequence[Line], score: Score) -> str:
    banded = [line for line in lines if line.model == best.line.model and line.spread["coverage95"].median >= 0.0]
    if not banded:
        return ""
    line = banded[-1]
    if line.spread[score].median > METHODS_DISAGREE * best.error:
        return (
            f"But with its uncertainty carried along ({line.method}) it misses by {line.spread[score].median:.3g}: "
            "do not rely on its band here."
        )
    return f"Its 95 % band holds {100.0 * line.spread['coverage95'].median:.0f} % of the measurements."
