"""Summaries: their tables, as text, HTML and in a terminal."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import revarb
from revarb.models.summary import Summary, SummaryTable, _ranges
from support import small


@pytest.fixture(scope="module")
def model():
    fitted = small.spec(hidden=2, latent_dim=2).fit(small.record(inputs=2))
    calibration = revarb.Calibration(0.5, 0.03, edges=(2, 10), factors=(1.0, 1.2, 1.5), stretches=12, error=0.2)
    return replace(fitted, calibration=calibration)


def table(summary, title):
    return next(each for each in summary.tables if each.title.startswith(title))


def test_the_text_names_signals_noises_and_calibration(model):
    text = str(model.summary())
    for words in ("state of layer 1, 0", "state of layer 2, 1", "u0", "u1", "noise", "held-out blocks", "lower bound"):
        assert words in text
    assert repr(model.summary()) == text


def test_relevance_follows_the_lengthscales(model):
    rows = {row[:2]: row for row in table(model.summary(), "lengthscales").rows}
    lags, dim = model.order.lags, 2
    lengthscales = 1.0 / np.sqrt(model.trained.chain.hidden[0].w)
    # Layer 1: L windows of both states, then L_u windows of both inputs, the newest sample first.
    second_input = lengthscales[lags * dim + 1 :: 2]
    shortest, at_lag = rows["1", "u1"][2:4]
    assert shortest == f"{second_input.min():.3g}"
    assert int(at_lag) == model.order.input_delay + int(np.argmin(second_input))
    assert len(rows) == 4 + 4 + 2  # two states and two inputs; two layers of states; the states below the output


def test_the_noise_of_an_output_is_in_its_own_unit(model):
    name, fitted, _ = table(model.summary(), "noise").rows[-1]
    expected = float(model.scaling.y_std[0] * np.sqrt(model.trained.chain.last_layer.sigma2))
    assert (name, fitted) == ("y", f"{expected:.3g}")


def test_columns_of_numbers_are_on_the_right():
    rows = (("a", "1", "x"), ("b", "12.5", ""), ("c", "", "7"), ("d", "1e-05", "none"))
    lines = str(Summary("", (SummaryTable("t", ("name", "number", "text"), rows),))).splitlines()[-4:]
    assert [line.split() for line in lines] == [[cell for cell in row if cell] for row in rows]
    assert len({line.index(row[1]) + len(row[1]) for line, row in zip(lines, rows, strict=True) if row[1]}) == 1
    assert len({line.index(row[2], 10) for line, row in zip(lines, rows, strict=True) if row[2]}) == 1


def test_html_escapes_and_rich_draws():
    summary = Summary("a<b", (SummaryTable("t", ("x", ""), (("1", "<i>"),)),))
    html = summary._repr_html_()
    assert "a&lt;b" in html
    assert ">&lt;i&gt;</td>" in html
    screen = Console(file=io.StringIO(), width=60)
    screen.print(summary)
    assert "<i>" in screen.file.getvalue()


def test_names_with_units_in_brackets_stay_as_they_are():
    """`[deg]` would be a tag of rich, and `[/min]` the end of one."""
    units = ("angle [deg]", "rate [/s]")
    summary = Summary("mine [/min]", (SummaryTable("of [rad]", ("", "speed [/min]"), (units,)),))
    screen = Console(file=io.StringIO(), width=60)
    screen.print(summary)
    for name in (*units, "mine [/min]", "of [rad]", "[/min]"):
        assert name in str(summary) and name in screen.file.getvalue()


@pytest.mark.parametrize(
    ("lags", "text"), [([], ""), ([3], "3"), ([1, 2, 3, 7], "1-3, 7"), ([0, 2, 4, 5], "0, 2, 4-5")]
)
def test_lags_are_written_as_ranges(lags, text):
    assert _ranges(np.array(lags, dtype=int)) == text
