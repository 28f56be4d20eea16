"""Export formats, and the files that they write: the ending of the file or a name chooses the format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from revarb.errors import InputError, describe
from revarb.export.c_program import CProgram
from revarb.export.c_source import make_c
from revarb.export.c_text import SUFFIXES, check_name, find_units
from revarb.export.casadi import make_casadi, make_casadi_with_std, serialise
from revarb.export.fmu import make_fmu
from revarb.export.onnx import make_onnx
from revarb.export.step_model import MemberParts, make_step_model
from revarb.runtime.files import check_writable, is_stream, write_atomic
from revarb.runtime.interrupts import defer_interrupts


@dataclass(frozen=True)
class ExportOptions:
    """The options of `Exportable.export`."""

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


Parts = tuple[MemberParts, ...]
FileContents = dict[Path, bytes]  # in the order in which they are written


class ExportFormat(NamedTuple):
    """A kind of export: its usual ending, what makes its files, and the options that it has."""

    ending: str
    make: Callable[[Parts, Path, ExportOptions], FileContents]
    options: tuple[str, ...]


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
    raise InputError(
        f"the ending of {describe(str(path))} is that of no export; choose one of these, or pass to=: {known}"
    )


def export_model(parts: Parts, path: Path, to: str | None, options: ExportOptions) -> tuple[Path, ...]:
    """Write a model as the files of another tool; a failure leaves the files of before."""
    kind = find_format(path, to)
    for option in options.given:
        if option not in FORMATS[kind].options:
            other = next(name for name, each in FORMATS.items() if option in each.options)
            raise InputError(f"an export to {kind} has no option {option}; leave it out, or export to {other}")
    check_writable(path)
    return _write_together(FORMATS[kind].make(parts, path, options))


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


def _make_program(parts: Parts, path: Path, options: ExportOptions) -> CProgram:
    model = make_step_model(parts)
    units = find_units((*model.input_names, *model.output_names), options.units)
    return CProgram(
        model, check_name(options.name, path), options.precision, units, parts if options.with_std else None
    )


def _make_c_files(parts: Parts, path: Path, options: ExportOptions) -> FileContents:
    header = path.with_suffix(".h")
    if path.suffix != ".c" or is_stream(path):
        raise InputError(f"an export to c writes FILE.c and FILE.h; name a file that ends in .c, received {path}")
    check_writable(header)
    header_text, source_text = make_c(_make_program(parts, path, options), header.name)
    # The header first: its mark keeps the source of an earlier export from being compiled with it.
    return {header: header_text.encode(), path: source_text.encode()}


def _make_fmu_file(parts: Parts, path: Path, options: ExportOptions) -> FileContents:
    return {path: make_fmu(_make_program(parts, path, options))}


def _make_onnx_file(parts: Parts, path: Path, options: ExportOptions) -> FileContents:
    kind = "step" if options.with_std or options.step_only else "run"
    return {path: make_onnx(make_step_model(parts), kind, parts if options.with_std else None)}


def _make_casadi_file(parts: Parts, path: Path, options: ExportOptions) -> FileContents:
    step = make_casadi_with_std(parts) if options.with_std else make_casadi(make_step_model(parts))
    return {path: serialise(step)}


FORMATS = {
    "c": ExportFormat(".c", _make_c_files, ("name", "precision", "with_std", "units")),
    "fmu": ExportFormat(".fmu", _make_fmu_file, ("name", "precision", "units")),
    "onnx": ExportFormat(".onnx", _make_onnx_file, ("with_std", "step_only")),
    "casadi": ExportFormat(".casadi", _make_casadi_file, ("with_std",)),
}
