"""Plots into a figure or axes of the caller, whose size, style and other axes stay as they are."""

from functools import partial

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

import revarb
from fuzz import samples
from support import small

RECORD = small.record(samples=120)
MODEL = revarb.ARX(2, 2).fit(RECORD)
CHOICE = revarb.Choice((revarb.Candidate("a", 0.2, None, 12, 1.0, "taken"),), "a", "Why.", "cold runs")
PLOTS = {
    "trajectory": MODEL.simulate(RECORD.u).plot,
    "training": partial(MODEL.plot_fit, RECORD),
    "training of a recurrent GP": samples.model().plot_fit,
    "training of the best member": revarb.Ensemble.from_members([samples.model()]).plot_fit,
    "residuals": MODEL.residuals(RECORD).plot,
    "linearisation": MODEL.linearise().plot,
    "step response": MODEL.step_response().plot,
    "frequency response": MODEL.frequency_response().plot,
    "static gain curve": MODEL.static_gain_curve().plot,
}


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_panels_are_drawn_into_a_given_figure(plot):
    before = dict(mpl.rcParams)
    figure = Figure(figsize=(4.0, 3.0))
    above, below = figure.subfigures(2, 1)
    own = above.subplots()
    above.suptitle("mine")
    assert plot(fig=below) is figure
    assert own.spines["top"].get_visible() and own.get_legend() is None and above.get_suptitle() == "mine"
    assert below.axes and above.axes == [own] and tuple(figure.get_size_inches()) == (4.0, 3.0)
    assert figure.get_layout_engine() is None and dict(mpl.rcParams) == before
    assert [len(plot(fig=Figure()).axes), len(plot().axes)] == 2 * [len(below.axes)]
    with pytest.raises(revarb.InputError, match="fig must be a figure or subfigure of matplotlib, received 3"):
        plot(fig=3)


def test_one_panel_is_drawn_into_given_axes():
    """In the colours of their cycle, so that two models can be told apart."""
    figure = Figure(figsize=(4.0, 3.0))
    left, right = figure.subplots(1, 2)
    path = MODEL.simulate(RECORD.u)
    assert path.plot(title="A", ax=left) is figure and path.plot(RECORD.y, "B", ax=[left]) is figure
    assert CHOICE.plot(ax=right) is figure and tuple(figure.get_size_inches()) == (4.0, 3.0)
    assert [line.get_label() for line in left.lines] == ["A", "B", "measured"] and left.get_ylabel() == "y"
    assert left.lines[0].get_color() != left.lines[1].get_color() and figure.get_suptitle() == ""
    assert left.spines["top"].get_visible() and right.spines["top"].get_visible()
    assert right.get_yticklabels()[0].get_fontsize() == mpl.rcParams["font.size"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MODEL.simulate(RECORD.u).plot(ax=3), "ax must be 1 axes of matplotlib, one per output, received 3"),
        (lambda: MODEL.simulate(RECORD.u).plot(ax=[]), "ax must be 1 axes of matplotlib, one per output, received "),
        (lambda: MODEL.simulate(RECORD.u).plot(ax=3, fig=Figure()), "with ax only this run is drawn"),
        (lambda: MODEL.simulate(RECORD.u).plot(times=[1.0]), "times must be 120 numbers or points in time, received"),
        (lambda: CHOICE.plot(ax=Figure()), "ax must be 1 axes of matplotlib"),
    ],
)
def test_wrong_axes(call, message):
    with pytest.raises(revarb.InputError, match=message):
        call()


def test_records_are_drawn_at_their_times():
    """Pieces of a file keep their gap; records whose times overlap stand one after the other."""
    first, second = (revarb.Series(RECORD.u, RECORD.y, 0.5, start_time=start) for start in (7.0, 100.0))
    assert (second[20:].start_time, second[20:][-10:].start_time) == (110.0, 155.0)
    times = MODEL.plot_fit([first, second]).axes[0].lines[0].get_xdata()
    assert (times[0], times[119], times[121]) == (7.0, 66.5, 100.0)
    times = MODEL.plot_fit([second, first]).axes[0].lines[0].get_xdata()
    assert (times[0], times[119], times[121]) == (100.0, 159.5, 160.0)
