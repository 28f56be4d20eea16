"""What `revarb.fit` tried, as a value."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

import revarb
from fuzz import samples
from revarb.cli.fit_report import describe_bands
from revarb.models.choice import Candidate, Choice, describe_held_out
from revarb.models.recipe import Status
from support import small

LINEAR = Candidate("linear, 2 lags", 0.31, 0.05, 12, 0.4, "")
TAKEN = Candidate("linear part, 2 lags, w = 2", 0.21, 0.02, 12, 8.25, "taken")
BEST = Candidate("linear part, 2 lags, w = 10", 0.2, None, 12, 8.25, "")
DROPPED = Candidate("free variances, 2 lags, w = 0", 0.1, None, 3, 2.0, "dropped")
DIVERGED = Candidate("fixed variances, 2 lags, w = 0", None, None, 12, 2.0, "unstable")
FAILED = Candidate("smooth layer", None, None, 0, 0.0, "failed")
CHOICE = Choice((LINEAR, DROPPED, TAKEN, FAILED, DIVERGED, BEST), TAKEN.name, "It is the simplest.", "cold runs")

MEMBERS = (replace(BEST, note="member", weight=0.5), replace(LINEAR, note="member", weight=0.5))
MIXTURE = Candidate("mixture of 2", 0.19, None, 12, 0.0, "taken")
MIXED = Choice((*MEMBERS, replace(TAKEN, note=""), MIXTURE), MIXTURE.name, "The best.", "cold runs")


def test_a_choice_in_words():
    assert repr(CHOICE) == "Choice('linear part, 2 lags, w = 2', 6 candidates: It is the simplest.)"
    assert repr(Choice((LINEAR,), LINEAR.name, "Why.", "cold runs")) == "Choice('linear, 2 lags', 1 candidate: Why.)"
    assert CHOICE.taken_candidate is TAKEN
    text = str(CHOICE)
    assert text.startswith("It is the simplest.\n") and "held-out errors of cold runs" in text and "8.2" in text
    assert "<table" in CHOICE.summary()._repr_html_()
    assert "nothing was compared" in str(replace(CHOICE, scored_by="nothing"))


def test_the_table_has_the_best_first_and_then_what_cannot_be_compared():
    names = [row[0] for row in CHOICE.table().rows]
    assert names[:3] == [BEST.name, TAKEN.name, LINEAR.name]
    assert set(names[3:5]) == {DIVERGED.name, FAILED.name} and names[5] == DROPPED.name
    rows = {row[0]: row for row in CHOICE.table().rows}
    assert rows[TAKEN.name] == (TAKEN.name, "0.21", "0.02", "12", "8.2", "taken")
    assert rows[FAILED.name][1:] == ("", "", "", "", "failed")


def test_the_table_of_a_mixture_has_its_members_with_their_weights_and_errors():
    table = MIXED.table()
    assert table.columns == ["candidate", "error", "std. error", "seconds", "weight", ""]
    assert table.title == "held-out errors of cold runs (12 blocks each)"  # and no column of blocks
    assert table.rows == [
        ("mixture of 2", "0.19", "", "", "", "taken"),
        (BEST.name, "0.2", "", "8.2", "0.5", "member"),
        (TAKEN.name, "0.21", "0.02", "8.2", "", ""),
        (LINEAR.name, "0.31", "0.05", "0.4", "0.5", "member"),
    ]
    assert MIXED.members == MEMBERS


def test_names_have_at_most_three_lines_on_a_narrow_terminal():
    """The longest names of default candidates, with all columns, in 80 of the terminal."""
    name = "linear part, Student-t noise, 3 states, 20 + 10 lags, delay 16, w = 50"
    long = Candidate(name, 0.0797, 0.0212, 12, 1234.5, "unfinished", 0.33)
    choice = Choice((long, replace(LINEAR, stretches=3), replace(TAKEN, note="")), name, "Why.", "cold runs")
    console = Console(width=80, file=io.StringIO())
    with console.capture() as captured:
        console.print(choice.summary())
    lines = [line for line in captured.get().splitlines() if line.strip()]
    [begin] = [number for number, line in enumerate(lines) if "unfinished" in line]
    assert "1234" in lines[begin] and 1 < len(lines[begin:]) <= 3  # it is the last one


def test_the_figure_shows_every_candidate_with_an_error():
    [axes] = CHOICE.plot().axes
    drawn = [label.get_text() for label in axes.get_yticklabels()]
    assert drawn == [each.name for each in (LINEAR, TAKEN, BEST, DROPPED)]
    assert axes.get_xscale() == "log" and "cold runs" in axes.get_xlabel()
    (low, high), ticks = axes.get_xlim(), axes.get_xticklabels()
    assert [each.get_text() for each in ticks if low < each.get_position()[0] < high] == [
        "0.1",
        "0.15",
        "0.2",
        "0.25",
        "0.3",
    ]
    alone = Choice((FAILED,), FAILED.name, "Nothing was compared.", "nothing")
    assert isinstance(alone.plot(), Figure)
    for choice, labels in (
        (MIXED, ["taken", "member, weight 0.5", "tried"]),
        (CHOICE, ["taken", "tried", "fewer blocks (dropped, or not finished)"]),
    ):
        [axes] = choice.plot().axes
        assert [text.get_text() for text in axes.get_legend().get_texts()] == labels
        assert len({lines.get_color() for lines, *_ in axes.containers}) == 3


def test_the_held_out_error_is_one_number_wherever_it_is_shown():
    """The members of a mixture have others."""
    taken = Candidate("mixture of 2", 0.123456, None, 12, 0.0, "taken")
    choice = Choice((taken,), taken.name, "Its held-out error is 0.123 of …", "cold runs", 0.345678, 0.987654)
    for model in (samples.calibrated(), samples.linear(), revarb.Ensemble.from_candidates([samples.calibrated()])):
        chosen = replace(model, choice=choice)
        assert choice.error == 0.123456 and repr(chosen).endswith(", held-out error 0.123)")
        assert "0.123" in chosen.verdict and "0.123" in choice.table().rows[0]
        assert choice.plot().get_suptitle() == "taken: mixture of 2, held-out error 0.123"
        described = describe_bands(chosen, [small.record()])
        assert "held-out error" not in described and "0.12 " not in chosen.verdict
    assert "ARX 0.346, the training mean 0.988" in chosen.verdict
    assert "held-out error" in describe_bands(samples.calibrated(), [small.record()])


def test_a_choice_survives_json_and_a_model_file(tmp_path):
    values = CHOICE.to_dict()
    assert Choice.from_dict(values) == Choice.from_dict(json.loads(json.dumps(values, allow_nan=False))) == CHOICE
    for model in (samples.model(), samples.linear(), samples.ensemble()):
        chosen = replace(model, choice=CHOICE)
        assert revarb.load(chosen.save(tmp_path / "m.rgp")).choice == CHOICE
        assert "held-out errors of cold runs" in str(chosen.summary())
        assert revarb.load(model.save(tmp_path / "m.rgp")).choice is None


@pytest.mark.parametrize("log_spread", [0.0, 800.0])
def test_numbers_of_any_size_are_drawn(log_spread):
    odd = replace(TAKEN, error=1e-300, standard_error=log_spread)
    assert np.isfinite(replace(CHOICE, candidates=(odd, LINEAR, BEST)).plot().axes[0].get_xlim()).all()


def test_a_model_that_only_predicts_is_not_recommended_for_simulation():
    taken = Candidate("linear, 2 lags", 0.05, None, 12, 0.4, "taken")
    choice = Choice((taken,), taken.name, "", "predictions 1 to 3 steps ahead", None, 1.0)
    model = replace(revarb.ARX(2, 2).fit(small.record()), choice=choice)
    assert model.verdict == "no free run is much better than the mean: use it for predictions only"
    assert replace(model, choice=replace(choice, scored_by="cold runs")).verdict.endswith(": use it")


@pytest.mark.parametrize("scored_by", ["cold runs", "predictions 1 to 3 steps ahead"])
def test_what_is_interrupted_or_not_calibrated_is_not_recommended(scored_by):
    choice = Choice((replace(BEST, note="taken"),), BEST.name, "", scored_by, None, 1.0)
    good, bare = samples.calibrated(), replace(samples.calibrated(), calibration=None)
    other = replace(samples.linear(), horizon_std=np.empty((0, 2)))
    assert ": use it" in replace(good, choice=choice).verdict
    mixed = revarb.Ensemble.from_candidates
    for model in (replace(good, status=Status.INTERRUPTED), replace(other, status=Status.INTERRUPTED)):
        assert "interrupted, finish the fit before you use it" in replace(model, choice=choice).verdict
    for model in (bare, mixed([bare]), mixed([good, replace(bare, seed=1)])):
        assert "its bands are not calibrated, use its mean only" in replace(model, choice=choice).verdict
    assert ": use it" in replace(mixed([good]), choice=choice).verdict
    assert mixed([other]).verdict is None  # nothing is known, and no member is a recurrent GP


@pytest.mark.parametrize(
    ("error", "linear", "mean", "words"),
    [
        (0.12, 0.31, 1.0, r"held-out error 0.12 of the output's standard deviation \(ARX 0.31, .*\): use it$"),
        (0.12, None, 1.0, r"held-out error 0.12 of the output's standard deviation \(the training mean 1\): use it$"),
        (0.12, 0.118, 1.0, ": use it$"),  # the same as ARX
        (0.40, 0.31, 1.0, ": a linear model is better; use revarb.fit or ARX$"),
        (0.70, 0.90, 1.0, ": hardly better than the mean; try revarb.fit, more or other inputs, or a longer record$"),
        (0.99, 0.90, 1.0, ": no better than the mean, do not use it; try revarb.fit"),
        (0.30, 0.50, 0.31, ": no better than the mean, do not use it"),
    ],
)
def test_the_sentence_says_whether_the_model_is_any_good(error, linear, mean, words):
    assert re.search(words, describe_held_out(error, linear, mean))
    if ": use it" not in words:  # what a bad model lacks is named first
        assert describe_held_out(error, linear, mean, "latent_dim=2").endswith("; try latent_dim=2")
    else:
        assert describe_held_out(error, linear, mean, "latent_dim=2").endswith(": use it")
