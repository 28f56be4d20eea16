"""Recurrent Gaussian processes: learn nonlinear dynamics from short records, simulate them with calibrated bands."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from revarb import baselines, datasets
    from revarb.analysis.comparison import Comparison, compare
    from revarb.analysis.scores import Scores, scores
    from revarb.baselines import GPNARX, GPSSM, LSTM, MLPNARX, Mean, ReducedRankGPSSM
    from revarb.data.record_files import read_records
    from revarb.data.series import Series, Window
    from revarb.data.trajectory import Trajectory
    from revarb.errors import ComputationError, InputError, QualityWarning, RevarbError
    from revarb.fitting.arx import ARX
    from revarb.models.calibration import Calibration
    from revarb.models.choice import Candidate, Choice
    from revarb.models.ensemble import Ensemble
    from revarb.models.fitted_rgp import FittedRGP
    from revarb.models.linearisation import Linearisation
    from revarb.models.live import Live
    from revarb.models.live_runs import LiveStep
    from revarb.models.model_file import load
    from revarb.models.recipe import Recipe, Recognition, Stage
    from revarb.models.residuals import Residuals
    from revarb.models.responses import FrequencyResponse, StaticGainCurve, StepResponse
    from revarb.models.rgp import RGP
    from revarb.runtime.machine import row_mesh
    from revarb.selection.choose import Chosen, fit

    __version__: str
else:
    # Public names are imported when they are first used (PEP 562): JAX and SciPy take seconds, and `revarb --help`
    # needs neither.
    _MODULES = {
        "revarb.analysis.comparison": ("Comparison", "compare"),
        "revarb.analysis.scores": ("Scores", "scores"),
        "revarb.baselines": ("GPNARX", "GPSSM", "LSTM", "MLPNARX", "Mean", "ReducedRankGPSSM"),
        "revarb.data.record_files": ("read_records",),
        "revarb.data.series": ("Series", "Window"),
        "revarb.data.trajectory": ("Trajectory",),
        "revarb.errors": ("ComputationError", "InputError", "QualityWarning", "RevarbError"),
        "revarb.fitting.arx": ("ARX",),
        "revarb.models.calibration": ("Calibration",),
        "revarb.models.choice": ("Candidate", "Choice"),
        "revarb.models.ensemble": ("Ensemble",),
        "revarb.models.fitted_rgp": ("FittedRGP",),
        "revarb.models.linearisation": ("Linearisation",),
        "revarb.models.live": ("Live",),
        "revarb.models.live_runs": ("LiveStep",),
        "revarb.models.model_file": ("load",),
        "revarb.models.recipe": ("Recipe", "Recognition", "Stage"),
        "revarb.models.residuals": ("Residuals",),
        "revarb.models.responses": ("FrequencyResponse", "StaticGainCurve", "StepResponse"),
        "revarb.models.rgp": ("RGP",),
        "revarb.runtime.machine": ("row_mesh",),
        "revarb.selection.choose": ("Chosen", "fit"),
    }
    _HOMES = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name):
        if name == "__version__":
            value = _import_module("importlib.metadata").version("revarb")
        elif name in _HOMES:
            if name in ("load", "Chosen"):  # a file can have any kind of model, known once its module is imported
                for module in ("revarb.baselines", "revarb.models.ensemble"):
                    _import_module(module)
            value = getattr(_import_module(_HOMES[name]), name)
        else:
            value = _import_package(name)
        globals()[name] = value
        return value

    def _import_package(name):
        missing = AttributeError(f"module 'revarb' has no attribute {name!r}")
        if name.startswith("_"):
            raise missing
        try:
            return _import_module(f"revarb.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"revarb.{name}":  # something that the package imports is not installed
                raise
            raise missing from None

    def __dir__():
        return sorted([*__all__, "__version__"])

    del TYPE_CHECKING

__all__ = [
    "ARX",
    "GPNARX",
    "GPSSM",
    "LSTM",
    "MLPNARX",
    "RGP",
    "Calibration",
    "Candidate",
    "Choice",
    "Chosen",
    "Comparison",
    "ComputationError",
    "Ensemble",
    "FittedRGP",
    "FrequencyResponse",
    "InputError",
    "Linearisation",
    "Live",
    "LiveStep",
    "Mean",
    "QualityWarning",
    "Recipe",
    "Recognition",
    "ReducedRankGPSSM",
    "Residuals",
    "RevarbError",
    "Scores",
    "Series",
    "Stage",
    "StaticGainCurve",
    "StepResponse",
    "Trajectory",
    "Window",
    "baselines",
    "compare",
    "datasets",
    "fit",
    "load",
    "read_records",
    "row_mesh",
    "scores",
]
