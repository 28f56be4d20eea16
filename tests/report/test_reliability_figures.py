"""The reliability diagram as a figure."""

import numpy as np
import pytest

from revarb.data.trajectory import Trajectory
from revarb.evaluation.reliability import (
    check_bands,
)
from revarb.report.reliability_figures import draw_reliability
from revarb.runtime.figure_style import encode_figure


def trajectory(mean, std, skip=0):
    names = tuple(f"y{column}" for column in range(mean.shape[1]))
    return Trajectory(mean, None if std is None else np.broadcast_to(std, mean.shape).copy(), "test", skip, names)


@pytest.fixture
def records(rng):
    """Two records of different lengths, two outputs of different units, and three values that were not measured."""
    paths, outputs = [], []
    for rows in (40, 25):
        scale = np.array([1.0, 30.0])
        mean, std = scale * rng.normal(size=(rows, 2)), scale * rng.uniform(0.3, 2.0, size=(rows, 2))
        paths.append(trajectory(mean, std, skip=4))
        outputs.append(mean + std * rng.normal(size=mean.shape))
    outputs[0][[2, 10, 11], [0, 1, 0]] = np.nan
    return paths, outputs


def test_the_same_numbers_give_the_same_picture(records):
    judged = {("a$b$", "moments"): check_bands(*records), ("<b>", "residuals"): check_bands(*records)}
    first, second = (encode_figure(draw_reliability(judged), "svg") for _ in range(2))
    assert first == second and first.startswith(b"<?xml") and b"a$b$ (moments)" in first
    assert encode_figure(draw_reliability(judged), "png").startswith(b"\x89PNG")


def test_a_model_that_diverged_does_not_spoil_the_picture(records):
    paths, outputs = records
    away = [trajectory(path.mean + 1e200, path.std) for path in paths]
    with np.errstate(over="ignore"):
        judged = {("away", "moments"): check_bands(away, outputs), ("good", "moments"): check_bands(*records)}
    assert np.isinf(judged["away", "moments"].horizon.error).all()
    assert encode_figure(draw_reliability(judged), "png").startswith(b"\x89PNG")
