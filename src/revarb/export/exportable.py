"""The methods of trained models that can be exported, and the formats: the ending of the file or a name chooses one."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError, describe
from revarb.export.c_program import make_c
from revarb.export.c_text import SUFFIXES, CProgram, check_name, find_units
from revarb.export.fmu import make_fmu
from revarb.export.step_model import MemberParts, make_start_vector, make_step_model
from revarb.runtime.files import check_writable, is_stream, write_atomic
from revarb.runtime.interrupts import defer_interrupts
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
        target, options = Path(path), Options(name, precision, with_std, units, step_only)
        options.check(kind := find_format(target, to))
        check_writable(target)
        return _write_together(FORMATS[kind].make(self.step_parts(), target, options))

    @with_numerics
    def step_state(self, start: Any = "cold") -> Float64[np.ndarray, " S"]:
        """The state vector from which the step of an exported model starts (`to_casadi`, ONNX).

        It has the joint state of every member, z-scored (the windows of its hidden layers, newest first), and then the
        last inputs in raw units, oldest first, row by row.

        Parameters
        ----------
        start : str, Window or StartState
            "cold": states and past inputs at their means over the training records. "continue", a `Window(u, y)`, or
            one of `final_states`, as in `FittedRGP.simulate`. A NARX model takes the last measured outputs of a window.

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
        with _need("a CasADi function", "casadi"):
            from revarb.export.casadi import make_casadi
        return make_casadi(self.step_parts(), horizon, with_std)


@contextmanager
def _need(what: str, extra: str) -> Iterator[None]:
    # For the imports of what is installed with an extra only.
    try:
        yield
    except ImportError as error:
        raise InputError(f'{what} needs {error.name}; pip install "revarb[{extra}]"') from None


class Options(NamedTuple):
    """The options of `Exportable.export`."""

    name: str | None = None
    precision: str = "double"
    with_std: bool = False
    units: Mapping[str, str] | None = None
    step_only: bool = False

    def check(self, kind: str) -> None:
        """Refuse what a format does not have."""
        if self.precision not in SUFFIXES:
            raise InputError(f"precision must be 'double' or 'float', received {describe(self.precision)}")
        for option, value in self._asdict().items():
            if value != self._field_defaults[option] and option not in FORMATS[kind].options:
                other = next(name for name, each in FORMATS.items() if option in each.options)
                raise InputError(f"an export to {kind} has no option {option}; leave it out, or export to {other}")


Parts = tuple[MemberParts, ...]
FileContents = dict[Path, bytes]  # in the order in which they are written


class ExportFormat(NamedTuple):
    """A kind of export: its usual ending, what makes its files, and the options that it has."""

    ending: str
    make: Callable[[Parts, Path, Options], FileContents]
    options: tuple[str, ...]


def find_format(path: Path, to: str | None) -> str:
    """The format that was named, or else that of the ending."""
    known = ", ".join(f"{name} ({each.ending})" for name, each in FORMATS.items())
    if to is not None and to not in FORMATS:
        raise InputError(f"a model can be exported to {known}; received {describe(to)}")
    by_ending = next((name for name, each in FORMATS.items() if path.suffix.lower() == each.ending), to)
    if to not in (None, by_ending):
        raise InputError(f"{describe(str(path))} has the ending of {by_ending}, not of {to}; leave out one of them")
    if by_ending is not None:
        return by_ending
    raise InputError(
        f"the ending of {describe(str(path))} is that of no export; choose one of these, or pass to=: {known}"
    )


def _write_together(contents: FileContents) -> tuple[Path, ...]:
    # All files or none: each one atomically, and those before one that fails are put back.
    before: dict[Path, bytes | None] = {}
    with defer_interrupts():
        try:
            for path, content in contents.items():
                old = path.read_bytes() if len(contents) > 1 and path.is_file() else None
                write_atomic(path, content)
                before[path] = old
        except BaseException:
            for path, old in before.items():
                path.unlink(missing_ok=True) if old is None else write_atomic(path, old)
            raise
    return tuple(contents)


def _make_program(parts: Parts, path: Path, options: Options) -> CProgram:
    model = make_step_model(parts)
    units = find_units((*model.input_names, *model.output_names), options.units)
    return CProgram(
        model, check_name(options.name, path), options.precision, units, parts if options.with_std else None
    )


def _make_c_files(parts: Parts, path: Path, options: Options) -> FileContents:
    header = path.with_suffix(".h")
    if path.suffix != ".c" or is_stream(path):
        raise InputError(f"an export to c writes FILE.c and FILE.h; name a file that ends in .c, received {path}")
    check_writable(header)
    header_text, source_text = make_c(_make_program(parts, path, options), header.name)
    # The header first: its mark keeps the source of an earlier export from being compiled with it.
    return {header: header_text.encode(), path: source_text.encode()}


def _make_fmu_file(parts: Parts, path: Path, options: Options) -> FileContents:
    return {path: make_fmu(_make_program(parts, path, options))}


def _make_onnx_file(parts: Parts, path: Path, options: Options) -> FileContents:
    with _need("an ONNX file", "onnx"):
        from revarb.export.onnx import make_onnx
    return {path: make_onnx(parts, options.step_only, options.with_std)}


def _make_casadi_file(parts: Parts, path: Path, options: Options) -> FileContents:
    with _need("a CasADi function", "casadi"):
        from revarb.export.casadi import make_casadi, serialise
    return {path: serialise(make_casadi(parts, with_std=options.with_std))}


FORMATS = {
    "c": ExportFormat(".c", _make_c_files, ("name", "precision", "with_std", "units")),
    "fmu": ExportFormat(".fmu", _make_fmu_file, ("name", "precision", "units")),
    "onnx": ExportFormat(".onnx", _make_onnx_file, ("with_std", "step_only")),
    "casadi": ExportFormat(".casadi", _make_casadi_file, ("with_std",)),
}
