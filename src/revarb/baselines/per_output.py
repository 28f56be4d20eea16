"""One model per output, each with the past of its own output and of the inputs as regressors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, as_records
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.errors import InputError, check_seed
from revarb.models import model_file
from revarb.models.base import Fitted, ModelSpec
from revarb.models.configuration import Configuration
from revarb.models.recipe import Status
from revarb.runtime.progress import progress_bar

WORST_FIRST = (Status.INTERRUPTED, Status.NOT_FINITE, Status.STALLED, Status.ITERATION_LIMIT, Status.CONVERGED)


@dataclass(frozen=True)
class PerOutput(Configuration):
    """Separate models of the outputs, all of one configuration.

    Parameters
    ----------
    spec : RGP, GPNARX, …
        The configuration of every model, such as `GPNARX(20, 20)`.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.column_stack([np.convolve(u, [0.0, 0.5])[:60], np.convolve(u, [0.0, 0.0, 1.0])[:60]])
    >>> model = revarb.baselines.PerOutput(revarb.ARX(lags=1, input_lags=2)).fit(revarb.Series(u, y))
    >>> len(model.members)
    2
    >>> model.simulate(u).mean.shape
    (60, 2)
    """

    spec: ModelSpec

    def __post_init__(self):
        if isinstance(self.spec, type) or not isinstance(self.spec, ModelSpec):
            raise InputError(f"PerOutput takes a configuration, such as PerOutput(GPNARX()), received {self.spec!r}")

    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedPerOutput":
        """Fit one model per output, one after the other, all with the same seed.

        Ctrl-C during the last fit returns all models; an earlier one raises KeyboardInterrupt, because outputs would
        have no model.

        Parameters
        ----------
        train : Series or list of Series
            The training records. A record without any measured value of an output is left out of that output's fit.
        seed : int
            Seed of every fit.
        progress : bool
            Show a progress bar, or where the output is not a terminal, a line now and then.

        Returns
        -------
        FittedPerOutput

        Raises
        ------
        InputError
            If the records do not fit the configuration.
        """
        seed, records = check_seed(seed), as_records(train)
        prep = Preprocessor.from_records(records, Order(0, 0, 1))  # refuses a constant column before the first fit
        first, fitted = records[0], {}
        parts = [_split_records(records, column) for column in range(len(first.output_names))]
        # Outputs with gaps first: a model that needs complete records refuses them before the other fits.
        gaps_first = sorted(range(len(parts)), key=lambda column: -sum(record.missing for record in parts[column]))
        with progress_bar("fitting output by output", len(parts), progress) as update:
            for column in gaps_first:
                fitted[column] = self._fit_one(parts[column], seed)
                update(len(fitted), f"{first.output_names[column]} {fitted[column].status}")
                if fitted[column].status is Status.INTERRUPTED and len(fitted) < len(parts):
                    raise KeyboardInterrupt
        members = [fitted[column] for column in range(len(parts))]
        prep = replace(prep, order=_find_largest_order(members))
        status = min((member.status for member in members), key=WORST_FIRST.index)
        return FittedPerOutput(prep, status, seed, tuple(members))

    def _fit_one(self, records: Sequence[Series], seed: int) -> Fitted:
        member = self.spec.fit(records, seed=seed)
        if not isinstance(member, Fitted):
            raise InputError(
                f"PerOutput takes a configuration whose fit returns a Fitted (revarb.models.base), received "
                f"{self.spec!r}, which returns a {type(member).__name__}"
            )
        return member


@dataclass(frozen=True, eq=False, repr=False)
class FittedPerOutput(Fitted):
    """Separate trained models of the outputs, with the surface of one.

    Attributes
    ----------
    members : tuple of Fitted
        The trained models, in the order of the outputs.
    status : Status
        The worst of their statuses.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.column_stack([np.convolve(u, [0.0, 0.5])[:60], np.convolve(u, [0.0, 0.0, 1.0])[:60]])
    >>> model = revarb.baselines.PerOutput(revarb.ARX(lags=1, input_lags=2)).fit(revarb.Series(u, y))
    >>> [type(member).__name__ for member in model.members]
    ['FittedARX', 'FittedARX']
    """

    members: tuple[Fitted, ...]

    @property
    def methods(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride] (the members' class's)
        """Methods of `simulate`: those that a comparison shows of the members."""
        return self.members[0].methods

    @property
    def skip(self) -> int:
        """Number of first rows in which a cold run of a member settles; scores leave them out."""
        return max(member.skip for member in self.members)

    def simulate(
        self, u: ArrayLike | None = None, method: str | None = None, *, steps: int | None = None
    ) -> Trajectory:
        """Simulate every output separately from a cold start.

        Parameters
        ----------
        u : array-like [T, inputs] or data frame
            Inputs, raw units; None for a system without inputs.
        method : str, optional
            One of `methods`; by default the last.
        steps : int, optional
            Number of steps of a system without inputs, instead of `u`.

        Returns
        -------
        Trajectory
            T rows, raw units.

        Raises
        ------
        InputError
            If the inputs do not fit the model.
        """
        method = self.methods[-1] if method is None else method
        if method not in self.methods:
            known = " or ".join(repr(name) for name in self.methods)
            raise InputError(f"method must be {known}, received {method!r}; for others simulate the members")
        paths = [member.simulate(u, method, steps=steps) for member in self.members]
        bands = [path.std for path in paths if path.std is not None]
        marks = [path.output_extrapolates for path in paths if path.output_extrapolates is not None]
        degrees = {path.degrees_of_freedom for path in paths}
        return replace(
            paths[0],
            mean=np.concatenate([path.mean for path in paths], axis=1),
            std=np.concatenate(bands, axis=1) if bands else None,
            skip=max(path.skip for path in paths),
            output_names=self.output_names,
            output_extrapolates=np.concatenate(marks, axis=1) if len(marks) == len(paths) else None,
            degrees_of_freedom=degrees.pop() if len(degrees) == 1 else None,
        )


def _split_records(records: Sequence[Series], column: int) -> list[Series]:
    # The records with one output; those without a measured value of it are left out.
    parts = [
        Series(record.u, record.y[:, column], record.dt, record.input_names, (record.output_names[column],))
        for record in records
    ]
    return [part for part in parts if part.missing < len(part)]


def _find_largest_order(members: Sequence[Fitted]) -> Order:
    # A model that chooses its order (ARX) can choose a different one for every output.
    orders = [member.order for member in members]
    return Order(max(order.lags for order in orders), max(order.input_lags for order in orders), orders[0].input_delay)


def _write_per_output(model: FittedPerOutput) -> tuple[dict[str, Any], Any]:
    headers, arrays = model_file.members_parts(model.members)
    return {"members": headers}, arrays


def _read_per_output(header: model_file.Header, arrays: model_file.Arrays) -> FittedPerOutput:
    fields, members = model_file.common_fields(header), model_file.members_from_parts(header["members"], arrays)
    names = tuple(name for member in members for name in member.output_names)
    if names != fields.preprocessor.output_names:
        raise InputError(f"its members have the outputs {list(names)}, but it names {list(header['output_names'])}")
    return FittedPerOutput(*fields, tuple(members))


model_file.register_format(model_file.ModelFormat("per output", FittedPerOutput, _write_per_output, _read_per_output))
