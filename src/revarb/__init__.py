"""Recurrent Gaussian processes: learn nonlinear dynamics from short records, simulate them with calibrated bands."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from revarb import baselines, datasets
    from revarb.baselines import ARX, GPNARX, GPSSM, LSTM, MLPNARX, Mean, ReducedRankGPSSM
    from revarb.config.recipe import Recipe, Stage
    from revarb.config.recognition import Recognition
    from revarb.config.rgp import RGP
    from revarb.data.series import Series, Window
    from revarb.data.tables import read_records
    from revarb.data.trajectory import Trajectory
    from revarb.errors import ComputationError, InputError, QualityWarning, RevarbError
    from revarb.evaluation.comparison import Comparison, compare
    from revarb.evaluation.scoring import Scores, scores
    from revarb.models.calibration import Calibration
    from revarb.models.choice import Candidate, Choice
    from revarb.models.ensemble import Ensemble
    from revarb.models.fitted_rgp import FittedRGP
    from revarb.models.frequency_response import FrequencyResponse
    from revarb.models.linearisation import Linearisation
    from revarb.models.live import Live, LiveStep
    from revarb.models.model_file import load
    from revarb.models.residuals import Residuals
    from revarb.models.static_gain_curve import StaticGainCurve
    from revarb.models.step_response import StepResponse
    from revarb.runtime.mesh import row_mesh
    from revarb.training.choose import Chosen, fit

    __version__: str
else:
    # Public names are imported when they are first used (PEP 562): JAX and SciPy take seconds, and `revarb --help`
    # needs neither.
    _MODULES = {
        "revarb.baselines": ("ARX", "GPNARX", "GPSSM", "LSTM", "MLPNARX", "Mean", "ReducedRankGPSSM"),
        "revarb.config.recipe": ("Recipe", "Stage"),
        "revarb.config.recognition": ("Recognition",),
        "revarb.config.rgp": ("RGP",),
        "revarb.data.series": ("Series", "Window"),
        "revarb.data.tables": ("read_records",),
        "revarb.data.trajectory": ("Trajectory",),
        "revarb.errors": ("ComputationError", "InputError", "QualityWarning", "RevarbError"),
        "revarb.evaluation.comparison": ("Comparison", "compare"),
        "revarb.evaluation.scoring": ("Scores", "scores"),
        "revarb.models.calibration": ("Calibration",),
        "revarb.models.choice": ("Candidate", "Choice"),
        "revarb.models.ensemble": ("Ensemble",),
        "revarb.models.fitted_rgp": ("FittedRGP",),
        "revarb.models.frequency_response": ("FrequencyResponse",),
        "revarb.models.linearisation": ("Linearisation",),
        "revarb.models.live": ("Live", "LiveStep"),
        "revarb.models.model_file": ("load",),
        "revarb.models.residuals": ("Residuals",),
        "revarb.models.static_gain_curve": ("StaticGainCurve",),
        "revarb.models.step_response": ("StepResponse",),
        "revarb.runtime.mesh": ("row_mesh",),
        "revarb.training.choose": ("Chosen", "fit"),
    }
    _HOMES = {name: module for module, names in _MODULES.items() for name in names}
    _WITH_FILES = ("Chosen", "fit", "load")  # they give models of several kinds, whose file formats must be known

    def __getattr__(name):
        if name == "__version__":
            value = _import_module("importlib.metadata").version("revarb")
        elif name in _HOMES:
            if name in _WITH_FILES:
                _import_module("revarb.baselines")
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
