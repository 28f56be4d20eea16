"""Noise and band widths from held-out errors."""

import numpy as np
import pytest

from revarb.data.distribution import half_width
from revarb.training.calibration_rule import (
    HEAVY,
    SCALES,
    HeldOutRun,
    Noises,
    choose_latent_scale,
    choose_output_noise,
    find_width_factor,
)

UNIT = Noises(1.0, 1.0)


def held(rng, count=200, std=1.0, variance=0.0):
    return HeldOutRun(std * rng.normal(size=count), np.full(count, variance), np.arange(1.0, count + 1.0))


def test_latent_noise_is_kept_unless_less_is_significantly_better():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.5, 1.0, size=12)
    noise = 0.2 * rng.normal(size=(len(SCALES), 12))
    assert choose_latent_scale(np.stack([base] * len(SCALES))) == 1.0
    assert choose_latent_scale(base * np.exp(noise)) == 1.0
    better = np.stack([base * 0.8, base * 0.7, base * 0.9, base])
    assert choose_latent_scale(better) == SCALES[1]
    one_stretch = np.stack([base] * len(SCALES))
    one_stretch[0, 3] *= 0.01
    assert choose_latent_scale(one_stretch) == 1.0


def test_the_outputs_noise_is_that_of_the_median_stretch():
    rng = np.random.default_rng(1)
    stretches = [held(rng, std=0.5, variance=0.05) for _ in range(11)]
    assert choose_output_noise(stretches, 0.01) == pytest.approx(0.2, rel=0.15)
    odd = [*stretches[:-1], held(rng, std=20.0, variance=0.05)]
    assert choose_output_noise(odd, 0.01) == pytest.approx(choose_output_noise(stretches, 0.01), rel=0.1)
    assert choose_output_noise([held(rng, std=0.01) for _ in range(5)], 0.04) == 0.04  # never less than the fit had


def test_the_width_is_that_of_the_ranked_error():
    rng = np.random.default_rng(2)
    assert find_width_factor(held(rng, count=5000), UNIT) == pytest.approx(1.0, abs=0.05)
    assert find_width_factor(held(rng, count=5000, std=2.0), UNIT) == pytest.approx(2.0, abs=0.1)
    few = HeldOutRun(np.array([0.1, -3.0, 0.2]), np.zeros(3), np.arange(3.0))
    assert find_width_factor(few, UNIT) == pytest.approx(3.0 / half_width(0.75))
    exact = HeldOutRun(np.arange(1.0, 20.0), np.zeros(19), np.arange(19.0))  # rank ⌈0.95 · 20⌉ = 19
    assert find_width_factor(exact, UNIT) == pytest.approx(19.0 / half_width(0.95))


def test_heavy_tails_are_found_and_their_width_is_theirs():
    rng = np.random.default_rng(3)
    runs = [HeldOutRun(0.5 * rng.standard_t(3.0, size=500), np.zeros(500), np.arange(500.0)) for _ in range(8)]
    noises = HEAVY.choose_noises(dict.fromkeys(SCALES, runs), 1e-4)
    assert 2.5 <= noises.degrees <= 4.0
    assert noises.output == pytest.approx(0.25 * 3.0, rel=0.5)  # the variance of a Student-t with three degrees: 3 s²
    assert HEAVY.find_width(runs, noises) == pytest.approx(1.0, abs=0.15)
    wider = [run._replace(error=2.0 * run.error) for run in runs]
    assert HEAVY.find_width(wider, noises) == pytest.approx(2.0, abs=0.3)


def test_tails_follow_from_all_stretches_and_not_from_the_median_one():
    """Outliers in four of twelve stretches only."""
    rng = np.random.default_rng(4)
    runs = [held(rng, count=40, std=0.1) for _ in range(12)]
    for run in runs[:4]:
        run.error[::10] += 2.0
    noises = HEAVY.choose_noises(dict.fromkeys(SCALES, runs), 1e-4)
    assert noises.degrees <= 4.0
