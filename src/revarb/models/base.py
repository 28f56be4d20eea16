"""The surface that every trained model has."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, as_records
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.models.choice import COLD_RUNS, Choice, describe_held_out, format_error
from revarb.models.model_file import save_model
from revarb.models.recipe import Status
from revarb.models.summary import Summary, SummaryTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_NOT_HERE = {  # methods that some models have, and what a user of another model should do
    "refit": "cannot be refitted, only an RGP, an ARX or their mixture; fit it again to all records",
    **dict.fromkeys(
        ("export", "step_state", "to_casadi"),
        "cannot be exported; an RGP, an ensemble of RGPs, ARX, GP-NARX and MLP-NARX can",
    ),
}


class MissingMethodError(InputError, AttributeError):
    """A model of this kind does not have the method: `hasattr` is false, and a call says what to do instead."""


@runtime_checkable
class ModelSpec(Protocol):
    """An untrained model: `revarb.RGP`, a baseline, or a user's own class with this method."""

    def fit(self, train: Sequence[Series], seed: int = ...) -> Any:
        """Train it on a list of records."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Fitted(ABC):
    """A trained model of any kind.

    Attributes
    ----------
    preprocessor : Preprocessor
        Names, sampling interval, scaling and order of the model.
    status : Status
        How its training ended.
    seed : int
        Seed of its training.
    choice : Choice or None
        What was tried and why this model was taken; None unless `revarb.fit` chose it.
    """

    preprocessor: Preprocessor
    status: Status
    seed: int
    choice: Choice | None = field(default=None, kw_only=True)

    methods: ClassVar[tuple[str, ...]]
    """Methods of `simulate` that a comparison shows; the mean-only run first, where there is one."""

    def __repr__(self) -> str:
        columns = f"inputs {self.input_names}, outputs {self.output_names}"
        return f"{type(self).__name__}({columns}, status={self.status.label!r}{self._error_text})"

    def _repr_html_(self) -> str:
        return Summary(type(self).__name__, (self._common_table(),))._repr_html_()

    @property
    def _error_text(self) -> str:
        # The held-out error of a chosen model, for its representation.
        known = None if self.choice is None else self.choice.error
        return "" if known is None else f", held-out error {format_error(known)}"

    if not TYPE_CHECKING:  # a type checker must not believe that models have every attribute

        def __getattr__(self, name: str):
            if name in _NOT_HERE:
                raise MissingMethodError(f"a {type(self).__name__} {_NOT_HERE[name]}")
            return self.__getattribute__(name)  # raises the usual error, also that of a property which failed

    @abstractmethod
    def simulate(self, u: Any = None, method: Any = ..., *, steps: int | None = ...) -> Trajectory:
        """Free simulation from a cold start, raw units in and out.

        Parameters
        ----------
        u : array-like [T, inputs] or data frame
            Inputs; None for a system without inputs.
        method : str
            How to simulate: one of `methods`, or another one that the model's own `simulate` lists.
        steps : int, optional
            Number of steps for a system without inputs.

        Returns
        -------
        Trajectory
            One row per row of `u`.
        """

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to one file (atomic write); `revarb.load` reads it.

        Parameters
        ----------
        path : path
            Name of the file, by convention with the ending `.rgp`.

        Returns
        -------
        pathlib.Path
            The file that was written.

        Raises
        ------
        InputError
            If the file cannot be written.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(60.0))
        >>> model = revarb.Mean().fit(revarb.Series(u, 3.0 + u))
        >>> with TemporaryDirectory() as folder:
        ...     file = model.save(f"{folder}/mean.rgp")
        ...     revarb.load(file)
        FittedMean(inputs ('u',), outputs ('y',), status='converged')
        """
        return save_model(self, path)

    def plot_fit(self, records: Series | Sequence[Series], fig: "Figure | SubFigure | None" = None) -> "Figure":
        """Draw the measured outputs and the free run over the training records.

        Parameters
        ----------
        records : Series or list of Series
            The training records; a model does not keep them.
        fig : matplotlib Figure or SubFigure, optional
            Where to draw; its size and layout stay. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("fit.png")`; a notebook displays it.

        Raises
        ------
        InputError
            If the records have other columns than the model.
        ComputationError
            If the free run diverges.
        """
        from revarb.models.figures import TimeLine, draw_free_runs  # matplotlib is slow to import

        training = self._check_outputs(records)
        paths = [self.simulate(each.u) if self.input_names else self.simulate(steps=len(each)) for each in training]
        lags = f"{self.order.lags} lags and {self.order.input_lags} input lags"
        title = f"Training records, free run of a {type(self).__name__} with {lags}"
        return draw_free_runs(TimeLine.of_records(training), paths, [record.y for record in training], title, fig)

    def _check_outputs(self, records: Series | Sequence[Series]) -> Sequence[Series]:
        training = as_records(records)
        if any(record.output_names != self.output_names for record in training):
            raise InputError(f"records must have the outputs {list(self.output_names)}; pass the training records")
        return training

    @property
    def verdict(self) -> str | None:
        """What the held-out error says about the model, in a sentence; None where nothing was held out."""
        choice = self.choice
        if choice is None or choice.mean_error is None or (error := choice.error) is None:
            return None
        if choice.scored_by != COLD_RUNS:
            return f"no free run is much better than the mean: {self._flaw or 'use it for predictions only'}"
        return describe_held_out(error, choice.linear_error, choice.mean_error, flaw=self._flaw)

    @property
    def _flaw(self) -> str:
        # Why a model with a small error is not to be used as it is.
        if self.status is Status.INTERRUPTED:
            return "interrupted, finish the fit before you use it"
        return "" if self._has_bands else "its bands are not calibrated, use its mean only"

    @property
    def _has_bands(self) -> bool:
        # Whether its bands come from held-out blocks.
        return True

    def summary(self) -> Summary:
        """What the model is and how its training went; for an RGP also which lags matter, noises and calibration.

        Returns
        -------
        Summary
            Tables that print as text; `rich.print` draws them with colours, a notebook as HTML.
        """
        chosen = () if self.choice is None else (self.choice.table(),)
        return Summary(type(self).__name__, (self._common_table(), *self._own_tables(), *chosen))

    def _own_tables(self) -> tuple[SummaryTable, ...]:
        # What a kind of model adds to its summary.
        return ()

    def _common_table(self) -> SummaryTable:
        order = self.order
        rows = (
            ("inputs", ", ".join(self.input_names) or "none"),
            ("outputs", ", ".join(self.output_names)),
            ("sampling interval", f"{self.dt:g}"),
            ("lags, input lags, input delay", f"{order.lags}, {order.input_lags}, {order.input_delay}"),
            ("training", f"{self.status.label}, seed {self.seed}"),
            *(() if self.verdict is None else (("verdict", self.verdict),)),
        )
        return SummaryTable("model", ("", ""), rows)

    @property
    def scaling(self) -> Standardiser:
        """Means and standard deviations of the training data."""
        return self.preprocessor.scaling

    @property
    def order(self) -> Order:
        """How far back the model looks: `lags`, `input_lags`, `input_delay`."""
        return self.preprocessor.order

    @property
    def skip(self) -> int:
        """Number of first rows of a cold run that scores leave out."""
        return self.preprocessor.skip

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.preprocessor.input_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.preprocessor.output_names

    @property
    def dt(self) -> float:
        """Sampling interval."""
        return self.preprocessor.dt
