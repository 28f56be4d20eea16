"""The figure of a comparison."""

import numpy as np

from revarb.baselines.arx import ARX
from revarb.baselines.training_mean import Mean
from revarb.evaluation.comparison import compare
from revarb.evaluation.comparison.comparison_figure import draw_comparison
from revarb.runtime.figure_style import encode_figure
from support import small


def test_measured_values_are_drawn_with_their_gaps():
    """Single values between gaps are dots; an output that was never measured is a panel with the simulation alone."""
    path = Mean().fit(small.record()).simulate(small.record(1).u)

    def markers(y):  # ticks, and dots
        return encode_figure(draw_comparison({"Mean": [path]}, y, 0), "svg").count(b"<use ")

    y = small.record(1).y.copy()
    y[30:35] = np.nan
    before = markers(y)
    y[32] = 0.1
    assert markers(y) == before + 1
    assert markers(np.full_like(y, np.nan)) > 0


def test_the_same_numbers_give_the_same_picture():
    result = compare(small.record(), small.record(1), {"Mean": Mean(), "ARX": ARX(2, 2)}, seeds=1)
    first, second = (encode_figure(result.plot(), "svg") for _ in range(2))
    assert first == second and first.startswith(b"<?xml")
    assert encode_figure(result.plot(), "png").startswith(b"\x89PNG")
