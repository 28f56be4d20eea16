"""Recurrent Gaussian processes: learn nonlinear dynamics from short records, simulate them with honest bands."""

from importlib.metadata import version

from revarb import baselines, datasets
from revarb.baselines import ARX, GPNARX, LSTM, MLPNARX, Mean
from revarb.calibration import Calibration
from revarb.comparison import Comparison, compare
from revarb.ensemble import Ensemble
from revarb.errors import InputError
from revarb.fitted import FittedRGP
from revarb.live import Live, LiveFrame
from revarb.load import load
from revarb.mesh import row_mesh
from revarb.recipe import Recipe, Stage
from revarb.recognition import Recognition
from revarb.rgp import RGP
from revarb.scores import Scores, scores
from revarb.series import Series, Window
from revarb.trajectory import Trajectory

__version__ = version("revarb")

__all__ = [
    "ARX",
    "GPNARX",
    "LSTM",
    "MLPNARX",
    "RGP",
    "Calibration",
    "Comparison",
    "Ensemble",
    "FittedRGP",
    "InputError",
    "Live",
    "LiveFrame",
    "Mean",
    "Recipe",
    "Recognition",
    "Scores",
    "Series",
    "Stage",
    "Trajectory",
    "Window",
    "baselines",
    "compare",
    "datasets",
    "load",
    "row_mesh",
    "scores",
]
