"""`revarb compare`."""

import json

import pytest

import revarb
from revarb.cli.compare import _list_models
from revarb.errors import InputError
from revarb.models.rgp import RGP
from revarb.selection.choose import Chosen
from support import small
from support.command_line import COLUMNS, press_ctrl_c, refuse, run, succeed, write_record
from support.processes import environment, run_python
from support.small_choice import SAMPLES, use_quick_candidates

TWO_FILES = ("compare", "train.csv", "test.csv", *COLUMNS)


def only(*names, seeds=1):
    return *(part for name in names for part in ("--only", name)), "--seeds", str(seeds), "--out", "all"


def read_results(folder):
    """The table and the page."""
    return json.loads((folder / "all" / "compare.json").read_text()), (folder / "all" / "compare.html").read_text()


def test_compare_writes_a_table_a_page_and_pictures(capsys, folder):
    lags = ("--lags", "2", "--input-lags", "2")
    out = succeed(capsys, *TWO_FILES, *only("Mean", "ARX", "GP-NARX", seeds=2), *lags)
    content, page = read_results(folder)
    assert out.startswith(content["meta"]["verdict"])
    assert content["meta"]["command"].startswith("revarb compare train.csv test.csv -u valve -y pressure --only Mean")
    assert [row["model"] for row in content["rows"]] == ["Mean"] * 2 + ["ARX"] * 2 + ["GP-NARX"] * 4
    assert content["meta"]["skip"] == content["rows"][0]["skip"]
    # Outputs, reliability, residuals of ARX and of GP-NARX.
    assert content["meta"]["verdict"] in page and page.count("<svg") == 4
    for name in ("compare", "reliability", "mean", "arx", "gp-narx"):
        assert (folder / "all" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    for text in ("residuals: a model without its own", "moments", "in 95 %", "simulate s", "wrote all/compare.html"):
        assert text in out


def test_the_family_has_a_state_per_output():
    plain, family = (list(_list_models(RGP(), 1, None, outputs)) for outputs in (0, 3))
    assert [name for name in family if name not in plain] == [
        "GPSSM, prior", "GPSSM, markov", "GPSSM, mean-field", "reduced-rank GPSSM",
    ]  # fmt: skip
    models = _list_models(RGP(input_delay=2), 1, ["GPSSM, markov", "reduced-rank GPSSM"], 3)
    assert [(model.states, model.input_delay) for model in models.values()] == [(4, 2), (3, 2)]


def test_compare_takes_several_records(capsys, folder):
    more = ("--more-train", "more.csv", "--more-test", "more.csv", "--only", "ARX", "--seeds", "1")
    assert "wrote revarb-compare/compare.json" in run(capsys, *TWO_FILES, *more)[1]
    assert "the first of 2 test records" in (folder / "revarb-compare" / "compare.html").read_text()


def test_a_failed_rival_does_not_end_a_comparison(capsys, folder):
    """With ten lags a record this short has no rows outside a held-out piece; the training mean still works."""
    write_record("train.csv", small.record(samples=14))
    code, out, _ = run(capsys, *TWO_FILES, *only("Mean", "MLP-NARX"))
    assert code == 0 and "MLP-NARX: 1 of 1 seed(s) failed: records of [14] samples leave" in out
    content, page = read_results(folder)
    reasons = {row["model"]: row["reason"] for row in content["rows"]}
    assert reasons["Mean"] is None and reasons["MLP-NARX"] in page and reasons["MLP-NARX"].startswith("records of [14]")
    code, out, _ = run(capsys, *TWO_FILES, *only("MLP-NARX"), "--out", "none")
    assert code == 0 and out.startswith("Every model failed") and not list((folder / "none").glob("*.png"))


def test_ctrl_c_ends_a_comparison_without_a_traceback(folder):
    command = ("-m", "revarb", *TWO_FILES, "--jobs", "2", "--out", "all")
    code, _, err = press_ctrl_c(b"Compiling", *command, JAX_LOG_COMPILES="1")  # a fit is under way
    assert code == 130, err
    if "interrupted: stopped before the end" in err:  # before the first model was done
        assert not (folder / "all" / "compare.json").exists()
    else:
        assert "of 21 fits were compared; rerun with --resume to continue" in err
        assert "incomplete" in read_results(folder)[0]["meta"]


@pytest.mark.slow
def test_ctrl_c_keeps_the_models_that_are_done_and_resume_adds_the_others(folder):
    long = "calibrate = false\nlags = 2\ninput_lags = 2\ninducing = 12\n"
    (folder / "long.toml").write_text(f"{long}[[recipe.stages]]\nfree = ['mu']\niterations = 9000\n")
    command = ("-m", "revarb", *TWO_FILES, *only("Mean", "ARX", "REVARB"), "--config", "long.toml")
    code, out, screen = press_ctrl_c(b"ARX done", *command)
    assert code == 130, screen
    assert "interrupted: 2 of 3 fits were compared; rerun with --resume to continue" in screen
    sentence = "This comparison is incomplete: it was stopped by Ctrl-C before REVARB (1 seed(s))."
    first, page = read_results(folder)
    assert sentence in out and sentence in page
    assert first["meta"]["incomplete"] == sentence and [row["model"] for row in first["rows"]] == ["Mean", "ARX"]
    assert (folder / "all" / "arx.png").exists() and not (folder / "all" / "revarb.png").exists()

    # The same, but for fewer iterations of the model that was not done.
    (folder / "long.toml").write_text((folder / "long.toml").read_text().replace("9000", "9"))
    done = run_python(*command, "--resume", env=environment(XDG_CACHE_HOME=str(folder / "cache")))
    assert done.returncode == 0 and "warning" not in done.stderr
    second, _ = read_results(folder)
    assert "incomplete" not in second["meta"] and "incomplete" not in done.stdout
    for row, before in zip(second["rows"], first["rows"], strict=False):  # also the seconds of the fits
        again = {"skip": second["meta"]["skip"], "simulate_seconds": row["simulate_seconds"]}
        assert row == {**before, **again}
    assert [row["model"] for row in second["rows"][2:]] == ["REVARB", "REVARB"]
    assert not list((folder / "cache").rglob("*.run"))


@pytest.mark.slow
def test_a_comparison_with_the_chosen_model(capsys, folder, monkeypatch):
    use_quick_candidates(monkeypatch)
    write_record("train.csv", small.record(samples=SAMPLES))
    out = succeed(capsys, *TWO_FILES, *only("Mean", "revarb (chosen)"), "--lags", "3")
    assert out.startswith("Use revarb (chosen)") and (folder / "all" / "revarb-chosen.png").exists()
    rows = read_results(folder)[0]["rows"]
    assert {row["taken"].partition(", w")[0] for row in rows[1:]} == {"mixture of 2"}  # whatever --lags says


def test_the_row_of_revarb_is_as_described_and_its_lags_are_those_of_all(capsys, folder, monkeypatch):
    given = {}

    def note(train, test, models, seeds, **options):
        given.update(models)
        raise InputError("enough")

    monkeypatch.setattr(revarb, "compare", note)
    refuse(capsys, *TWO_FILES, "--config", "rgp.toml", "--hidden", "3", "--latent-dim", "2", "-o", "x")
    spec = given["REVARB"]
    assert (spec.lags, spec.hidden, spec.latent_dim, spec.inducing) == (2, 3, 2, 12)
    assert given["GP-NARX"].lags == 2 and given["GP-NARX"].input_lags == 2 and given["revarb (chosen)"] == Chosen()
    refuse(capsys, *TWO_FILES, "--lags", "4", "--input-delay", "3")
    assert given["REVARB"] == RGP(lags=4, input_delay=3) and given["MLP-NARX"].input_delay == 3
