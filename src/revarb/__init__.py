"""Recurrent Gaussian processes: learn nonlinear dynamics from short records, simulate them with honest bands."""

from importlib.metadata import version

from revarb import baselines, datasets
from revarb.baselines import ARX, GPNARX, LSTM, MLPNARX, Mean
from revarb.comparison import Comparison, compare
from revarb.errors import InputError
from revarb.fitted import FittedRGP, load
from revarb.recipe import Recipe, Stage
from revarb.rgp import RGP
from revarb.scores import Scores, scores
from revarb.series import Series
from revarb.trajectory import Trajectory

__version__ = version("revarb")

__all__ = [
    "ARX",
    "GPNARX",
    "LSTM",
    "MLPNARX",
    "RGP",
    "Comparison",
    "FittedRGP",
    "InputError",
    "Mean",
    "Recipe",
    "Scores",
    "Series",
    "Stage",
    "Trajectory",
    "baselines",
    "compare",
    "datasets",
    "load",
    "scores",
]
