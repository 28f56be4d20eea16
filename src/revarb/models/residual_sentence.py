"""The plain sentences of a residual analysis: what was found, and what to do."""

from collections.abc import Mapping

from revarb.data.windows import Order
from revarb.models.correlation import LEAST_PAIRS
from revarb.models.residuals import Peak, Residuals

MOST_NAMES = 3  # columns that a sentence lists
WEAK = 0.1  # a correlation below it explains less than one per cent of the errors' variance; long records have many
LEAVE_IT = "too weak to be worth a change"


def state_residuals(residuals: Residuals) -> tuple[str, ...]:
    """One sentence for every output with a finding, and one for the outputs in which nothing is left."""
    names = residuals.output_names
    findings = {name: _find_all(residuals, row) for row, name in enumerate(names)}
    left = tuple(
        f"the residuals{f' of {name!r}' if len(names) > 1 else ''} {'; they '.join(found)}"
        for name, found in findings.items()
        if found
    )
    clean = [name for name, found in findings.items() if not found]
    if not clean:
        return left
    whose = ", ".join(map(repr, clean)) if len(clean) <= MOST_NAMES else f"the other {len(clean)} outputs"
    return (*left, f"nothing is left in the residuals{f' of {whose}' if left else ''}")


def _find_all(residuals: Residuals, row: int) -> list[str]:
    # Each begins with a verb: "the residuals … are not white".
    count = residuals.counts[row]
    if count < LEAST_PAIRS:
        return [f"are too few to judge ({count} values; {LEAST_PAIRS} are needed)"]
    beyond = {name: peak for name, peak in residuals.cross_correlation_peaks[row].items() if peak.significant}
    followed = {name: peak for name, peak in beyond.items() if peak.lag >= 0}
    answered = {name: peak for name, peak in beyond.items() if peak.lag < 0}
    own, offset = residuals.autocorrelation_peaks[row], residuals.offset_ratios[row]
    coloured = own is not None and own.significant
    found = [_state_inputs(followed, residuals.order)] if followed else []
    if own is not None and coloured:
        found.append(_state_colour(own, residuals.order, bool(followed)))
    if answered:
        found.append(_state_feedback(answered))
    if abs(offset) > 1.0 and not coloured:  # the mean of coloured errors varies more than its limit allows for
        where = "above" if offset > 0.0 else "below"
        found.append(f"have an offset: the output is {where} its predictions on average; check for drift, or train on "
                     "records like this one")  # fmt: skip
    return found


def _state_inputs(followed: Mapping[str, Peak], order: Order) -> str:
    strong = {name: peak for name, peak in followed.items() if not _is_weak(peak)}
    named = strong or followed
    largest = max(named.values(), key=lambda peak: peak.ratio)
    return f"still follow {_list_inputs(named)}: {_advise_inputs(largest, order)}"


def _advise_inputs(largest: Peak, order: Order) -> str:
    lag = largest.lag
    if lag < order.input_delay:
        return f"try a smaller input delay (input_delay={lag})"
    if lag > order.reach:
        return f"try more input lags (input_lags={lag - order.input_delay + 1} or more)"
    if _is_weak(largest):
        return LEAVE_IT
    return (
        "the model has this lag and does not use it fully; try revarb.fit, a nonlinear model, or training records "
        "like this one"
    )


def _state_colour(own: Peak, order: Order, explained: bool) -> str:
    finding = f"are not white ({_describe(own)})"
    if _is_weak(own):
        return f"{finding}: {LEAVE_IT}"
    if explained:
        return f"{finding}, which may come from the same cause"
    more = f"try more lags (lags={own.lag} or more)" if own.lag > order.lags else "try more lags or revarb.fit"
    return f"{finding}: an error tells something about later ones; {more}, or add an input that is missing"


def _state_feedback(answered: Mapping[str, Peak]) -> str:
    return (
        f"come before {_list_inputs(answered)}: that is feedback (a controller), no fault of the model; judge it on a "
        "record without feedback"
    )


def _list_inputs(peaks: Mapping[str, Peak]) -> str:
    ordered = sorted(peaks.items(), key=lambda item: -item[1].ratio)
    shown = ", ".join(f"{name!r} ({_describe(peak)})" for name, peak in ordered[:MOST_NAMES])
    rest = len(ordered) - MOST_NAMES
    return f"input{'s' if len(ordered) > 1 else ''} {shown}{f' and {rest} more' if rest > 0 else ''}"


def _describe(peak: Peak) -> str:
    weak = f", {100.0 * peak.value**2:.1g} % of their variance" if _is_weak(peak) else ""
    return f"lag {peak.lag}: {peak.value:.2f}{weak}"


def _is_weak(peak: Peak) -> bool:
    return abs(peak.value) < WEAK
