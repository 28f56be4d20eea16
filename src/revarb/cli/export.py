"""`revarb export`: a model as C, FMU, ONNX or CasADi."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Option

from revarb.cli import options
from revarb.cli.application import app, check_targets, say
from revarb.errors import InputError
from revarb.runtime.interrupts import exit_on_interrupt


@app.command()
def export(
    model_file: options.ModelFile,
    target: Annotated[
        Path, Option("-o", "--out", help="The file: .c (a header is written beside it), .fmu, .onnx or .casadi.")
    ],
    to: Annotated[
        str | None, Option(metavar="c|fmu|onnx|casadi", help="The format; default: by the ending of the file.")
    ] = None,
    single: Annotated[bool, Option("--float", help="C and FMU: compute in float instead of double.")] = False,
    with_std: Annotated[
        bool,
        Option(
            "--with-std",
            help="Also the standard deviation; C: by propagated moments; CasADi, ONNX: of one step from a known state.",
        ),
    ] = False,
    step_only: Annotated[
        bool, Option("--step", help="ONNX: the step alone, instead of a run over any number of rows.")
    ] = False,
    name: Annotated[
        str | None, Option(help="C and FMU: prefix of the functions; default: the name of the file.")
    ] = None,
    unit: Annotated[
        list[str] | None,
        Option(metavar="COLUMN=UNIT", help="C and FMU: unit of a column; default: what its name has in brackets."),
    ] = None,
) -> None:
    """Export one step of a model to C, FMU, ONNX or CasADi.

    From state and inputs to the next state and outputs, by the mean-only run. An ensemble is exported as the mean of
    its members.
    """
    with exit_on_interrupt():
        from revarb import load
        from revarb.export.exportable import find_format
    if str(target) == "-":
        raise InputError("-o -: an export cannot be written to the standard output; name a file")
    kind = find_format(target, to)  # before a large file is read
    check_targets(f"-o {target}", [target, *([target.with_suffix(".h")] if kind == "c" else [])], [model_file])
    written = load(model_file).export(
        target, kind, name=name, precision="float" if single else "double", with_std=with_std,
        units=_read_units(unit or []) or None, step_only=step_only,
    )  # fmt: skip
    for path in written:
        say(f"wrote {path}, {path.stat().st_size / 1000:.1f} kB")


def _read_units(given: Sequence[str]) -> dict[str, str]:
    units = {}
    for text in given:
        column, _, unit = text.rpartition("=")
        if not column or not unit:
            raise InputError(f"--unit takes COLUMN=UNIT, received {text!r}")
        units[column] = unit
    return units
