"""Baselines: other models of the same records, with the same `fit` and `simulate` as `revarb.RGP`."""

from revarb.baselines.gp_narx import GPNARX, FittedGPNARX
from revarb.baselines.lstm import LSTM, FittedLSTM
from revarb.baselines.mean import FittedMean, Mean
from revarb.baselines.mlp_narx import MLPNARX, FittedMLPNARX
from revarb.baselines.per_output import FittedPerOutput, PerOutput
from revarb.baselines.state_space.gpssm import GPSSM, FittedGPSSM
from revarb.baselines.state_space.reduced_rank import FittedReducedRankGPSSM, ReducedRankGPSSM
from revarb.fitting.arx import ARX
from revarb.models.fitted_arx import FittedARX

__all__ = [
    "ARX",
    "GPNARX",
    "GPSSM",
    "LSTM",
    "MLPNARX",
    "FittedARX",
    "FittedGPNARX",
    "FittedGPSSM",
    "FittedLSTM",
    "FittedMLPNARX",
    "FittedMean",
    "FittedPerOutput",
    "FittedReducedRankGPSSM",
    "Mean",
    "PerOutput",
    "ReducedRankGPSSM",
]
