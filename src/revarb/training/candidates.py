"""The candidates of `revarb.fit`: which configurations are tried on a record.

Settled on the development set (docs/design/decisions): every number here has its reason there.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revarb.config.recipe import RECIPES
from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import warn_user
from revarb.training.problem import FEW_INDUCING, count_enough_inducing

FEW_LAGS, LAGS, MORE_LAGS = 5, 10, 20  # of the structures below
INDUCING = 100  # of structures without a linear part; fewer where the records are short
DELAYS = (1, 0, 8, 16)  # input delays of linear models; small dead times are within their lags
LONG_DELAY = 8  # from here on the lags of a nonlinear model would not reach over the dead time
WEIGHT, LINEAR_WEIGHT = 10.0, 50.0  # the largest weight of the free-run term, without and with a linear part
FEW_ITERATIONS = (30, 50)  # of trials with two hidden layers before the free-run term: enough to compare
UNINFORMATIVE = 0.5  # cold runs that are worse than this, in standard deviations of the output, tell little
ROWS_PER_LAG = 12  # all records together must have this many rows for every lag
RECORD_ROWS_PER_LAG = 6  # and a record this many
MOST_ROWS = 0.8  # share of the rows that must be in records that are long enough


@dataclass(frozen=True)
class Structure:
    """A configuration up to the weight of the free-run term: one path of fits gives a candidate per weight."""

    name: str
    spec: RGP
    quick_trials: bool = False  # fewer iterations without a fold than in the final fit

    @property
    def trial(self) -> RGP:
        """The configuration of the fits without a fold."""
        if not self.quick_trials:
            return self.spec
        recipe = self.spec.recipe
        counts = zip(recipe.stages, FEW_ITERATIONS, strict=False)
        stages = tuple(replace(stage, iterations=min(few, stage.iterations)) for stage, few in counts)
        return replace(self.spec, recipe=replace(recipe, stages=stages))

    @property
    def key(self) -> str:
        """A name for files."""
        spec = self.spec
        content = hashlib.sha256(json.dumps(self.trial.to_dict()).encode()).hexdigest()[:12]
        return f"{self.name.replace(' ', '_')}-{spec.lags}-{content}"

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of the free-run term along the path."""
        return (0.0, *self.spec.recipe.free_run_weights)

    def describe(self, weight: float) -> str:
        """What the candidate with this weight is, for tables."""
        spec, order = self.spec, describe_order(self.spec)
        states = f", {spec.latent_dims[0]} states" if spec.latent_dims[0] > 1 else ""
        return f"RGP, {self.name}{states}, {order}, w = {weight:g}"

    def complexity(self, weight: float) -> tuple[bool, float, int]:
        """What decides which of two candidates is simpler: the weight, then the lags."""
        return True, weight, self.spec.lags


def describe_order(order: Order | RGP) -> str:
    """An order in words."""
    several = order.input_lags not in (0, order.lags)
    many = "" if order.lags == 1 and not several else "s"
    lags = f"{order.lags} + {order.input_lags} lags" if several else f"{order.lags} lag{many}"
    return lags if order.input_delay == 1 else f"{lags}, delay {order.input_delay}"


def list_structures(records: Sequence[Series], delay: int) -> list[Structure]:
    """The structures that are tried first; `delay` is that of the linear models that did best."""
    few, lags, outputs = limit_lags(records, FEW_LAGS), limit_lags(records, LAGS), records[0].y.shape[1]
    linear = {"hidden": 1, "inducing": FEW_INDUCING, "latent_dim": outputs, "linear": True}
    inducing = min(INDUCING, count_enough_inducing(records))
    return [
        _make("linear part", records, lags, delay, "linear", **linear),
        _make("one smooth layer", records, few, delay, "smooth", hidden=1, inducing=inducing),
        replace(_make("fixed variances", records, lags, delay, "fixed", inducing=inducing), quick_trials=True),
    ]


def _make(name: str, records: Sequence[Series], lags: int, delay: int, recipe: str, **options: Any) -> Structure:
    weight = LINEAR_WEIGHT if options.get("linear", False) else WEIGHT
    weighted = replace(RECIPES[recipe], free_run_weight=weight)
    return Structure(name, RGP(lags, _limit_input_lags(records, lags, delay), delay, recipe=weighted, **options))


def _limit_input_lags(records: Sequence[Series], lags: int, delay: int) -> int:
    # After a long dead time fewer: the window of inputs must be full where the first held-out stretch begins.
    first = min(2 * limit_lags(records, MORE_LAGS), min(len(record) for record in records) // 2)
    return max(1, min(lags, first - delay + 1))


def list_variants(best: Structure, records: Sequence[Series]) -> list[Structure]:
    """Variants of the best structure, unless it has a linear part.

    More lags, a latent state per output where it has fewer, and free variances where they are fixed.
    """
    spec, variants = best.spec, []
    if spec.linear:
        return []
    if best.name == "fixed variances":
        free = replace(RECIPES["R0"], free_run_weight=spec.recipe.free_run_weight)
        variants.append(replace(best, name="free variances", spec=replace(spec, recipe=free)))
    lags, outputs = limit_lags(records, MORE_LAGS), records[0].y.shape[1]
    if lags > spec.lags:
        input_lags = _limit_input_lags(records, lags, spec.input_delay)
        variants.append(replace(best, spec=replace(spec, lags=lags, input_lags=input_lags)))
    if outputs > spec.latent_dims[0]:
        variants.append(replace(best, spec=replace(spec, latent_dim=outputs)))
    return variants


def list_other_recipes(structures: Sequence[Structure], records: Sequence[Series]) -> list[Structure]:
    """The variants that differ from their structure in nothing but the recipe: their fits have the same shape."""
    return [
        variant
        for each in structures
        for variant in list_variants(each, records)
        if replace(variant.spec, recipe=each.spec.recipe) == each.spec
    ]


def limit_lags(records: Sequence[Series], lags: int) -> int:
    """The number of lags, or less where the records are too short for that many."""
    lengths = np.array([len(record) for record in records])
    for fewer in range(lags, 1, -1):
        in_long = lengths[lengths >= RECORD_ROWS_PER_LAG * fewer].sum()
        if lengths.sum() >= ROWS_PER_LAG * fewer and in_long >= MOST_ROWS * lengths.sum():
            return fewer
    return 1


def leave_out_short(records: Sequence[Series]) -> tuple[Series, ...]:
    """The records that are long enough for all candidates, with a warning where others are left out."""
    kept = tuple(records)
    while True:  # with fewer records there can be more lags, for which others are too short
        least = RECORD_ROWS_PER_LAG * limit_lags(kept, MORE_LAGS)
        long = tuple(record for record in kept if len(record) >= least)
        if len(long) in (0, len(kept)):
            break
        kept = long
    if len(kept) < len(records):
        warn_user(
            f"{len(records) - len(kept)} of {len(records)} records have fewer than {least} samples and are left out; "
            "RGP(lags=…).fit takes them with fewer lags"
        )
    return kept
