"""`revarb fit`: what it says, writes and chooses; refits with --from."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.cli import fit_request
from revarb.fitting.held_out import LAST
from revarb.fitting.weight_path import ALL
from revarb.models.recipe import Status
from support import command_line, small
from support.command_line import COLUMNS, FIT, START, refuse, run, succeed, write_record
from support.journals import count_evaluations
from support.linear_systems import arx_record
from support.small_choice import SAMPLES, press_ctrl_c, use_quick_candidates


@pytest.mark.slow
def test_a_fit_reports_its_calibration(capsys, folder):
    write_record("train.csv", small.record(samples=150))
    quick = (*FIT, "--hidden", "1")
    out = succeed(capsys, *quick)
    found = revarb.load("m.rgp").calibration
    assert f"\ncalibrated on 12 held-out blocks: held-out error {found.error:.3g} of the output's st" in out
    times = found.output_noise / float(revarb.load("m.rgp").trained.chain.output.sigma2)
    assert f"latent x {found.latent_scale:g}, output x {times:.3g}; long-run band x {found.factors[-1]:.3g}\n" in out

    out = run(capsys, *quick, "--restarts", "2")[1]
    errors = sorted(f"{member.calibration.error:.3g}" for member in revarb.load("m.rgp").members)
    text = errors[0] if errors[0] == errors[1] else " to ".join(errors)
    assert out.count("calibrated") == 1 and f"held-out error {text} of" in out

    with count_evaluations() as seen:
        out = run(capsys, *quick, "--no-calibrate")[1]
    assert "not calibrated: switched off\n" in out and revarb.load("m.rgp").calibration is None

    with count_evaluations(press_at=len(seen) + 3):  # the fit of the first fold
        code, out, _ = run(capsys, *quick)
    assert code == 130 and "not calibrated: interrupted\n" in out


@pytest.mark.parametrize(
    ("status", "steps", "why"),
    [
        (Status.NOT_FINITE, 40, "every further step gave NaN or infinity"),
        (Status.STALLED, 2, "no better point was found after 2 iterations"),
        (Status.STALLED, 40, None),
    ],
)
def test_a_failed_fit_is_a_warning(capsys, folder, monkeypatch, status, steps, why):
    real = revarb.RGP.fit

    def fit_badly(spec, *arguments, **options):
        model = real(spec, *arguments, **options)
        return replace(model, status=status, history=(model.history * 3)[:steps])

    monkeypatch.setattr(revarb.RGP, "fit", fit_badly)
    said = "" if why is None else f"warning: the fit with seed 0 failed: {why}; try another --seed, or fewer lags\n"
    assert f"seed 0: {status} after {steps} iterations" in succeed(capsys, *FIT, "--no-calibrate", err=said)


@pytest.mark.slow
def test_ctrl_c_during_a_fit_keeps_the_best_model(folder):
    """The progress bar shows, the model so far is on disk, and the same command with --resume continues."""
    endless = (
        "[recipe]\nftol = 0.0\ngtol = 0.0\n[[recipe.stages]]\nfree = ['mu', 'lam', 'zeta', 'w']\niterations = 9000\n"
    )
    (folder / "long.toml").write_text(f"lags = 5\ninput_lags = 5\n{endless}")
    command = (b"bound", "-m", "revarb", *START, "--config", "long.toml")  # after the first iteration
    code, out, screen = command_line.press_ctrl_c(*command)
    assert code == 130, screen
    assert "interrupted: the best model so far was kept; rerun with --resume to continue" in screen
    assert "interrupted after" in out and "not calibrated: interrupted\n" in out
    model = revarb.load("m.rgp")
    assert model.status == "interrupted" and (folder / "m.fit.png").exists()

    code, _, screen = command_line.press_ctrl_c(*command, "--resume")
    assert code == 130 and "to resume" not in screen  # the warning that there is nothing
    history = revarb.load("m.rgp").history
    both = min(len(history), len(model.history))  # Ctrl-C may come before all steps of the first run are replayed
    assert both > 0 and history[:both] == model.history[:both]


@pytest.fixture
def choosing(folder, monkeypatch):
    """The folder, with a training record that is long enough to choose on, and quick candidates."""
    use_quick_candidates(monkeypatch)
    write_record("train.csv", small.record(samples=SAMPLES))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "record", "options", "said"),
    [
        (revarb.FittedRGP, None, ("--members", "1"), "calibrated on 12 held-out blocks: "),
        (revarb.Ensemble, None, (), "calibrated on 12 held-out blocks; its recurrent GPs: "),
        (revarb.baselines.FittedARX, arx_record(0, SAMPLES), (), "the bands of the linear model are set by its errors"),
    ],
)
def test_without_lags_the_model_is_chosen(capsys, choosing, kind, record, options, said):
    if record is not None:
        write_record("train.csv", record)
    code, out, err = run(capsys, *START, "--jobs", "1", *options)
    assert code == 0 and err.startswith("about ") and "RGP, small, 2 lags: held-out error" in err
    model = revarb.load("m.rgp")
    choice = model.choice
    assert isinstance(model, kind) and ("A linear model is enough" in out) is (kind is revarb.baselines.FittedARX)
    assert f"chosen on 1 record(s), {SAMPLES} samples in" in out and said in out
    assert choice.sentence in " ".join(out.split())
    assert all(candidate.name in out for candidate in choice.candidates) and choice.taken in out
    for name in ("m.rgp", "m.fit.png", "m.choice.png"):
        assert f"wrote {name}\n" in out and (choosing / name).stat().st_size > 1000
    for command in ("simulate", "predict"):
        assert "wrote p.csv" in run(capsys, command, "m.rgp", "test.csv", "-o", "p.csv")[1]


def make_mixture():
    """A recurrent GP and a linear model of the first training record, not calibrated, with a choice."""
    record = small.record()
    records = [revarb.Series(record.u, record.y, 1.0, ("valve",), ("pressure",))]
    fits = [small.spec(inducing=12).fit(records), revarb.ARX(2, 2).fit(records)]
    names = ("linear part, 2 lags, w = 2", "linear, 2 lags")
    members = [revarb.Candidate(name, 0.2, None, 12, 1.0, "member", 0.5) for name in names]
    mixture = revarb.Candidate("mixture of 2", 0.15, None, 12, 0.0, "taken")
    choice = revarb.Choice((*members, mixture), mixture.name, "The best.", "cold runs", 0.2, 1.0)
    return replace(revarb.Ensemble.from_candidates(fits), choice=choice)


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ("", {}),
        ("--members 2 --time-limit 90 --quick", {"members": 2, "time_limit": 90.0, "effort": "quick"}),
    ],
)
def test_a_mixture_with_a_linear_member_works_in_every_command(capsys, folder, monkeypatch, given, passed):
    seen, model = {}, make_mixture()
    monkeypatch.setattr(fit_request, "choose_model", lambda records, **options: seen.update(options) or model)
    out = succeed(capsys, *START, *given.split())
    assert seen == {"seed": 0, "jobs": None, "resume": False, "progress": True, **passed}
    assert "mixture of 2" in out and "not calibrated" in out and "use its mean only" in out and ": use it" not in out
    assert "wrote m.fit.png" in out and "wrote m.choice.png" in out
    for command in ("simulate", "predict"):
        assert "wrote p.csv" in run(capsys, command, "m.rgp", "test.csv", "-o", "p.csv")[1]
    assert "wrote check.png" in run(capsys, "check", "m.rgp", "test.csv")[1]
    assert "wrote model.c" in succeed(capsys, "export", "m.rgp", "-o", "model.c")


@pytest.mark.slow
def test_ctrl_c_while_choosing_keeps_the_best_candidate_and_resumes(capsys, choosing, monkeypatch):
    fitted = press_ctrl_c(monkeypatch, fit=2)
    code, out, err = run(capsys, *START, "--jobs", "1")
    assert code == 130 and fitted() == [0, 1]
    *_, last = err.splitlines()
    assert last == "interrupted: the best candidate so far was kept; rerun with --resume to continue"
    assert "\nInterrupted" in out and revarb.load("m.rgp").status == "interrupted"

    assert run(capsys, *START, "--jobs", "1", "--resume")[0] == 0
    assert (
        fitted() == [0, 1, 1, 2, 3, 0, 1, 2, 3, ALL, ALL, LAST, LAST] and revarb.load("m.rgp").status != "interrupted"
    )


@pytest.mark.parametrize(("samples", "status"), [(60, Status.ITERATION_LIMIT), (40, Status.INTERRUPTED)])
def test_the_picture_of_a_model_without_a_comparison(capsys, folder, monkeypatch, samples, status):
    """A default model is not drawn as a choice; after Ctrl-C a fit to parts of the records is drawn without them."""
    only = revarb.Candidate("RGP, small", None, None, 0, 0.0, "taken")
    choice = revarb.Choice((only,), only.name, "Nothing was compared.", "nothing")
    part = small.record(samples=samples)
    model = small.spec().fit(revarb.Series(part.u, part.y, 1.0, ("valve",), ("pressure",)))
    model = replace(model, status=status, choice=choice)
    monkeypatch.setattr(fit_request, "choose_model", lambda *arguments, **options: model)
    code, out, _ = run(capsys, *START)
    assert code == (130 if status is Status.INTERRUPTED else 0)
    assert "Nothing was compared." in out and "calibrated" not in out
    assert "wrote m.fit.png" in out and (folder / "m.fit.png").exists() and not (folder / "m.choice.png").exists()


@pytest.mark.slow
def test_a_record_too_short_to_hold_anything_out(capsys, folder):
    write_record("train.csv", small.record(samples=24))
    warning = (
        "the records are too short, or too little of them is measured, to hold anything out: a default model is "
        "fitted, and its bands are not calibrated"
    )
    out = succeed(capsys, *START, err=f"warning: {warning}\n")
    assert "nothing was compared" in out and "calibrated on" not in out
    model = revarb.load("m.rgp")
    assert model.choice.taken_candidate.error is None and model.calibration is None
    assert not (folder / "m.choice.png").exists()


@pytest.mark.slow
def test_student_noise_says_how_many_outliers_there_are(capsys, folder):
    record = small.record(samples=80)
    y = record.y[:, 0].copy()
    y[[30, 55]] += 4.0 * y.std() * np.array([1.0, -1.3])
    write_record("train.csv", record, pressure=y)
    (folder / "robust.toml").write_text(
        "lags = 2\ninput_lags = 2\ninducing = 12\n[[recipe.stages]]\nfree = ['mu', 'zeta', 'tau']\niterations = 25\n"
    )
    options = ("--config", "robust.toml", "--hidden", "1", "--no-calibrate", "--noise", "student-t")
    out = run(capsys, *START, *options)[1]
    assert "2 outlier(s) among the training samples; the worst is 'pressure' in row 55 (rows count from 0" in out


REFIT = ("fit", "train.csv", "more.csv", "--from", "m.rgp", "-o", "m2.rgp")


@pytest.fixture
def fitted(capsys, folder):
    """A model of train.csv."""
    succeed(capsys, *FIT, "--hidden", "1", "--no-calibrate")


MUCH_MORE = (
    "warning: the records have 120 rows, but the model was fitted to 60: a refit stays near its first optimum, and a "
    "new fit of all records is often clearly better\n"
)


def test_a_refit_takes_its_columns_from_the_model(capsys, fitted):
    out = succeed(capsys, *REFIT, err=MUCH_MORE)
    assert "refitted to 2 record(s), 120 samples in" in out and "finished after 3 iterations, bound" in out
    assert "\nnot calibrated, as before\n" in out
    assert "wrote m2.rgp\nwrote m2.fit.png\n" in out
    old, new = revarb.load("m.rgp"), revarb.load("m2.rgp")
    assert (len(old.lengths), len(new.lengths), new.spec) == (1, 2, old.spec)
    assert (new.input_names, new.output_names) == (("valve",), ("pressure",))
    succeed(capsys, *REFIT, *COLUMNS, err=MUCH_MORE)  # said again


def test_ctrl_c_keeps_the_refitted_model(capsys, fitted):
    with count_evaluations(press_at=2):
        code, _, err = run(capsys, *REFIT)
    assert code == 130 and err == f"{MUCH_MORE}interrupted: the best model so far was kept\n"
    assert revarb.load("m2.rgp").status.label == "interrupted"


@pytest.mark.slow
def test_the_bands_are_calibrated_again_on_request(capsys, folder):
    write_record("train.csv", small.record(samples=150))
    succeed(capsys, *FIT, "--hidden", "1")
    assert "\ncalibrated, as before\n" in run(capsys, *REFIT)[1]
    assert revarb.load("m2.rgp").calibration == revarb.load("m.rgp").calibration
    assert "held-out blocks: held-out error" in run(capsys, *REFIT, "--calibrate")[1]
    assert revarb.load("m2.rgp").calibration != revarb.load("m.rgp").calibration


def test_a_refit_remembers_the_column_of_times(capsys, folder):
    for name, dt in (("train.csv", 0.1), ("slow.csv", 0.2)):
        write_record(name, small.record(), dt * np.arange(60))
    records = revarb.read_records("train.csv", inputs="valve", outputs="pressure", time="t")
    small.spec(hidden=1).fit(records).save("m.rgp")
    err = refuse(capsys, "fit", "slow.csv", "--from", "m.rgp", "-o", "m2.rgp")
    assert "the record has dt=0.2, but the model was trained with dt=0.1" in err
    succeed(capsys, "fit", "test.csv", "--from", "m.rgp", "-o", "m2.rgp")
    assert revarb.load("m2.rgp").dt == pytest.approx(0.1)


def test_a_mixture_is_refitted_member_by_member(capsys, folder):
    records = revarb.read_records("train.csv", inputs="valve", outputs="pressure")
    members = [small.spec(hidden=1).fit(records), revarb.ARX(2, 2).fit(records)]
    revarb.Ensemble.from_candidates(members).save("m.rgp")
    out = succeed(capsys, *REFIT, err=MUCH_MORE)
    assert "refitted to 2 record(s), 120 samples in" in out and ", 2 members\n" in out
    assert "\nnot calibrated, as before\n" in out and "wrote m2.fit.png\n" in out
    assert [len(states) for states in revarb.load("m2.rgp").final_states] == [2, 2]
    revarb.load("m.rgp").members[1].save("m.rgp")
    assert "its bands are as before" in succeed(capsys, *REFIT)
