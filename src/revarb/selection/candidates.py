"""What `revarb.fit` tries: candidates with their identity, and a user's own list of them."""

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
from revarb.fitting.optimise import count_steps
from revarb.models.base import ModelSpec
from revarb.models.recipe import Recipe
from revarb.models.rgp import RGP


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
