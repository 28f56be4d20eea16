"""`revarb reproduce avatar` with a quick model."""

import json

import pytest

import revarb
from revarb.cli.application import main
from revarb.data.tables.table import Table
from revarb.motion.avatar import model

QUICK = revarb.RGP(
    calibrate=False,
    lags=6, input_lags=15, hidden=1, inducing=10, latent_dim=3,
    recipe=revarb.Recipe(stages=(revarb.Stage(("lam",), 1),), kmeans_starts=1),
)  # fmt: skip


@pytest.mark.slow
def test_the_command_writes_model_strips_exports_and_figures(recorded_data, in_empty_folder, monkeypatch, capsys):
    monkeypatch.setattr(model, "load_avatar_spec", lambda: QUICK)
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "avatar", "--out", "a", "--json", "a.json"])
    assert ended.value.code == 0
    written = {path.name for path in (in_empty_folder / "a").iterdir()}
    strips = {f"avatar_{name}.png" for name in ("step", "ramp", "sine")}
    assert written == strips | {"avatar.rgp"} | {f"step.{kind}" for kind in ("amc", "asf", "bvh", "csv", "gif")}
    rows = json.loads((in_empty_folder / "a.json").read_text())["rows"]
    assert [row["signal"] for row in rows] == ["step", "ramp", "sine", "stop and go"]
    assert set(rows[0]) == {"signal", "seconds", "range_excess", "jump_ratio", "phases"}
    table = Table(in_empty_folder / "a" / "step.csv")
    assert table.columns(["speed"]).shape == (1800, 1)
    assert revarb.load(in_empty_folder / "a" / "avatar.rgp").input_names == ("speed",)
    assert "in training" in capsys.readouterr().out
