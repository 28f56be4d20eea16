"""Noise and band widths from held-out errors."""

import numpy as np
import pytest

from revarb.data.scaling import half_width
from revarb.fitting import calibration_rule as rule

UNIT = rule.Noises(1.0, 1.0)


def as_run(error, variance=0.0):
    return rule.RunErrors(error, np.full(len(error), variance), np.arange(1.0, len(error) + 1.0))


def held(rng, count=200, std=1.0, variance=0.0):
    return as_run(std * rng.normal(size=count), variance)


def test_latent_noise_is_kept_unless_less_is_significantly_better():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.5, 1.0, size=12)
    same = np.stack([base] * len(rule.SCALES))
    noise = 0.2 * rng.normal(size=same.shape)
    one_block = same.copy()
    one_block[0, 3] *= 0.01
    for errors in (same, same * np.exp(noise), one_block):
        assert rule.choose_latent_scale(errors) == 1.0
    assert rule.choose_latent_scale(np.stack([base * 0.8, base * 0.7, base * 0.9, base])) == rule.SCALES[1]


def test_the_outputs_noise_is_that_of_the_median_block():
    rng = np.random.default_rng(1)
    blocks = [held(rng, std=0.5, variance=0.05) for _ in range(11)]
    assert rule.choose_output_noise(blocks, 0.01) == pytest.approx(0.2, rel=0.15)
    odd = [*blocks[:-1], held(rng, std=20.0, variance=0.05)]
    assert rule.choose_output_noise(odd, 0.01) == pytest.approx(rule.choose_output_noise(blocks, 0.01), rel=0.1)
    assert (
        rule.choose_output_noise([held(rng, std=0.01) for _ in range(5)], 0.04) == 0.04
    )  # never less than the fit had


def test_the_width_is_that_of_the_ranked_error():
    rng = np.random.default_rng(2)
    assert rule.find_width_factor(held(rng, count=5000), UNIT) == pytest.approx(1.0, abs=0.05)
    assert rule.find_width_factor(held(rng, count=5000, std=2.0), UNIT) == pytest.approx(2.0, abs=0.1)
    few = as_run(np.array([0.1, -3.0, 0.2]))
    assert rule.find_width_factor(few, UNIT) == pytest.approx(3.0 / half_width(0.75))
    exact = as_run(np.arange(1.0, 20.0))  # rank ⌈0.95 · 20⌉ = 19
    assert rule.find_width_factor(exact, UNIT) == pytest.approx(19.0 / half_width(0.95))


def test_heavy_tails_are_found_and_their_width_is_theirs():
    rng = np.random.default_rng(3)
    runs = [rule.RunErrors(0.5 * rng.standard_t(3.0, size=500), np.zeros(500), np.arange(500.0)) for _ in range(8)]
    noises = rule.HEAVY.choose_noises(dict.fromkeys(rule.SCALES, runs), 1e-4)
    assert 2.5 <= noises.degrees <= 4.0
    assert noises.output == pytest.approx(0.25 * 3.0, rel=0.5)  # the variance of a Student-t with three degrees: 3 s²
    for factor in (1.0, 2.0):
        wider = [run._replace(error=factor * run.error) for run in runs]
        assert rule.HEAVY.find_width(wider, noises) == pytest.approx(factor, rel=0.15)
    runs = [held(rng, count=40, std=0.1) for _ in range(12)]
    for run in runs[:4]:  # outliers in four of twelve blocks: all blocks count, not the median one
        run.error[::10] += 2.0
    assert rule.HEAVY.choose_noises(dict.fromkeys(rule.SCALES, runs), 1e-4).degrees <= 4.0


def test_pooled_bands_hold_95_percent_of_all_errors():
    rng = np.random.default_rng(0)
    runs = [held(rng, count=300, std=std) for std in (0.5, 1.0, 1.0, 3.0)]
    width = rule.find_pooled_width(runs, UNIT)
    errors = np.abs(np.concatenate([run.error for run in runs]))
    assert np.mean(errors <= width * half_width(0.95)) == pytest.approx(0.95, abs=0.002)
    assert width == rule.find_width_factor(rule.RunErrors(*map(np.concatenate, zip(*runs, strict=True))), UNIT)
    assert rule.find_pooled_width([held(rng, std=0.1)], UNIT) == pytest.approx(0.1, rel=0.1)  # narrower where proved


def test_tails_are_such_that_both_bands_hold_their_share():
    rng = np.random.default_rng(0)
    for errors in (rng.standard_t(3, size=4000), np.concatenate([rng.normal(size=3000), 2.5 * rng.normal(size=1000)])):
        noises, width = rule.find_pooled_band([as_run(errors)], UNIT)
        for level in (0.5, 0.95):
            inside = np.abs(errors) <= width * half_width(level, noises.degrees)
            assert np.mean(inside) == pytest.approx(level, abs=0.02)
    light = as_run(rng.uniform(-1.0, 1.0, 1000))
    noises, width = rule.find_pooled_band([light], UNIT)
    assert noises.degrees is None and width == rule.find_pooled_width([light], UNIT)
    silent = as_run(np.array([0.0] * 80 + [1.0] * 20))
    assert rule.find_pooled_band([silent], UNIT)[0].degrees == min(rule.TAILS)


def test_a_constant_band_is_wide_enough_on_every_block_and_few_errors_count_together():
    rng = np.random.default_rng(0)
    errors = [std * rng.normal(size=300) for std in (0.5, 1.0, 1.0, 3.0)]
    width = rule.find_worst_quantile(errors)
    shares = [np.mean(np.abs(error) <= width) for error in errors]
    assert min(shares) == shares[-1] == pytest.approx(0.95, abs=0.005)
    few = [rng.normal(size=rule.MIN_CONFORMAL - 1) for _ in range(200)]
    assert rule.find_worst_quantile(few) == np.quantile(np.abs(np.concatenate(few)), 0.95)
    assert rule.find_worst_quantile([*few, 5.0 * rng.normal(size=rule.MIN_CONFORMAL)]) > 5.0
    assert np.isnan(rule.find_worst_quantile([np.empty(0), np.empty(0)]))


def test_latent_noise_that_explains_the_errors_is_kept():
    rng = np.random.default_rng(1)
    stds = np.linspace(0.2, 2.0, 300)
    drawn = [stds * rng.normal(size=300) for _ in range(6)]
    runs = {scale: [as_run(error)._replace(variance=scale * stds**2) for error in drawn] for scale in rule.SCALES}
    assert rule.POOLED.choose_noises(runs, 1e-4)[0] == 1.0
    useless = {scale: [as_run(error, 20.0 * scale) for error in drawn] for scale in rule.SCALES}
    scale, noise, _ = rule.POOLED.choose_noises(useless, 1e-4)
    assert scale == 0.0 and noise == pytest.approx(np.mean(stds**2), rel=0.2)
    assert rule.POOLED.find_band is rule.find_pooled_band
