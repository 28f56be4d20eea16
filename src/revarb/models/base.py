"""The surface that every trained model has."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, as_records
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.models.choice import COLD_RUNS, Choice
from revarb.models.held_out_verdict import state_held_out
from revarb.models.summary import Summary, SummaryTable
from revarb.optim.status import Status
from revarb.runtime.numerics import with_numerics

if TYPE_CHECKING:
    import casadi
    from matplotlib.figure import Figure


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
        return f"{type(self).__name__}({columns}, status={self.status.words!r})"

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
        from revarb.models.model_file import save_model  # which imports this module

        return save_model(self, path)

    @with_numerics
    def export(
        self,
        path: str | os.PathLike[str],
        to: str | None = None,
        *,
        name: str | None = None,
        precision: str = "double",
        with_std: bool = False,
        units: Mapping[str, str] | None = None,
        step_only: bool = False,
    ) -> tuple[Path, ...]:
        """Write one step of the model for another tool: state and inputs in, next state and outputs out.

        It is the step of the mean-only run, raw units in and out; an ensemble gives the mean of its members.

        Parameters
        ----------
        path : path
            The file: `model.c` (`model.h` is written beside it), `model.fmu`, `model.onnx` or `model.casadi`.
        to : "c", "fmu", "onnx" or "casadi", optional
            The format; by default that of the ending of `path`.
        name : str, optional
            What the functions of a C program, or the FMU, are called; by default as the file.
        precision : "double" or "float"
            The type of the numbers of a C program, also inside an FMU.
        with_std : bool
            C: also the standard deviation of the outputs, by propagated moments where the model has them. CasADi and
            ONNX: that of one step, given the state before it exactly.
        units : dict, optional
            Units by column, for the comments of a C program and the variables of an FMU; by default what a name has in
            brackets, as "level [cm]".
        step_only : bool
            ONNX: the step alone, instead of the run over any number of rows; with `with_std` it always is.

        Returns
        -------
        tuple of pathlib.Path
            The files that were written, each one atomically.

        Raises
        ------
        InputError
            If the model cannot be exported, or the file cannot be written.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(60.0) ** 1.5)
        >>> model = revarb.ARX(lags=2, input_lags=2).fit(revarb.Series(u, np.convolve(u, [0.0, 0.5, 0.3])[:60]))
        >>> with TemporaryDirectory() as folder:
        ...     [file.name for file in model.export(f"{folder}/tank.c")]
        ['tank.h', 'tank.c']
        """
        from revarb.models.export.writer import ExportOptions, export_model  # which imports this module

        return export_model(self, Path(path), to, ExportOptions(name, precision, with_std, units, step_only))

    @with_numerics
    def step_state(self, start: Any = "cold") -> Float64[np.ndarray, " S"]:
        """The state vector from which the step of an exported model starts (`to_casadi`, ONNX).

        It has the joint state of every member, z-scored (the windows of its hidden layers, newest first), and then the
        last inputs in raw units, oldest first, row by row.

        Parameters
        ----------
        start : str, Window or StartState
            "cold": zero states, past inputs at their training mean. "continue", a `Window(u, y)`, or one of
            `final_states`, as in `FittedRGP.simulate`. A NARX model takes the last measured outputs of the window.

        Returns
        -------
        array [S]

        Raises
        ------
        InputError
            If the model has no step that can be exported, or no such start.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(60.0) ** 1.5)
        >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:60]
        >>> model = revarb.GPNARX(lags=1, input_lags=2, iterations=5).fit(revarb.Series(u, y))
        >>> model.step_state("cold").shape
        (3,)
        >>> bool(np.allclose(model.step_state(revarb.Window(u, y))[1:], u[-2:]))
        True
        """
        from revarb.models.export.start_vector import make_start_vector  # which imports this module

        return make_start_vector(self, start)

    def to_casadi(self, horizon: int | None = None, with_std: bool = False) -> "casadi.Function":
        """The mean-only run as a CasADi function, for optimisation and control (extra `[casadi]`).

        It is built from CasADi's own operations: it can be differentiated and put into other expressions, and
        `generate` writes C code of it. Inputs and outputs are in raw units; `step_state` has the state to start from.

        Parameters
        ----------
        horizon : int, optional
            Number of steps; by default a single one.
        with_std : bool
            Also the standard deviation of a measurement of y, given the state before the step exactly; uncertainty
            passes from layer to layer to first order. Of a single step only.

        Returns
        -------
        casadi.Function
            `step`: (state, u) → (next_state, y), or (next_state, y, std). With `horizon`, `run`: (state, u [inputs ×
            horizon]) → (final_state, y [outputs × horizon]); columns are steps, as in CasADi's `mapaccum`.

        Raises
        ------
        InputError
            If the model has no step that can be exported or no variance of its own, or CasADi is not installed.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(60.0) ** 1.5)
        >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:60]
        >>> model = revarb.ARX(lags=2, input_lags=2).fit(revarb.Series(u, y))
        >>> run = model.to_casadi(horizon=20)
        >>> final_state, path = run(model.step_state(revarb.Window(u[:40], y[:40])), u[None, 40:])
        >>> bool(np.allclose(np.asarray(path), y[None, 40:]))
        True
        """
        from revarb.models.export.casadi_function import make_casadi  # these import this module
        from revarb.models.export.casadi_std import make_casadi_with_std
        from revarb.models.export.step_model import make_step_model

        if not with_std:
            return make_casadi(make_step_model(self), horizon)
        if horizon is not None:
            raise InputError("with_std is of one step from a known state; leave horizon out, or simulate by 'moments'")
        return make_casadi_with_std(self)

    def refit(self, records: Series | Sequence[Series], progress: bool = False, *, calibrate: bool = False) -> "Fitted":
        """Train further on more records. Only a single recurrent GP can: as in `FittedRGP.refit`.

        Raises
        ------
        InputError
            Models of any other kind are fitted again.
        """
        raise InputError(
            f"a {type(self).__name__} cannot be refitted, only a single recurrent GP; fit it again to all records"
        )

    def plot_fit(self, records: Series | Sequence[Series]) -> "Figure":
        """Draw the measured outputs and the free run over the training records.

        Parameters
        ----------
        records : Series or list of Series
            The training records; a model does not keep them.

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
        from revarb.models.fit_figure import draw_free_runs  # which imports this module, and matplotlib

        return draw_free_runs(self, as_records(records))

    @property
    def verdict(self) -> str | None:
        """What the held-out error says about the model, in a sentence; None where nothing was held out."""
        choice = self.choice
        error = None if choice is None else choice.taken_candidate.error
        if choice is None or choice.mean_error is None or error is None:
            return None
        if choice.scored_by != COLD_RUNS:
            return (
                f"no free run is much better than the mean: use it for predictions only ({error:.2g} of the output's "
                "standard deviation 1 to 3 steps ahead)"
            )
        return state_held_out(error, choice.linear_error, choice.mean_error)

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
            ("training", f"{self.status.words}, seed {self.seed}"),
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
