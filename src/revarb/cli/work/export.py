"""Write a model file as the files of another tool."""

from collections.abc import Sequence
from pathlib import Path

from revarb.cli.application import screen
from revarb.errors import InputError
from revarb.models.export.writer import find_format
from revarb.models.model_file import load
from revarb.runtime.files import check_writable


def export_file(
    model_file: Path,
    target: Path,
    to: str | None,
    single: bool,
    with_std: bool,
    step_only: bool,
    name: str | None,
    units: Sequence[str],
) -> None:
    """`revarb export` with its options."""
    if str(target) == "-":
        raise InputError("-o -: an export is not a text for the standard output; name a file")
    kind = find_format(target, to)  # before a large file is read
    if model_file.resolve() in (check_writable(target).resolve(), target.with_suffix(".h").resolve()):
        raise InputError(f"-o {target} would overwrite the model; choose another name")
    written = load(model_file).export(
        target,
        kind,
        name=name,
        precision="float" if single else "double",
        with_std=with_std,
        units=_read_units(units) or None,
        step_only=step_only,
    )
    for path in written:
        screen.print(f"wrote {path}, {path.stat().st_size / 1000:.1f} kB", soft_wrap=True)


def _read_units(given: Sequence[str]) -> dict[str, str]:
    parts = [text.rpartition("=") for text in given]
    for text, (column, _, unit) in zip(given, parts, strict=True):
        if not column or not unit:
            raise InputError(f"--unit takes COLUMN=UNIT, received {text!r}")
    return {column: unit for column, _, unit in parts}
