"""Recurrent Gaussian processes: learn nonlinear dynamics from short records, simulate them with calibrated bands."""

from importlib.metadata import version

from revarb import baselines, datasets
from revarb.baselines import ARX, GPNARX, LSTM, MLPNARX, Mean
from revarb.config.recipe import Recipe, Stage
from revarb.config.recognition import Recognition
from revarb.config.rgp import RGP
from revarb.data.series import Series, Window
from revarb.data.tables import read_records
from revarb.data.trajectory import Trajectory
from revarb.errors import ComputationError, InputError, RevarbError
from revarb.evaluation.comparison import Comparison, compare
from revarb.evaluation.scoring import Scores, scores
from revarb.models.calibration import Calibration
from revarb.models.choice import Candidate, Choice
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.live import Live, LiveStep
from revarb.models.model_file import load
from revarb.runtime.mesh import row_mesh
from revarb.training.choose import Chosen, fit

__version__ = version("revarb")

__all__ = [
    "ARX",
    "GPNARX",
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
    "InputError",
    "Live",
    "LiveStep",
    "Mean",
    "Recipe",
    "Recognition",
    "RevarbError",
    "Scores",
    "Series",
    "Stage",
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
