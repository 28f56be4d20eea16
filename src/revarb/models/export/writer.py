"""Exports: a trained model as the files of another tool, chosen by the ending of the file or by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from revarb.errors import InputError, describe
from revarb.models.base import Fitted
from revarb.models.export.c_identifiers import check_name, find_units
from revarb.models.export.c_program import CProgram
from revarb.models.export.c_source import make_c
from revarb.models.export.c_tables import SUFFIXES
from revarb.models.export.fmu import make_fmu
from revarb.models.export.moment_model import MomentModel, make_moment_model
from revarb.models.export.one_step_std import describe_std
from revarb.models.export.step_model import StepModel, make_step_model
from revarb.runtime.files import check_writable, is_stream, write_atomic
from revarb.runtime.interrupts import defer_interrupts


@dataclass(frozen=True)
class ExportOptions:
    """What an export can be told beside its file; see `Fitted.export`."""

    name: str | None = None
    precision: str = "double"
    with_std: bool = False
    units: Mapping[str, str] | None = None
    step_only: bool = False

    def __post_init__(self):
        if self.precision not in SUFFIXES:
            raise InputError(f"precision must be 'double' or 'float', received {describe(self.precision)}")

    @property
    def given(self) -> list[str]:
        """Names of the options that differ from their defaults."""
        return [name for name, default in vars(ExportOptions()).items() if getattr(self, name) != default]


@dataclass(frozen=True, eq=False)
class ExportTask:
    """One export: the model, its step, the file, and the options."""

    model: Fitted
    step: StepModel
    path: Path
    options: ExportOptions

    @property
    def program(self) -> CProgram:
        """The step as a C program."""
        names = (*self.step.input_names, *self.step.output_names)
        units = find_units(names, self.options.units)
        std = make_moment_model(self.model) if self.options.with_std else None
        if isinstance(std, MomentModel) and self.options.precision == "float":
            raise InputError("propagated moments need double precision; leave out with_std, or export double")
        return CProgram(self.step, check_name(self.options.name, self.path), self.options.precision, units, std)


FileContents = dict[Path, bytes]  # in the order in which they are written


class ExportFormat(NamedTuple):
    """A kind of export: its usual ending, what makes its files, and the options that it has."""

    ending: str
    make: Callable[[ExportTask], FileContents]
    options: tuple[str, ...] = ()


def export_model(model: Fitted, path: Path, to: str | None, options: ExportOptions) -> tuple[Path, ...]:
    """Write a model as the files of another tool; a failure leaves the files of before."""
    kind = find_format(path, to)
    strange = [name for name in options.given if name not in FORMATS[kind].options]
    if strange:
        raise InputError(
            f"an export to {kind} has no option {strange[0]}; leave it out, or export to {_find_owner(strange[0])}"
        )
    check_writable(path)
    return write_together(FORMATS[kind].make(ExportTask(model, make_step_model(model), path, options)))


def _find_owner(option: str) -> str:
    return next(kind for kind, each in FORMATS.items() if option in each.options)


def find_format(path: Path, to: str | None) -> str:
    """The format that was named, or else that of the ending."""
    known = ", ".join(f"{name} ({each.ending})" for name, each in FORMATS.items())
    if to is not None:
        if to not in FORMATS:
            raise InputError(f"a model can be exported to {known}; received {describe(to)}")
        return to
    for name, each in FORMATS.items():
        if path.suffix.lower() == each.ending:
            return name
    raise InputError(f"the ending of {describe(str(path))} is that of no export; choose one, or say to which: {known}")


def write_together(contents: FileContents) -> tuple[Path, ...]:
    """Write all files or none: each one atomically, and those before one that fails are put back."""
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


def _make_c_files(task: ExportTask) -> FileContents:
    path, header = task.path, task.path.with_suffix(".h")
    if path.suffix != ".c" or is_stream(path):
        raise InputError(f"an export to c writes FILE.c and FILE.h; name a file that ends in .c, received {path}")
    check_writable(header)
    files = make_c(task.program, header.name)
    # The header first: its mark keeps the source of an earlier export from being compiled with it.
    return {header: files.header.encode(), path: files.source.encode()}


def _make_fmu_file(task: ExportTask) -> FileContents:
    return {task.path: make_fmu(task.program)}


def _make_onnx_file(task: ExportTask) -> FileContents:
    from revarb.models.export.onnx_graph import make_onnx  # onnx is optional

    std = describe_std(task.model) if task.options.with_std else None
    return {task.path: make_onnx(task.step, "run" if std is None and not task.options.step_only else "step", std)}


def _make_casadi_file(task: ExportTask) -> FileContents:
    from revarb.models.export.casadi_function import serialise  # CasADi is optional

    return {task.path: serialise(task.model.to_casadi(with_std=task.options.with_std))}


FORMATS = {
    "c": ExportFormat(".c", _make_c_files, ("name", "precision", "with_std", "units")),
    "fmu": ExportFormat(".fmu", _make_fmu_file, ("name", "precision", "units")),
    "onnx": ExportFormat(".onnx", _make_onnx_file, ("with_std", "step_only")),
    "casadi": ExportFormat(".casadi", _make_casadi_file, ("with_std",)),
}
