"""The candidates that `revarb.fit` tries by default.

Settled on the development set (docs/design): every number here has its reason there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.fitting.held_out import HeldOut
from revarb.fitting.problem import FEW_INDUCING, count_enough_inducing
from revarb.models.recipe import RECIPES
from revarb.models.rgp import RGP
from revarb.selection.candidates import CandidatePath
from revarb.selection.records import FEW_LAGS, LAGS, MORE_LAGS, limit_lags

INDUCING = 100  # of structures without a linear part; fewer where the records are short
DELAYS = (1, 0, 8, 16)  # input delays of linear models; small dead times are within their lags
WEIGHT, LINEAR_WEIGHT = 10.0, 50.0  # the largest weight of the free-run term, without and with a linear part
FEW_ITERATIONS = (30, 50)  # of trials with two hidden layers before the free-run term: enough to compare
FIXED = "RGP, fixed variances"  # display names
FREE = "RGP, free variances"


@dataclass(frozen=True)
class DefaultCandidates:
    """Linear models, then three structures of recurrent GPs, then variants of the best of these."""

    linear_only: bool = False  # with the effort "quick": linear models and recurrent GPs with a linear part

    def find_largest_order(self, records: Sequence[Series]) -> Order:
        """The largest order that is tried."""
        lags = limit_lags(records, MORE_LAGS)
        return Order(lags, lags if records[0].u.shape[1] else 0, 1)

    def list_linear_orders(self, held_out: HeldOut) -> list[tuple[str, Order]]:
        """The largest order for each input delay; the window of inputs must be full where the first block begins."""
        lags = limit_lags(held_out.records, MORE_LAGS)
        if not held_out.records[0].u.shape[1]:
            return [("", Order(lags, 0, 1))]
        first = min(run.first for run in held_out.runs)
        return [("", Order(lags, min(lags, first - delay + 1), delay)) for delay in DELAYS if delay <= first]

    def list_paths(self, records: Sequence[Series], delay: int) -> list[CandidatePath]:
        """The structures that are tried first; `delay` is that of the linear models that did best."""
        few, lags, outputs = limit_lags(records, FEW_LAGS), limit_lags(records, LAGS), records[0].y.shape[1]
        linear = {"hidden": 1, "inducing": FEW_INDUCING, "latent_dim": outputs, "linear": True}
        inducing = min(INDUCING, count_enough_inducing(records))
        with_linear_part = _make("RGP, linear part", records, lags, delay, "linear", **linear)
        if self.linear_only:
            # These have the quickest fits, and they or linear models are taken in 23 of 24 choices on the development
            # set without its drawn records of Artificial.
            return [with_linear_part]
        fixed = _make(FIXED, records, lags, delay, "fixed", inducing=inducing)
        return [
            with_linear_part,
            _make("RGP, one smooth layer", records, few, delay, "smooth", hidden=1, inducing=inducing),
            replace(fixed, few_iterations=FEW_ITERATIONS),
        ]

    def list_variants(self, best: CandidatePath, records: Sequence[Series]) -> list[CandidatePath]:
        """Variants of the best structure, unless it has a linear part.

        More lags, a latent state per output where it has fewer, and free variances where they are fixed.
        """
        spec, variants = best.spec, []
        if spec.linear:
            return []
        if spec.recipe == _weigh("fixed", spec.recipe.free_run_weight):
            free = _weigh("R0", spec.recipe.free_run_weight)
            variants.append(replace(best, name=FREE, spec=replace(spec, recipe=free)))
        lags, outputs = limit_lags(records, MORE_LAGS), records[0].y.shape[1]
        if lags > spec.lags:
            input_lags = _limit_input_lags(records, lags, spec.input_delay)
            variants.append(replace(best, spec=replace(spec, lags=lags, input_lags=input_lags)))
        if outputs > spec.latent_dims[0]:
            variants.append(replace(best, spec=replace(spec, latent_dim=outputs)))
        return variants


def _weigh(recipe: str, weight: float) -> Any:
    return replace(RECIPES[recipe], free_run_weight=weight)


def _make(name: str, records: Sequence[Series], lags: int, delay: int, recipe: str, **options: Any) -> CandidatePath:
    weight = LINEAR_WEIGHT if options.get("linear", False) else WEIGHT
    spec = RGP(lags, _limit_input_lags(records, lags, delay), delay, recipe=_weigh(recipe, weight), **options)
    return CandidatePath(spec, name)


def _limit_input_lags(records: Sequence[Series], lags: int, delay: int) -> int:
    # After a long dead time fewer: the window of inputs must be full where the first held-out block begins.
    first = min(2 * limit_lags(records, MORE_LAGS), min(len(record) for record in records) // 2)
    return max(1, min(lags, first - delay + 1))
