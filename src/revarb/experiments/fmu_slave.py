"""An FMU of co-simulation, run step by step by FMPy (which is imported here: the module is for those who have it)."""

from pathlib import Path
from typing import Any

import numpy as np
from fmpy import extract, read_model_description
from fmpy.fmi2 import FMU2Slave
from jaxtyping import Float64


class FmuSlave:
    """An FMU 2.0 that takes the inputs of a step and gives its outputs; a context manager."""

    def __init__(self, path: Path, folder: Path):
        about: Any = read_model_description(str(path))
        self._inputs, self._outputs = (
            [each.valueReference for each in about.modelVariables if each.causality == causality]
            for causality in ("input", "output")
        )
        self._dt = float(about.defaultExperiment.stepSize)
        self._unit = FMU2Slave(
            guid=about.guid,
            unzipDirectory=extract(str(path), str(folder)),
            modelIdentifier=about.coSimulation.modelIdentifier,
            instanceName="model",
        )
        self._unit.instantiate()
        self._steps = 0

    def __enter__(self) -> "FmuSlave":
        self._unit.setupExperiment()
        self._unit.enterInitializationMode()
        self._unit.exitInitializationMode()
        return self

    def __exit__(self, *error: Any) -> None:
        self._unit.terminate()
        self._unit.freeInstance()

    def step(self, u: Float64[np.ndarray, " Du"]) -> Float64[np.ndarray, " Dy"]:
        """Set the inputs, advance by one sampling interval, read the outputs."""
        self._unit.setReal(self._inputs, u.tolist())
        self._unit.doStep(currentCommunicationPoint=self._steps * self._dt, communicationStepSize=self._dt)
        self._steps += 1
        return np.array(self._unit.getReal(self._outputs))
