"""Several trained models of one record as one: their mixture."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, check_integer, check_seed
from revarb.models import container as store
from revarb.models.base import Fitted
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.status import Status
from revarb.simulation.chain import StartState
from revarb.simulation.run import Method
from revarb.simulation.starts import StartChoice


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble(Fitted):
    """Members that differ in their seeds. Its simulation is the mixture of theirs, all with the same weight.

    members   the trained models, in the order of their seeds
    status    "interrupted" if a member was, or else how the best one ended
    """

    members: tuple[FittedRGP, ...]

    methods = FittedRGP.methods

    @classmethod
    def from_members(cls, members: Sequence[FittedRGP]) -> "Ensemble":
        """The mixture of these models, which have the same records behind them."""
        members = tuple(members)
        if not members or not all(isinstance(member, FittedRGP) for member in members):
            raise InputError(f"an ensemble takes one or more fitted RGPs, received {members!r}")
        if len({member.seed for member in members}) < len(members):
            raise InputError(f"members must differ in their seeds, received {[member.seed for member in members]}")
        ordered = tuple(sorted(members, key=lambda member: member.seed))
        first = ordered[0]
        for member in ordered[1:]:
            if (member.spec, member.lengths) != (first.spec, first.lengths) or not _same_frame(member, first):
                raise InputError(
                    f"members must be fits of one configuration to the same records; the one of seed {member.seed} "
                    f"differs from that of seed {first.seed}: fit both with one call of fit(restarts=…)"
                )
        stopped = any(member.status is Status.INTERRUPTED for member in members)
        best = max(ordered, key=lambda member: member.bound)
        return cls(first.preprocessor, Status.INTERRUPTED if stopped else best.status, first.seed, ordered)

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        bounds = f"bounds {min(self.bounds):.2f} to {max(self.bounds):.2f}"
        return f"Ensemble({len(self)} members, {bounds}, status={self.status.value!r})"

    @property
    def bounds(self) -> tuple[float, ...]:
        """The lower bounds of the members."""
        return tuple(member.bound for member in self.members)

    @cached_property
    def best(self) -> FittedRGP:
        """The member with the highest bound."""
        return max(self.members, key=lambda member: member.bound)

    @property
    def final_states(self) -> tuple[tuple[StartState, ...], ...]:
        """For every training record the states that the members ended with, for `simulate(u, start=…)`."""
        return tuple(zip(*(member.final_states for member in self.members), strict=True))

    def simulate(
        self,
        u: ArrayLike | None = None,
        method: Method = "moments",
        *,
        start: StartChoice | Sequence[StartState] = "cold",
        steps: int | None = None,
        samples: int = 200,
        seed: int = 0,
    ) -> Trajectory:
        """Free simulation, as `FittedRGP.simulate`: the mean of the members' means; the law of total variance.

        start     as there, or one of `final_states`, a state for each member
        samples   trajectories in all, shared out among the members
        """
        seed = check_seed(seed)
        starts: list[Any] = list(start) if isinstance(start, list | tuple) else [start] * len(self)
        if len(starts) != len(self) or isinstance(start, StartState):
            what = f"a state for each of its {len(self)} members"
            raise InputError(f"a start that is a state must be one of this ensemble's final_states, {what}")
        counts = self._shares(samples) if method == "samples" else [samples] * len(self)
        paths = [
            member.simulate(u, method, start=own, steps=steps, samples=count, seed=seed + number)
            for number, (member, own, count) in enumerate(zip(self.members, starts, counts, strict=True))
        ]
        return mix_paths(paths)

    def predict(self, record: Series, horizon: int = 1) -> Trajectory:
        """The mixture of the members' predictions, as `FittedRGP.predict`."""
        return mix_paths([member.predict(record, horizon) for member in self.members])

    def _shares(self, samples: int) -> list[int]:
        count = check_integer("samples (two or more per member)", samples, least=2 * len(self))
        return [count // len(self) + (number < count % len(self)) for number in range(len(self))]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write all members to one file, whole or not at all; `revarb.load` reads it."""
        header = {"kind": "Ensemble", "members": [member.header() for member in self.members]}
        return store.write_container(path, header, store.named_leaves([member.trained for member in self.members]))


def mix_paths(paths: Sequence[Trajectory]) -> Trajectory:
    """The mixture of simulations of one record, all with the same weight, and the largest of their disagreements."""
    first = paths[0]
    means = np.stack([path.mean for path in paths])
    spreads = [path.std for path in paths if path.std is not None]
    drawn = [path.samples for path in paths if path.samples is not None]
    # A member that could not be calibrated keeps its own width.
    widenings = [np.ones(len(first)) if path.widening is None else path.widening for path in paths]
    calibrated = any(path.widening is not None for path in paths)
    disagreements = [path.disagreement for path in paths if path.disagreement is not None]
    return Trajectory(
        mean=means.mean(axis=0),
        std=_mixed_spread(means, np.stack(spreads)) if spreads else None,
        method=first.method,
        skip=first.skip,
        output_names=first.output_names,
        dt=first.dt,
        samples=np.concatenate(drawn) if drawn else None,
        start=first.start,
        widening=np.mean(widenings, axis=0) if calibrated else None,
        disagreement=max(disagreements, default=None),
    )


def _mixed_spread(means: np.ndarray, spreads: np.ndarray) -> np.ndarray:
    # In units of the largest, so that no square over- or underflows: outputs come in all units.
    apart = means - means[0]
    largest = max(float(np.abs(apart).max()), float(spreads.max()), np.finfo(np.float64).tiny)
    return largest * np.sqrt(np.mean((spreads / largest) ** 2, axis=0) + (apart / largest).var(axis=0))


def _same_frame(one: FittedRGP, other: FittedRGP) -> bool:
    scalings = [np.concatenate(list(vars(model.scaling).values())) for model in (one, other)]
    names = [(model.input_names, model.output_names, model.dt) for model in (one, other)]
    return names[0] == names[1] and np.array_equal(scalings[0], scalings[1])
