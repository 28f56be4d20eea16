"""What `revarb.fit` tries: candidates with their identity, the default list, and a user's own.

The default list was settled on the development set (docs/design/decisions): every number here has its reason there.
"""

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import InputError, describe
from revarb.fitting.arx import ARX
from revarb.fitting.held_out import HeldOut
from revarb.fitting.problem import FEW_INDUCING, count_enough_inducing
from revarb.fitting.weight_path import count_steps
from revarb.models.base import ModelSpec
from revarb.models.recipe import RECIPES, Recipe
from revarb.models.rgp import RGP
from revarb.selection.records import FEW_LAGS, LAGS, MORE_LAGS, limit_lags


@dataclass(frozen=True)
class CandidatePath:
    """A configuration with its fits: of an RGP up to the weight of its free-run term, one candidate per weight.

    RGPs without a free-run term or with a recognition model, and models of other kinds, have one candidate.
    """

    spec: Any
    name: str = field(compare=False)  # for display
    few_iterations: tuple[int, ...] = ()  # of the first stages of fits without a fold, where fewer are enough there
    position: int = field(default=0, compare=False)  # in the user's list

    @property
    def has_weights(self) -> bool:
        """Whether its fits go along a path of rising weights."""
        return isinstance(self.spec, RGP) and self.spec.recognition is None and self.spec.recipe.free_run_weight > 0.0

    @property
    def linear_part(self) -> bool:
        """Whether it is a recurrent GP with a linear part."""
        return isinstance(self.spec, RGP) and self.spec.linear

    @property
    def trial(self) -> Any:
        """The configuration of the fits without a fold."""
        if not self.few_iterations:
            return self.spec
        return replace(self.spec, recipe=_limit_iterations(self.spec.recipe, self.few_iterations))

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of the free-run term along the path."""
        if not isinstance(self.spec, RGP):
            return (0.0,)
        recipe = self.spec.recipe
        return (0.0, *recipe.free_run_weights) if self.has_weights else (recipe.free_run_weight,)

    @property
    def steps(self) -> int:
        """Number of steps of a fit without a fold, at most."""
        return count_steps(self.trial) if isinstance(self.spec, RGP) else 1

    @property
    def key(self) -> str:
        """A name for files: a digest of its configurations."""
        content = json.dumps([self.spec.to_dict(), self.trial.to_dict()])
        return hashlib.sha256(content.encode()).hexdigest()[:20]

    def at(self, weight: float) -> "CandidateKey":
        """The candidate with this weight. Simpler is the one with the smaller weight, then with fewer lags.

        A model of another kind must be clearly better than a recurrent GP: its bands are not calibrated.
        """
        if not isinstance(self.spec, RGP):
            return CandidateKey(self, 0.0, self.name, (True, float("inf"), self.position))
        spec, name = self.spec, self.name
        states = f", {spec.latent_dims[0]} states" if spec.latent_dims[0] > 1 else ""
        name = f"{name}{states}, {describe_order(spec)}, w = {weight:g}"
        return CandidateKey(self, weight, name, (True, weight, spec.lags))


def _limit_iterations(recipe: Recipe, few: Sequence[int]) -> Recipe:
    # Stages beyond those that `few` names keep their iterations.
    limits = [*few, *(stage.iterations for stage in recipe.stages[len(few) :])]
    stages = [
        replace(stage, iterations=min(limit, stage.iterations))
        for stage, limit in zip(recipe.stages, limits[: len(recipe.stages)], strict=True)
    ]
    return replace(recipe, stages=tuple(stages))


@dataclass(frozen=True)
class CandidateKey:
    """The identity of a candidate: its configuration and the weight of its free-run term.

    The configuration of a linear model is its order. Name and complexity are no part of the identity.
    """

    configuration: CandidatePath | Order
    weight: float = 0.0
    name: str = field(default="", compare=False)
    complexity: tuple[Any, ...] = field(default=(), compare=False)  # of two candidates, the simpler one has the smaller

    @property
    def path(self) -> CandidatePath | None:
        """The configuration with its fits; None for a linear model."""
        return self.configuration if isinstance(self.configuration, CandidatePath) else None


def describe_order(order: Order | RGP) -> str:
    """An order in words."""
    several = order.input_lags not in (0, order.lags)
    many = "" if order.lags == 1 and not several else "s"
    lags = f"{order.lags} + {order.input_lags} lags" if several else f"{order.lags} lag{many}"
    return lags if order.input_delay == 1 else f"{lags}, delay {order.input_delay}"


@dataclass(frozen=True)
class GivenCandidates:
    """The candidates that a user passes: only these are tried."""

    linear: tuple[tuple[str, ARX], ...]
    paths: tuple[CandidatePath, ...]

    def find_largest_order(self, records: Sequence[Series]) -> Order:
        """The order that covers those of all candidates."""
        inputs = records[0].u.shape[1]
        specs = [*(spec for _, spec in self.linear), *(path.spec for path in self.paths)]
        orders = [Order(1, 1, 1), *(spec.order_for(inputs) for spec in specs if hasattr(spec, "order_for"))]
        reach = max(order.reach for order in orders)
        return Order(max(order.lags for order in orders), reach if inputs else 0, 1)

    def list_linear_orders(self, held_out: HeldOut) -> list[tuple[str, Order]]:
        """The largest order of every linear candidate, and its name, if it was given one."""
        inputs = held_out.records[0].u.shape[1]
        return [(name, spec.order_for(inputs)) for name, spec in self.linear]

    def list_paths(self, records: Sequence[Series], delay: int) -> list[CandidatePath]:
        """The other candidates."""
        return list(self.paths)

    def list_variants(self, best: CandidatePath, records: Sequence[Series]) -> list[CandidatePath]:
        """None: only what was passed is tried."""
        return []


def read_candidates(candidates: object) -> GivenCandidates:
    """Check a user's candidates: a sequence of configurations, or a mapping from names to configurations."""
    named = list(_name_candidates(candidates))
    specs = [spec for _, spec in named]
    for position, spec in enumerate(specs):
        if spec in specs[:position]:
            raise InputError(f"candidates must differ, but {describe(spec)} is among them twice")
    linear = tuple((name, spec) for name, spec in named if isinstance(spec, ARX))
    paths = [
        CandidatePath(spec, name or _name_spec(spec, position, specs), position=position)
        for position, (name, spec) in enumerate(named)
        if not isinstance(spec, ARX)
    ]
    return GivenCandidates(linear, tuple(paths))


def _name_candidates(candidates: object) -> Iterator[tuple[str, Any]]:
    if isinstance(candidates, Mapping):
        named = list(candidates.items())
    elif isinstance(candidates, Sequence) and not isinstance(candidates, str):
        named = [("", spec) for spec in candidates]
    else:
        raise InputError(
            "candidates must be a list of configurations or a dict from names to configurations, such as "
            f"[RGP(), ARX()], received {describe(candidates)}"
        )
    if not named:
        raise InputError("candidates must have at least one configuration, received none")
    for name, spec in named:
        if not isinstance(name, str) or (isinstance(candidates, Mapping) and not name.strip()):
            raise InputError(f"names of candidates must be texts, received {describe(name)}")
        if isinstance(spec, type) or not isinstance(spec, ModelSpec) or not isinstance(spec, Hashable):
            raise InputError(
                "a candidate must be a configuration with a method fit, such as RGP() or ARX(), received "
                f"{describe(spec)}"
            )
        yield name, spec


def _name_spec(spec: Any, position: int, specs: Sequence[Any]) -> str:
    kind = type(spec).__name__
    alone = sum(type(other) is type(spec) for other in specs) == 1
    return kind if alone else f"{kind}, candidate {position + 1}"


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
