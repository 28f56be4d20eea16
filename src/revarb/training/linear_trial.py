"""Linear models as candidates: the best order for each input delay."""

import time
from collections.abc import Sequence

import numpy as np

from revarb.data.windows import Order
from revarb.errors import RevarbError
from revarb.models.fitted_arx import FittedARX
from revarb.optim.status import Status
from revarb.training.candidates import DELAYS, LONG_DELAY, MORE_LAGS, UNINFORMATIVE, describe_order, limit_lags
from revarb.training.linear_choice import LinearCandidate, count_coefficients, score_linear
from revarb.training.one_standard_error import log_errors
from revarb.training.trials import HeldOut, Scored, measure_folds


def try_linear(held_out: HeldOut) -> list[Scored]:
    """The best linear model for each input delay; one whose runs all diverge is left out."""
    tried = []
    for largest in _list_largest_orders(held_out):
        started = time.perf_counter()
        try:
            found = score_linear(held_out.records, held_out.stretches, held_out.segments, largest)
        except RevarbError:  # a record too short for the delay, or no stable order
            continue
        tried.append(_make_scored(found, held_out, time.perf_counter() - started))
    return tried


def _list_largest_orders(held_out: HeldOut) -> list[Order]:
    # One for each delay; the window of inputs must be full where the first stretch begins.
    lags = limit_lags(held_out.records, MORE_LAGS)
    if not held_out.records[0].u.shape[1]:
        return [Order(lags, 0, 1)]
    first = min(segment.first for segment in held_out.segments)
    return [Order(lags, min(lags, first - delay + 1), delay) for delay in DELAYS if delay <= first]


def _make_scored(found: LinearCandidate, held_out: HeldOut, seconds: float) -> Scored:
    complexity = (False, 0.0, count_coefficients(found.order, held_out.scaling))
    folds = {
        fold: FittedARX(prep, Status.CONVERGED, 0, np.ones(len(prep.output_names)), model)
        for fold, (prep, model) in enumerate(zip(found.preprocessors, found.folds, strict=True))
    }
    errors = measure_folds(folds, held_out)
    return Scored(f"linear, {describe_order(found.order)}", complexity, errors, seconds, folds, order=found.order)


def find_delay(linear: Sequence[Scored]) -> int:
    """The input delay of the nonlinear candidates, from that of the linear ones: 1, or where that is better 0.

    Delay 0 is direct feedthrough, and must be better by more than a standard error. A long dead time must be better by
    two, and by a model that follows the record. Short ones are within the lags of every candidate.
    """
    delays = {each.order.input_delay: each.errors for each in linear if each.order is not None}
    if 1 not in delays:
        return 1
    for delay, errors in sorted(delays.items(), reverse=True):
        finite = np.isfinite(errors).all() and np.isfinite(delays[1]).all()
        differences = log_errors(delays[1]) - log_errors(errors) if finite else np.zeros(len(errors))
        gain, deviation = differences.mean(), differences.std(ddof=1) / np.sqrt(len(differences))
        follows = log_errors(errors).mean() < np.log(UNINFORMATIVE)
        if gain > (2.0 if delay >= LONG_DELAY else 1.0) * deviation and (follows or delay < LONG_DELAY):
            return delay
    return 1
