"""The methods of trained models that can be exported."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError
from revarb.export.casadi import make_casadi, make_casadi_with_std
from revarb.export.step_model import MemberParts, make_start_vector, make_step_model
from revarb.export.writer import ExportOptions, export_model
from revarb.runtime.numerics import with_numerics

if TYPE_CHECKING:
    import casadi


class Exportable(ABC):
    """A trained model whose mean-only step can be written for other tools."""

    @abstractmethod
    def step_parts(self) -> tuple[MemberParts, ...]:
        """What an export needs: the parts of the model, or of each member of an ensemble."""

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
            Name of the FMU, and prefix of the functions of a C program; by default that of the file.
        precision : "double" or "float"
            The type of the numbers of a C program, also inside an FMU.
        with_std : bool
            C: also the standard deviation of the outputs, by propagated moments where the model has them. CasADi and
            ONNX: that of one step, given the state before it exactly.
        units : dict, optional
            Units by column, for the comments of a C program and the variables of an FMU; by default what a name has in
            brackets, as "level [cm]".
        step_only : bool
            ONNX: the step alone, instead of the run over any number of rows. Implied by `with_std`.

        Returns
        -------
        tuple of pathlib.Path
            The files that were written, each one atomically.

        Raises
        ------
        InputError
            If the format does not have an option, or the file cannot be written.

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
        options = ExportOptions(name, precision, with_std, units, step_only)
        return export_model(self.step_parts(), Path(path), to, options)

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
            If the model has no such start.

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
        return make_start_vector(self.step_parts(), start)

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
            If the model has no variance of its own, or CasADi is not installed.

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
        if not with_std:
            return make_casadi(make_step_model(self.step_parts()), horizon)
        if horizon is not None:
            raise InputError("with_std is of one step from a known state; leave horizon out, or simulate by 'moments'")
        return make_casadi_with_std(self.step_parts())
