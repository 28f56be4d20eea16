"""What a comparison comes to, in a sentence or two that a person can act on."""

from collections.abc import Sequence

from revarb.comparison.compare import Line

# Rules of thumb, on the errors of the mean-only runs. A linear model is enough where the best of the others is closer
# by less than a twentieth of what predicting the mean misses, and by less than a third of the linear model's own error.
NOTHING_LEARNT = 0.95
WORTH_IT = 0.05
SAME_LEAGUE = 1.5
METHODS_DISAGREE = 1.25


def verdict(lines: Sequence[Line], constant: str = "Mean", linear: str = "ARX") -> str:
    """The sentences; `constant` and `linear` are the rows to measure the others by, where they are there."""
    plain = plain_lines(lines)
    working = {name: line for name, line in plain.items() if line.rmse < float("inf")}
    if not working:
        return "No model worked: the table has the reasons."
    others = {name: line for name, line in working.items() if name not in (constant, linear)}
    best = min(working.values(), key=lambda line: line.rmse)
    mean, straight = working.get(constant), working.get(linear)
    if mean is not None and len(working) > 1 and best.rmse > NOTHING_LEARNT * mean.rmse:
        return _nothing_learnt(mean, best)
    if straight is not None and others:
        rival = min(others.values(), key=lambda line: line.rmse)
        if _linear_is_enough(straight, rival, mean):
            return f"A linear model is enough here: {_named(straight)}, best of the others {_named(rival)}."
    return " ".join(filter(None, [_use(best, working.values()), _about_the_band(best, lines)]))


def plain_lines(lines: Sequence[Line]) -> dict[str, Line]:
    """One line per model: its mean-only run, the footing that all of them share."""
    plain: dict[str, Line] = {}
    for line in lines:
        plain.setdefault(line.model, line)
    return plain


def _nothing_learnt(mean: Line, best: Line) -> str:
    named = "none is closer" if best is mean else f"the best model, {_named(best)}, is hardly closer"
    return (
        f"Nothing was learnt here: predicting the training mean misses by {mean.rmse:.3g}, and {named}. "
        "Check the columns, the delay and the sampling, or take a longer record."
    )


def _linear_is_enough(straight: Line, rival: Line, mean: Line | None) -> bool:
    gain = straight.rmse - rival.rmse
    small = mean is None or gain < WORTH_IT * mean.rmse
    return gain <= 0.0 or (small and straight.rmse < SAME_LEAGUE * rival.rmse)


def _use(best: Line, working) -> str:
    others = sorted((line for line in working if line is not best), key=lambda line: line.rmse)
    if not others:
        return f"{best.model} misses by {best.rmse:.3g} (RMSE)."
    second = others[0]
    overlap = best.spread["rmse"].high >= second.spread["rmse"].low
    doubt = "; their seeds overlap, so run more of them before you rely on the order" if overlap else ""
    return f"Use {best.model}: it misses by {best.rmse:.3g} (RMSE), the next best is {_named(second)}{doubt}."


def _about_the_band(best: Line, lines: Sequence[Line]) -> str:
    banded = [line for line in lines if line.model == best.model and line.spread["coverage95"].median >= 0.0]
    if not banded:
        return ""
    line = banded[-1]
    if line.rmse > METHODS_DISAGREE * best.rmse:
        return (
            f"But with its uncertainty carried along ({line.method}) it misses by {line.rmse:.3g}: "
            "do not rely on its band here."
        )
    return f"Its 95 % band holds {100.0 * line.spread['coverage95'].median:.0f} % of the measurements."


def _named(line: Line) -> str:
    return f"{line.model} {line.rmse:.3g}"
