"""`revarb reproduce export`: trained models in the formats of other tools."""

from revarb.cli.reproduce.options import JsonFile, OnlyRecords, experiments_app
from revarb.runtime.interrupts import exit_on_interrupt


@experiments_app.command("export")
def reproduce_export(only: OnlyRecords = None, json_file: JsonFile = None) -> None:
    """Exports to C, CasADi, ONNX and FMU.

    Difference to the model's own simulation, size, and time per step.
    """
    with exit_on_interrupt():
        from revarb.cli.reproduce.runner import Targets, run_experiment
        from revarb.experiments import load_export
    table = load_export()
    run_experiment(table.only(only) if only else table, 1, 1, Targets(json_file))
