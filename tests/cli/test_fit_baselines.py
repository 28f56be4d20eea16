"""`revarb fit --model`: baselines that are fitted, simulated and used for predictions by name."""

from dataclasses import dataclass

import numpy as np
import pytest

import revarb
from revarb.baselines.gp_narx import FittedGPNARX
from revarb.baselines.lstm import FittedLSTM
from revarb.baselines.mlp_narx import FittedMLPNARX
from revarb.cli import fit_request
from revarb.data.table_file import Table
from revarb.errors import ComputationError
from revarb.models.base import Fitted
from revarb.models.fitted_arx import FittedARX
from revarb.models.recipe import Status
from support.command_line import START, run, succeed


@dataclass(frozen=True)
class QuickMLP(revarb.MLPNARX):
    units: tuple[int, ...] = (3,)
    iterations: int = 15


@dataclass(frozen=True)
class QuickLSTM(revarb.LSTM):
    layers: tuple[int, ...] = (1,)
    units: int = 4
    updates: int = 25


LAGS = ("--lags", "2", "--input-lags", "2")
MODELS = {
    "arx": (FittedARX, LAGS, "residuals"),
    "gp-narx": (FittedGPNARX, LAGS, "moments"),
    "mlp-narx": (FittedMLPNARX, LAGS, "residuals"),
    "lstm": (FittedLSTM, ("--input-delay", "1"), "residuals"),
}


@pytest.fixture(autouse=True)
def quick_networks(monkeypatch):
    monkeypatch.setitem(fit_request.BASELINES, "mlp-narx", QuickMLP)
    monkeypatch.setitem(fit_request.BASELINES, "lstm", QuickLSTM)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_by_its_name_is_fitted_simulated_and_predicts(capsys, folder, drawn, name):
    kind, options, method = MODELS[name]
    out = succeed(capsys, *START, "--model", name, *options, "--seed", "3")
    assert "fitted 1 record(s), 60 samples in" in out
    model = revarb.load("m.rgp")
    assert type(model) is kind and model.seed == 3
    held_out = "nothing was held out" if name == "gp-narx" else "error on held-out quarters "
    assert held_out in out and ("(ARX " in out) is (name in ("mlp-narx", "lstm"))
    assert "wrote m.rgp\nwrote m.fit.png\n" in out and drawn[-1][0].startswith("Training records")

    out = succeed(capsys, "simulate", "m.rgp", "test.csv", "-o", "path.csv")
    assert "RMSE" in out and method in out
    expected = model.simulate(Table("test.csv").columns(["valve"])).mean
    np.testing.assert_allclose(Table("path.csv").columns(["pressure_mean"]), expected, rtol=1e-6, atol=1e-9)

    if name != "lstm":  # it cannot predict
        out = succeed(capsys, "predict", "m.rgp", "test.csv", "-o", "p.csv", "--horizon", "2")
        assert "prediction, 2 steps ahead" in out and method in out


def test_a_free_run_that_diverges_has_no_picture(capsys, folder, monkeypatch):
    def diverge(model, records):
        raise ComputationError("the simulation diverged")

    monkeypatch.setattr(Fitted, "plot_fit", diverge)
    warning = "warning: there is no picture of the fit: the simulation diverged\n"
    out = succeed(capsys, *START, "--model", "arx", *LAGS, err=warning)
    assert "wrote m.rgp\n" in out and "fit.png" not in out


def test_what_an_interrupted_fit_leaves_is_kept(capsys, folder, monkeypatch):
    real = revarb.GPNARX.fit

    def fit_until_ctrl_c(spec, *arguments, **options):
        fitted = real(spec, *arguments, **options)
        object.__setattr__(fitted, "status", Status.INTERRUPTED)
        return fitted

    monkeypatch.setattr(revarb.GPNARX, "fit", fit_until_ctrl_c)
    code, out, err = run(capsys, *START, "--model", "gp-narx", *LAGS)
    assert code == 130 and err == "interrupted: the best model so far was kept\n" and "wrote m.rgp" in out
    assert revarb.load("m.rgp").status is Status.INTERRUPTED
