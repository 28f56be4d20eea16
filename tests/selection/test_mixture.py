"""The bands of a mixture: they hold their share of the held-out errors, by sums and draws that are slow and obvious."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student_t

from fuzz import samples
from revarb.fitting.calibrate import HeldOutBands
from revarb.fitting.calibration_rule import RunErrors
from revarb.models.calibration import Calibration
from revarb.models.ensemble import Ensemble
from revarb.selection.mixture import (
    LEAST_DEGREES,
    LEAST_FACTOR,
    MixtureErrors,
    find_band,
    find_factor,
    find_likely_band,
    join_errors,
    scale_bands,
)

CALIBRATION = Calibration(0.3, 0.05, (2, 5), (1.2, 0.9, 1.5), 12, 0.4)


def share_inside(errors, factor, distribution, level):
    """One sample after the other: members' variances are scaled, those of their means are not."""
    half = distribution.ppf(0.5 + 0.5 * level) / distribution.std()
    return np.mean([
        abs(error) <= half * np.sqrt(factor**2 * within + between)
        for error, within, between in zip(*errors, strict=True)
    ])  # fmt: skip


def draw_errors(seed, degrees=None, samples=3000, factor=2.0):
    """Errors of a mixture whose members' standard deviations are too small by a factor."""
    rng = np.random.default_rng(seed)
    within, between = rng.uniform(0.01, 0.1, samples), rng.uniform(0.0, 0.02, samples)
    distribution = norm() if degrees is None else student_t(degrees)
    unit = distribution.rvs(size=samples, random_state=rng) / distribution.std()
    return MixtureErrors(unit * np.sqrt(factor**2 * within + between), within, between)


@pytest.mark.parametrize("degrees", [None, 3.0])
def test_the_factor_holds_95_percent(degrees):
    errors = draw_errors(0, degrees)
    factor, distribution = find_factor(errors, degrees), norm() if degrees is None else student_t(degrees)
    assert share_inside(errors, factor, distribution, 0.95) == pytest.approx(0.95, abs=2e-3)
    assert factor == pytest.approx(2.0, rel=0.1)
    assert share_inside(errors, 0.98 * factor, distribution, 0.95) < 0.95  # no narrower one does
    disagreeing = errors._replace(between=np.full(3000, 10.0))
    assert find_factor(disagreeing, degrees) == LEAST_FACTOR


def test_tails_are_found_where_the_errors_have_them():
    gaussian, heavy = find_band(draw_errors(1)._replace(between=np.zeros(3000))), find_band(draw_errors(1, 3.0))
    assert gaussian.degrees is None or gaussian.degrees > 15.0
    assert 2.1 < heavy.degrees < 6.0
    for level, tolerance in ((0.5, 0.02), (0.95, 2e-3)):
        inside = share_inside(draw_errors(1, 3.0), heavy.factor, student_t(heavy.degrees), level)
        assert inside == pytest.approx(level, abs=tolerance)
    flat = draw_errors(1)._replace(error=np.tile([-1.0, 1.0], 1500))  # all errors of one size: lighter than a Gaussian
    assert find_band(flat).degrees is None


def test_with_outliers_to_be_predicted_the_most_likely_band():
    errors = draw_errors(2, 4.0)
    found = find_likely_band(errors)
    assert found.factor == pytest.approx(2.0, rel=0.15) and found.degrees in (3.0, 4.0, 6.0)

    def likelihood(factor, degrees):
        std = np.sqrt(factor**2 * errors.within + errors.between)
        return np.sum(student_t.logpdf(errors.error, degrees, scale=std * np.sqrt((degrees - 2.0) / degrees)))

    best = likelihood(*found)
    assert all(
        best >= likelihood(factor, degrees) for factor in (0.3, 1.0, 1.5, 2.6, 4.0) for degrees in (2.5, 4.0, 30.0)
    )


def make_runs(seed, *lengths, first=0):
    """Runs of blocks that a member has; their numbers begin at `first`."""
    rng = np.random.default_rng(seed)
    return {
        first + number: RunErrors(rng.normal(size=n), rng.uniform(0.5, 1.5, size=n), np.arange(1.0, n + 1.0))
        for number, n in enumerate(lengths)
    }


def test_errors_are_joined_on_the_blocks_of_all_members():
    runs = [make_runs(0, 3, 4, 5), make_runs(1, 4, 5, first=1), make_runs(2, 3, 4, 5, 6)]
    joined, expected = join_errors(runs), []
    for block in (1, 2):
        for sample in range(len(runs[0][block].error)):
            errors = [each[block].error[sample] for each in runs]
            variances = [each[block].variance[sample] for each in runs]
            mean = sum(errors) / 3.0
            expected.append((mean, sum(variances) / 3.0, sum((error - mean) ** 2 for error in errors) / 3.0))
    np.testing.assert_allclose(np.stack(joined), np.transpose(expected))
    assert join_errors([]) is None and join_errors([make_runs(0, 3), make_runs(0, 3, first=1)]) is None


@pytest.fixture(scope="module")
def models():
    """Two recurrent GPs and a linear model of the same records."""
    linear = replace(samples.revarb.ARX(2, 2).fit(samples.RECORDS), horizon_std=np.array([[0.1], [0.3]]))
    return [replace(samples.model(seed), calibration=CALIBRATION) for seed in (0, 1)] + [linear]


def make_bands(seed, tails=None):
    rng = np.random.default_rng(seed)

    def draw(block, spread):
        error = spread * (rng.normal(size=50) if tails is None else student_t.rvs(tails, size=50, random_state=rng))
        return block, RunErrors(error, np.full(50, 0.04), np.arange(1.0, 51.0))

    return HeldOutBands(dict(draw(block, 0.6) for block in range(12)), dict(draw(block, 0.3) for block in range(12)))


def test_the_bands_of_all_members_are_widened(models):
    bands = [make_bands(seed) for seed in range(3)]
    mixture = Ensemble.from_candidates(scale_bands(models, bands))
    far = find_band(join_errors([each.cold for each in bands]))
    near = find_factor(join_errors([each.ahead for each in bands]), far.degrees)
    assert far.factor > near > LEAST_FACTOR
    for member in mixture.members[:2]:
        np.testing.assert_allclose(member.calibration.factors, [1.2 * near, 0.9 * near, 1.5 * far.factor])
        assert member.calibration.output_noise == CALIBRATION.output_noise
    linear = mixture.members[2]
    np.testing.assert_allclose(linear.residual_std, far.factor * models[2].residual_std)
    np.testing.assert_allclose(linear.horizon_std, near * models[2].horizon_std)
    # The mixture of the scaled members has the band that was calibrated: their variances scaled, their means as before.
    u = samples.U
    path, before = mixture.simulate(u), [model.simulate(u) for model in models]
    within = np.mean([each.std**2 for each in before], axis=0)
    between = np.var([each.mean for each in before], axis=0)
    np.testing.assert_allclose(path.std[-1], np.sqrt(far.factor**2 * within + between)[-1], rtol=1e-3)


def test_tails_of_the_mixture_are_those_of_its_recurrent_members(models):
    bands = [make_bands(seed, tails=2.2) for seed in range(3)]
    mixture = Ensemble.from_candidates(scale_bands(models, bands))
    far = find_band(join_errors([each.cold for each in bands]))
    own = [member.calibration.degrees_of_freedom for member in mixture.members[:2]]
    assert far.degrees is not None and own == [max(far.degrees * 2 / 3, LEAST_DEGREES)] * 2
    assert mixture.simulate(samples.U).degrees_of_freedom == pytest.approx(1.5 * own[0])


@pytest.mark.parametrize("which", ["a member is not calibrated", "no common block"])
def test_otherwise_the_bands_are_those_of_the_members(models, which):
    bands = [make_bands(0), None] if which.startswith("a") else [make_bands(0), HeldOutBands({}, {})]
    assert [each.calibration for each in scale_bands(models[:2], bands)] == [CALIBRATION] * 2
