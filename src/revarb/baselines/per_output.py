"""One model per output: each sees the past of its own output and of the inputs, and nothing of the other outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, as_records
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.errors import InputError, check_seed
from revarb.models.base import Fitted
from revarb.optim.status import Status
from revarb.runtime.progress import progress_bar

WORST_FIRST = (
    Status.INTERRUPTED,
    Status.NOT_FINITE,
    Status.STALLED,
    Status.ITERATION_LIMIT,
    Status.CONVERGED,
)


@runtime_checkable
class Rival(Protocol):
    """A configuration that can be fitted to every output alone."""

    def fit(self, train: Sequence[Series], seed: int = ...) -> Fitted:
        """Train it on a list of records."""
        ...


@dataclass(frozen=True)
class PerOutput:
    """As many separate models as there are outputs, all of one configuration.

    spec   the configuration, such as `GPNARX(20, 20)`
    """

    spec: Rival

    def __post_init__(self):
        if isinstance(self.spec, type) or not isinstance(self.spec, Rival):
            raise InputError(f"PerOutput takes a configuration, such as PerOutput(GPNARX()), received {self.spec!r}")

    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedPerOutput":
        """Fit one model after the other, all with the same seed.

        Ctrl-C during the last one keeps them all, as it left them; before, some output would have no model.
        """
        seed, records = check_seed(seed), as_records(train)
        scaling = Standardiser.from_records(records)  # a constant column is refused before anything else takes its time
        first, fitted = records[0], {}
        parts = [_measured_parts(records, column) for column in range(len(first.output_names))]
        # A model that cannot do with gaps says so before the others take their time.
        gaps_first = sorted(range(len(parts)), key=lambda column: -sum(record.missing for record in parts[column]))
        with progress_bar("fitting output by output", len(parts), progress) as update:
            for column in gaps_first:
                fitted[column] = self._fit_one(parts[column], seed)
                update(len(fitted), f"{first.output_names[column]} {fitted[column].status}")
                if fitted[column].status is Status.INTERRUPTED and len(fitted) < len(parts):
                    raise KeyboardInterrupt  # before there is anything to keep
        members = [fitted[column] for column in range(len(parts))]
        prep = Preprocessor(scaling, _widest(members), first.input_names, first.output_names, first.dt)
        status = min((member.status for member in members), key=WORST_FIRST.index)
        return FittedPerOutput(prep, status, seed, tuple(members))

    def _fit_one(self, records: Sequence[Series], seed: int) -> Fitted:
        member = self.spec.fit(records, seed=seed)
        if not isinstance(member, Fitted):
            raise InputError(
                f"PerOutput takes a configuration whose fit returns a Fitted (revarb.frame), received {self.spec!r}, "
                f"which returns a {type(member).__name__}"
            )
        return member


@dataclass(frozen=True, eq=False, repr=False)
class FittedPerOutput(Fitted):
    """Separate models of the outputs, as one.

    members   the trained models, in the order of the outputs
    status    the gravest of theirs
    """

    members: tuple[Fitted, ...]

    @property
    def methods(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride] (the members' class's)
        """The methods of `simulate`: those that a comparison shows of the members."""
        return self.members[0].methods

    def simulate(
        self, u: ArrayLike | None = None, method: str | None = None, *, steps: int | None = None
    ) -> Trajectory:
        """Free simulation of every output alone, cold start. `method` is one of `methods`; default: the last."""
        method = self.methods[-1] if method is None else method
        if method not in self.methods:
            known = " or ".join(repr(each) for each in self.methods)
            raise InputError(f"method must be {known}, received {method!r}; for others simulate the members")
        paths = [member.simulate(u, method, steps=steps) for member in self.members]
        bands = [path.std for path in paths if path.std is not None]
        return Trajectory(
            mean=np.concatenate([path.mean for path in paths], axis=1),
            std=np.concatenate(bands, axis=1) if bands else None,
            method=method,
            skip=self.skip,
            output_names=self.output_names,
            dt=self.dt,
            index=paths[0].index,
        )


def _measured_parts(records: Sequence[Series], column: int) -> list[Series]:
    # One output alone; a record in which it was never measured says nothing about it.
    parts = [
        Series(record.u, record.y[:, column], record.dt, record.input_names, (record.output_names[column],))
        for record in records
    ]
    return [part for part in parts if part.missing < len(part)]


def _widest(members: Sequence[Fitted]) -> Order:
    # A model that chooses its order (ARX) may choose another one for every output.
    orders = [member.order for member in members]
    return Order(max(each.lags for each in orders), max(each.input_lags for each in orders), orders[0].input_delay)
