"""Noise and band widths from held-out errors."""

import numpy as np
import pytest

from revarb.data.scaling import half_width
from revarb.fitting.calibration_rule import (
    HEAVY,
    MIN_CONFORMAL,
    POOLED,
    SCALES,
    TAILS,
    Noises,
    RunErrors,
    choose_latent_scale,
    choose_noises_by_likelihood,
    choose_output_noise,
    find_pooled_band,
    find_pooled_width,
    find_width_factor,
    find_worst_quantile,
)

UNIT = Noises(1.0, 1.0)


def held(rng, count=200, std=1.0, variance=0.0):
    return RunErrors(std * rng.normal(size=count), np.full(count, variance), np.arange(1.0, count + 1.0))


def test_latent_noise_is_kept_unless_less_is_significantly_better():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.5, 1.0, size=12)
    noise = 0.2 * rng.normal(size=(len(SCALES), 12))
    assert choose_latent_scale(np.stack([base] * len(SCALES))) == 1.0
    assert choose_latent_scale(base * np.exp(noise)) == 1.0
    better = np.stack([base * 0.8, base * 0.7, base * 0.9, base])
    assert choose_latent_scale(better) == SCALES[1]
    one_block = np.stack([base] * len(SCALES))
    one_block[0, 3] *= 0.01
    assert choose_latent_scale(one_block) == 1.0


def test_the_outputs_noise_is_that_of_the_median_block():
    rng = np.random.default_rng(1)
    blocks = [held(rng, std=0.5, variance=0.05) for _ in range(11)]
    assert choose_output_noise(blocks, 0.01) == pytest.approx(0.2, rel=0.15)
    odd = [*blocks[:-1], held(rng, std=20.0, variance=0.05)]
    assert choose_output_noise(odd, 0.01) == pytest.approx(choose_output_noise(blocks, 0.01), rel=0.1)
    assert choose_output_noise([held(rng, std=0.01) for _ in range(5)], 0.04) == 0.04  # never less than the fit had


def test_the_width_is_that_of_the_ranked_error():
    rng = np.random.default_rng(2)
    assert find_width_factor(held(rng, count=5000), UNIT) == pytest.approx(1.0, abs=0.05)
    assert find_width_factor(held(rng, count=5000, std=2.0), UNIT) == pytest.approx(2.0, abs=0.1)
    few = RunErrors(np.array([0.1, -3.0, 0.2]), np.zeros(3), np.arange(3.0))
    assert find_width_factor(few, UNIT) == pytest.approx(3.0 / half_width(0.75))
    exact = RunErrors(np.arange(1.0, 20.0), np.zeros(19), np.arange(19.0))  # rank ⌈0.95 · 20⌉ = 19
    assert find_width_factor(exact, UNIT) == pytest.approx(19.0 / half_width(0.95))


def test_heavy_tails_are_found_and_their_width_is_theirs():
    rng = np.random.default_rng(3)
    runs = [RunErrors(0.5 * rng.standard_t(3.0, size=500), np.zeros(500), np.arange(500.0)) for _ in range(8)]
    noises = HEAVY.choose_noises(dict.fromkeys(SCALES, runs), 1e-4)
    assert 2.5 <= noises.degrees <= 4.0
    assert noises.output == pytest.approx(0.25 * 3.0, rel=0.5)  # the variance of a Student-t with three degrees: 3 s²
    assert HEAVY.find_width(runs, noises) == pytest.approx(1.0, abs=0.15)
    wider = [run._replace(error=2.0 * run.error) for run in runs]
    assert HEAVY.find_width(wider, noises) == pytest.approx(2.0, abs=0.3)


def test_tails_follow_from_all_blocks_and_not_from_the_median_one():
    """Outliers in four of twelve blocks only."""
    rng = np.random.default_rng(4)
    runs = [held(rng, count=40, std=0.1) for _ in range(12)]
    for run in runs[:4]:
        run.error[::10] += 2.0
    noises = HEAVY.choose_noises(dict.fromkeys(SCALES, runs), 1e-4)
    assert noises.degrees <= 4.0


def test_pooled_bands_hold_95_percent_of_all_errors():
    rng = np.random.default_rng(0)
    runs = [held(rng, count=300, std=std) for std in (0.5, 1.0, 1.0, 3.0)]
    width = find_pooled_width(runs, UNIT)
    errors = np.abs(np.concatenate([run.error for run in runs]))
    assert np.mean(errors <= width * half_width(0.95)) == pytest.approx(0.95, abs=0.002)
    assert width == find_width_factor(RunErrors(*map(np.concatenate, zip(*runs, strict=True))), UNIT)
    assert find_pooled_width([held(rng, std=0.1)], UNIT) == pytest.approx(0.1, rel=0.1)  # narrower where that is proved


def test_tails_are_such_that_both_bands_hold_their_share():
    rng = np.random.default_rng(0)
    for errors in (rng.standard_t(3, size=4000), np.concatenate([rng.normal(size=3000), 2.5 * rng.normal(size=1000)])):
        runs = [RunErrors(errors, np.zeros(len(errors)), np.arange(1.0, 1.0 + len(errors)))]
        noises, width = find_pooled_band(runs, UNIT)
        for level in (0.5, 0.95):
            inside = np.abs(errors) <= width * half_width(level, noises.degrees)
            assert np.mean(inside) == pytest.approx(level, abs=0.02)


def test_light_tails_are_gaussian():
    uniform = RunErrors(np.random.default_rng(0).uniform(-1.0, 1.0, 1000), np.zeros(1000), np.arange(1.0, 1001.0))
    noises, width = find_pooled_band([uniform], UNIT)
    assert noises.degrees is None and width == find_pooled_width([uniform], UNIT)
    silent = RunErrors(np.array([0.0] * 80 + [1.0] * 20), np.zeros(100), np.arange(1.0, 101.0))
    assert find_pooled_band([silent], UNIT)[0].degrees == min(TAILS)


def test_a_constant_band_is_wide_enough_on_every_block():
    rng = np.random.default_rng(0)
    errors = [std * rng.normal(size=300) for std in (0.5, 1.0, 1.0, 3.0)]
    width = find_worst_quantile(errors)
    shares = [np.mean(np.abs(error) <= width) for error in errors]
    assert min(shares) == shares[-1] == pytest.approx(0.95, abs=0.005)


def test_blocks_with_few_errors_count_together():
    rng = np.random.default_rng(0)
    few = [rng.normal(size=MIN_CONFORMAL - 1) for _ in range(200)]
    assert find_worst_quantile(few) == np.quantile(np.abs(np.concatenate(few)), 0.95)
    assert find_worst_quantile([*few, 5.0 * rng.normal(size=MIN_CONFORMAL)]) > 5.0
    assert np.isnan(find_worst_quantile([np.empty(0), np.empty(0)]))


def test_latent_noise_that_explains_the_errors_is_kept():
    rng = np.random.default_rng(1)
    stds = np.linspace(0.2, 2.0, 300)
    drawn = [stds * rng.normal(size=300) for _ in range(6)]
    runs = {scale: [RunErrors(error, scale * stds**2, np.arange(1.0, 301.0)) for error in drawn] for scale in SCALES}
    assert choose_noises_by_likelihood(runs, 1e-4)[0] == 1.0
    useless = {scale: [RunErrors(each, np.full(300, 20.0 * scale), np.ones(300)) for each in drawn] for scale in SCALES}
    scale, noise, _ = choose_noises_by_likelihood(useless, 1e-4)
    assert scale == 0.0 and noise == pytest.approx(np.mean(stds**2), rel=0.2)
    assert POOLED.choose_noises is choose_noises_by_likelihood and POOLED.find_band is find_pooled_band
