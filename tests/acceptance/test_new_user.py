"""Acceptance tests: what new users tried on files of their own, by the command line, in processes of their own."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import revarb
from support.processes import environment

pytestmark = pytest.mark.slow

QUICK = ("--lags", "3", "--input-lags", "3", "--hidden", "1", "--inducing", "20")
ARX = ("--model", "arx", "--lags", "3", "--input-lags", "3")


def draw(samples=200, seed=0, columns=1):
    """A saturating plant with one state per output and as many inputs, as a table with a column of times, 4 s apart."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.uniform(-1.0, 1.0, (samples // 5 + 1, columns)), 5, axis=0)[:samples]
    mix = np.random.default_rng(99).normal(size=(columns, columns))
    x = np.zeros((samples, columns))
    for k in range(1, samples):
        x[k] = np.linspace(0.7, 0.9, columns) * x[k - 1] + 0.3 * np.tanh(2.0 * u[k - 1] @ mix)
    y = x + 0.01 * rng.normal(size=x.shape)
    inputs, outputs = ({f"{name}{k}": values[:, k] for k in range(columns)} for name, values in (("u", u), ("y", y)))
    return pd.DataFrame({"t": 4.0 * np.arange(samples)} | inputs | outputs)


@pytest.fixture
def command(tmp_path):
    """Run `revarb …` in an empty folder; its standard output."""

    def run(*arguments, status=0):
        done = subprocess.run(
            [sys.executable, "-m", "revarb", *map(str, arguments)],
            cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False,
        )  # fmt: skip
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout

    return run


def test_several_outputs_need_as_many_latent_states():
    """One latent state per layer is too few for two outputs, and the model says so."""
    train, test = (
        revarb.Series(frame[["u0", "u1"]], frame[["y0", "y1"]], 4.0) for frame in (draw(300, 0, 2), draw(300, 1, 2))
    )
    one, two = (
        revarb.RGP(lags=4, input_lags=4, hidden=1, inducing=40, latent_dim=states).fit(train) for states in (1, 2)
    )
    assert one.verdict.endswith("try latent_dim=2 (it has 1 latent state(s) for 2 outputs)")
    errors = [revarb.scores(model.simulate(test.u), test.y).nrmse for model in (one, two)]
    assert errors[1] < 0.7 * errors[0]


def test_a_sentence_says_whether_the_model_is_usable(command, tmp_path):
    """The usual end of a fit is called finished."""
    frame = draw(150)
    frame.to_csv(tmp_path / "train.csv", index=False)
    out = command("fit", "train.csv", "-u", "u0", "-y", "y0", "-o", "m.rgp", *QUICK)
    [sentence] = [line for line in out.splitlines() if "held-out error" in line and "the training mean" in line]
    ends = (": use it", ": a linear model is better; use revarb.fit or ARX")
    assert "(ARX 0." in sentence and sentence.endswith(ends)
    assert "finished" in out and "iteration limit" not in out
    frame.assign(y0=np.random.default_rng(1).normal(size=150)).to_csv(tmp_path / "noise.csv", index=False)
    out = command("fit", "noise.csv", "-u", "u0", "-y", "y0", "-o", "n.rgp", *QUICK)
    assert "no better than the mean, do not use it" in out


def test_every_output_is_scored_in_its_own_unit(command, tmp_path):
    frame = draw(columns=2)
    frame.assign(y1=300.0 + 20.0 * frame["y1"]).to_csv(tmp_path / "train.csv", index=False)
    columns = ("-u", "u0", "-u", "u1", "-y", "y0", "-y", "y1")
    command("fit", "train.csv", *columns, "-o", "m.rgp", *ARX)
    out = command("simulate", "m.rgp", "train.csv", "-o", "path.csv")
    rows = [line for line in out.splitlines() if "residuals" in line]
    assert len(rows) == 3 and "–" in rows[2]
    out = command("compare", "train.csv", "train.csv", *columns, "--only", "ARX", "--only", "Mean", "--seeds", "1")
    assert "by output" in out
    rows = json.loads((tmp_path / "revarb-compare" / "compare.json").read_text())["rows"]
    assert set(rows[0]["outputs"]) == {"y0", "y1"}
