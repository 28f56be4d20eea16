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
from revarb.models.base import ModelSpec
from revarb.models.recipe import NARX_FREE, RECIPES
from revarb.models.rgp import RGP
from revarb.selection.records import FEW_LAGS, FEWEST_LAGS, LAGS, MORE_LAGS, limit_lags


@dataclass(frozen=True)
class CandidatePath:
    """A configuration with its fits: of an RGP up to the weight of its free-run term, one candidate per weight.

    RGPs without a free-run term or with a recognition model, and models of other kinds, have one candidate.
    """

    spec: Any
    name: str = field(compare=False)  # for display
    trial: Any = None  # the configuration of the fits that only rank it, where less is enough there; None: `spec`

    @property
    def trial_spec(self) -> Any:
        """The configuration of the fits without a fold."""
        return self.spec if self.trial is None else self.trial

    @property
    def has_weights(self) -> bool:
        """Whether its fits go along a path of rising weights."""
        return isinstance(self.spec, RGP) and self.spec.recognition is None and self.spec.recipe.free_run_weight > 0.0

    @property
    def linear_part(self) -> bool:
        """Whether it is a recurrent GP with a linear part."""
        return isinstance(self.spec, RGP) and self.spec.linear

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of the free-run term along the path."""
        if not isinstance(self.spec, RGP):
            return (0.0,)
        recipe = self.spec.recipe
        return (0.0, *recipe.free_run_weights) if self.has_weights else (recipe.free_run_weight,)

    @property
    def key(self) -> str:
        """A name for files: a digest of its configurations."""
        content = json.dumps([self.spec.to_dict(), self.trial_spec.to_dict()])
        return hashlib.sha256(content.encode()).hexdigest()[:20]

    @property
    def label(self) -> str:
        """Its name with its states and lags."""
        if not isinstance(self.spec, RGP):
            return self.name
        states = f", {self.spec.latent_dims[0]} states" if self.spec.latent_dims[0] > 1 else ""
        return f"{self.name}{states}, {describe_order(self.spec)}"

    def at(self, weight: float) -> "CandidateKey":
        """The candidate with this weight."""
        if not isinstance(self.spec, RGP):
            return CandidateKey(self, name=self.name)
        return CandidateKey(self, weight, f"{self.label}, w = {weight:g}")


@dataclass(frozen=True)
class CandidateKey:
    """The identity of a candidate: its configuration and the weight of its free-run term.

    The configuration of a linear model is its order, that of a mixture the keys of its members. The name is no part of
    the identity.
    """

    configuration: "CandidatePath | Order | tuple[CandidateKey, ...]"
    weight: float = 0.0
    name: str = field(default="", compare=False)

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


def read_candidates(candidates: object) -> GivenCandidates:
    """Check a user's candidates: a sequence of configurations, or a mapping from names to configurations."""
    named = list(_name_candidates(candidates))
    specs = [spec for _, spec in named]
    for position, spec in enumerate(specs):
        if spec in specs[:position]:
            raise InputError(f"candidates must differ, but {describe(spec)} is among them twice")
    linear = tuple((name, spec) for name, spec in named if isinstance(spec, ARX))
    paths = [
        CandidatePath(spec, name or _name_spec(spec, position, specs))
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


DELAYS = (1, 0, 8, 16)  # input delays of linear models; small dead times are within their lags
LINEAR_PART = "linear part"  # the name of a recurrent GP that has one
MEASURED_STATES = "measured states"
KNOWN_ROWS, KNOWN_INDUCING = 20_000, 200  # of long records, in a fit that keeps the states at the outputs
KNOWN_FREE = tuple(name for name in NARX_FREE if name != "linear")
INDUCING = 100  # of a fit with many; fewer where the records are short
WEIGHT, LINEAR_WEIGHT = 10.0, 50.0  # the largest weight of the free-run term, without and with a linear part


@dataclass(frozen=True)
class DefaultCandidates:
    """Linear models, and recurrent GPs of several structures."""

    linear_only: bool = False  # with the effort "quick": linear models and recurrent GPs with a linear part
    long: bool = False  # whether the records are long

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
        """The structures, the most promising first; `delay` is that of the linear models that did best."""
        fewest, few, lags, more = (limit_lags(records, most) for most in (FEWEST_LAGS, FEW_LAGS, LAGS, MORE_LAGS))
        with_line = {"hidden": 1, "linear": True, "latent_dim": records[0].y.shape[1]}
        with_linear_part = _make(LINEAR_PART, records, lags, delay, "linear", **with_line)
        if self.linear_only:
            return [with_linear_part]
        paths = [
            with_linear_part,
            _make("smooth layer", records, more, delay, "smooth", hidden=1),
            _use_all(_make("smooth layer", records, few, delay, "smooth", hidden=1), records),
            _make("free variances", records, lags, delay, "R0"),  # the paper's model
            _make(MEASURED_STATES, records, fewest, delay, "narx", **with_line),
        ]
        if self.long:
            paths = [*(_make_long(records, each, delay, with_line) for each in (few, more)), *paths[:-1]]
        return list({path.trial_spec: path for path in paths}.values())  # short records have fewer different lags


def _make(name: str, records: Sequence[Series], lags: int, delay: int, recipe: str, **options: Any) -> CandidatePath:
    # With half of the recipe's iterations: simulations are as good as with all of them.
    known = RECIPES[recipe]
    half = replace(
        known,
        stages=tuple(replace(stage, iterations=stage.iterations // 2) for stage in known.stages),
        free_run_weight=LINEAR_WEIGHT if options.get("linear", False) else WEIGHT,
        free_run_iterations=known.free_run_iterations // 2,
    )
    input_lags = _limit_input_lags(records, lags, delay)
    return CandidatePath(RGP(lags, input_lags, delay, inducing=FEW_INDUCING, recipe=half, **options), name)


def _use_all(path: CandidatePath, records: Sequence[Series]) -> CandidatePath:
    # All iterations and more inducing inputs in its fit to all records: drawn records of Artificial are simulated
    # better so.
    trial = path.spec
    known = replace(RECIPES["smooth"], free_run_weight=trial.recipe.free_run_weight)
    spec = replace(trial, inducing=min(INDUCING, count_enough_inducing(records)), recipe=known)
    return replace(path, spec=spec, trial=trial)


def _make_long(records: Sequence[Series], lags: int, delay: int, options: Mapping[str, Any]) -> CandidatePath:
    # The linear part stays where it begins, at a model that simulates: beyond what was measured nothing else holds it.
    # Where states are known rows cost little, so the fit to all records has more of them, and more inducing inputs.
    path = _make(MEASURED_STATES, records, lags, delay, "narx", **options)
    whole = replace(RECIPES["narx"], free_run_weight=path.spec.recipe.free_run_weight, max_rows=KNOWN_ROWS)
    trial, last = (
        replace(each, stages=tuple(replace(stage, free=KNOWN_FREE) for stage in each.stages))
        for each in (path.spec.recipe, whole)
    )
    return replace(
        path, spec=replace(path.spec, inducing=KNOWN_INDUCING, recipe=last), trial=replace(path.spec, recipe=trial)
    )


def _limit_input_lags(records: Sequence[Series], lags: int, delay: int) -> int:
    # After a long dead time fewer: the window of inputs must be full where the first held-out block begins.
    first = min(2 * limit_lags(records, MORE_LAGS), min(len(record) for record in records) // 2)
    return max(1, min(lags, first - delay + 1))
