"""`revarb export`: a model as C, FMU, ONNX or CasADi."""

from pathlib import Path
from typing import Annotated

import typer

from revarb.cli.application import app
from revarb.cli.options import ModelFile
from revarb.runtime.interrupts import exit_on_interrupt


@app.command()
def export(
    model_file: ModelFile,
    target: Annotated[
        Path, typer.Option("-o", "--out", help="The file: .c (a header is written beside it), .fmu, .onnx or .casadi.")
    ],
    to: Annotated[
        str | None, typer.Option(metavar="c|fmu|onnx|casadi", help="The format; default: by the ending of the file.")
    ] = None,
    single: Annotated[bool, typer.Option("--float", help="C and FMU: compute in float instead of double.")] = False,
    with_std: Annotated[
        bool,
        typer.Option(
            "--with-std",
            help="Also the standard deviation; C: by propagated moments; CasADi, ONNX: of one step from a known state.",
        ),
    ] = False,
    step_only: Annotated[
        bool, typer.Option("--step", help="ONNX: the step alone, instead of a run over any number of rows.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="C and FMU: what functions are called; default: as the file.")
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=UNIT", help="C and FMU: unit of a column; default: what its name has in brackets."
        ),
    ] = None,
) -> None:
    """Export one step of a model to C, FMU, ONNX or CasADi.

    From state and inputs to the next state and outputs, by the mean-only run. An ensemble is exported as the mean of
    its members.
    """
    with exit_on_interrupt():
        from revarb.cli.work.export import export_file
    export_file(model_file, target, to, single, with_std, step_only, name, unit or [])
