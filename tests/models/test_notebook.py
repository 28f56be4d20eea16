"""What a notebook shows: small HTML of models, choices, comparisons and trajectories, with escaped texts."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import revarb
from fuzz import samples
from support import small

NAME = "<img src=x>&'"
RECORD = revarb.Series(small.record().u, small.record().y, 1.0, ["valve"], [NAME])
MODEL = revarb.ARX(2, 2).fit(RECORD)
CHOICE = revarb.Choice((revarb.Candidate(NAME, 0.2, None, 12, 1.0, "taken"),), NAME, f"{NAME} is best.", "cold runs")
PATH = MODEL.simulate(RECORD.u)
COMPARISON = revarb.compare(RECORD, RECORD, {NAME: revarb.ARX(2, 2), "Mean": revarb.Mean()}, seeds=1)
VALUES = {
    "model": MODEL,
    "chosen model": replace(MODEL, choice=CHOICE),
    "choice": CHOICE,
    "comparison": COMPARISON,
    "incomplete comparison": replace(COMPARISON, missing=((NAME, 1),)),
    "trajectory": PATH,
    "trajectory with a warning": replace(PATH, disagreement=2.0),
    "mean": replace(PATH, std=None),
    "summary": MODEL.summary(),
    "chosen summary": CHOICE.summary(),
}


class Balance(HTMLParser):
    """The tags of a text, and those that are open."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = set(), [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_html_is_balanced_small_and_escaped(value):
    text = value._repr_html_()
    found = Balance(text)
    assert not found.open and found.tags <= {"p", "b", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert NAME in found.words and len(text) < 4000


def test_what_is_shown():
    assert "1 candidate" not in CHOICE._repr_html_() and "0.2" in CHOICE._repr_html_()
    assert "samples and moments disagree" in replace(PATH, disagreement=2.0)._repr_html_()
    assert f"{PATH.mean[-1, 0]:.4g} ± {PATH.std[-1, 0]:.2g}" in PATH._repr_html_()
    assert "3 members" not in MODEL._repr_html_() and "lags, input lags" in MODEL._repr_html_()
    assert "incomplete" in replace(COMPARISON, missing=(("ARX", 1),))._repr_html_()
    assert f"{COMPARISON.rows[0]['rmse']:.3g}" in COMPARISON._repr_html_()
    empty = revarb.Trajectory(np.zeros((0, 1)), None, "mean", 0, ("y",))
    assert "Trajectory(0 rows" in empty._repr_html_()


@pytest.mark.parametrize("make", [samples.model, samples.ensemble, samples.calibrated, samples.linear])
def test_every_kind_of_model_has_html(make):
    model = make()
    assert type(model).__name__ in model._repr_html_() and not Balance(model._repr_html_()).open
