"""The mixture of several fits."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from scipy.stats import t as student_t
from threadpoolctl import threadpool_info

import revarb
from fuzz import samples
from revarb.data.trajectory import Trajectory
from revarb.errors import ComputationError
from revarb.models.ensemble import Ensemble, mix_paths, run_members
from revarb.models.recipe import Status
from support import small
from support.linear_systems import first_order_model, first_order_record


@pytest.fixture(scope="module")
def ensemble():
    return small.spec().fit(small.record(), seed=3, restarts=3)


@pytest.mark.parametrize("method", ["mean", "moments"])
def test_the_mixture_has_the_mean_of_the_means_and_the_total_variance(ensemble, method):
    """Also of members whose bands are calibrated."""
    calibration = revarb.Calibration(0.3, 0.04, edges=(2, 10), factors=(10.0, 10.0, 10.0), stretches=12, error=0.2)
    members = [replace(ensemble.members[0], calibration=calibration), *ensemble.members[1:]]
    u = small.record(1).u
    path = Ensemble.from_members(members).simulate(u, method)
    paths = [member.simulate(u, method) for member in members]
    means = np.stack([each.mean for each in paths])
    np.testing.assert_allclose(path.mean, means.mean(0), rtol=1e-12)
    assert (path.skip, path.method, path.output_names) == (paths[0].skip, method, paths[0].output_names)
    if method == "mean":
        assert path.std is None
        return
    # A member is drawn first, then a value from it: by plain sums, E[y²] − E[y]².
    second = np.mean([each.std**2 + each.mean**2 for each in paths], axis=0)
    np.testing.assert_allclose(path.std**2, second - means.mean(0) ** 2, rtol=1e-9)
    assert (path.std >= np.min([each.std for each in paths], axis=0)).all()


def test_members_run_side_by_side_as_they_do_one_after_the_other(ensemble):
    """Digit by digit; JAX's and LAPACK's settings are restored."""
    u, before = small.record(1).u, (threadpool_info(), jax.config.jax_enable_x64)
    for start in ("cold", "continue"):
        paths = run_members(ensemble.members, lambda _, member, start=start: member.simulate(u, start=start))
        for path, member in zip(paths, ensemble.members, strict=True):
            alone = member.simulate(u, start=start)
            np.testing.assert_array_equal((path.mean, path.std), (alone.mean, alone.std))
    with np.errstate(all="ignore"), pytest.warns(UserWarning, match="leaves its training range") as caught:
        ensemble.simulate(100.0 * u)
    assert len(caught) == 1 and (threadpool_info(), jax.config.jax_enable_x64) == before


def test_samples_are_divided_among_the_members(ensemble):
    """Those of a linear member keep their place in its band."""
    first, linear, u = ensemble.members[0], revarb.ARX(3, 1).fit(small.record()), small.record(1).u
    path = Ensemble.from_candidates([first, linear]).simulate(u, "samples", samples=7, seed=5)
    alone, plain = first.simulate(u, "samples", samples=4, seed=5), linear.simulate(u)
    np.testing.assert_array_equal(path.samples[:4], alone.samples)
    assert path.samples.shape == (7, 60, 1) and (path.method, path.disagreement) == ("samples", alone.disagreement)
    places = (path.samples[4:] - plain.mean) / plain.std
    np.testing.assert_allclose(places, np.tile(places[:, :1], (1, 60, 1)), rtol=1e-9)
    assert len(np.unique(places[:, 0])) == 3


@pytest.fixture(scope="module")
def mixture(ensemble):
    """Two models of the same record with different orders; the second has the larger skip."""
    other = samples.at_the_start(small.spec(lags=3, input_lags=4, hidden=1, inducing=5), 3, [small.record()])
    return Ensemble.from_candidates([ensemble.members[0], other])


def test_different_models_of_the_same_records_mix(mixture):
    first, second = mixture.members
    assert mixture.mixed and mixture.best is first and mixture.skip == max(first.skip, second.skip)
    assert mixture.order == second.order
    assert (mixture.spec, mixture.bound, mixture.status) == (first.spec, first.bound, first.status)
    u = small.record(1).u
    path, paths = mixture.simulate(u), [member.simulate(u) for member in mixture.members]
    np.testing.assert_allclose(path.mean, (paths[0].mean + paths[1].mean) / 2.0)
    assert (
        len(Ensemble.from_candidates([second])) == 1
        and path.skip == mixture.skip
        and (path.std >= np.minimum(paths[0].std, paths[1].std)).all()
    )
    continued = mixture.simulate(u, start=mixture.final_states[0])
    np.testing.assert_allclose(continued.mean, mixture.simulate(u, start="continue").mean)
    summary = mixture.summary()
    assert "Ensemble of 2 models; below, the best member" in str(summary)
    assert [row[0] for row in summary.tables[0].rows] == [
        "2 + 2 lags, 2 hidden, w = 0, seed 3", "3 + 4 lags, 1 hidden, w = 0, seed 3",
    ]  # fmt: skip


def test_a_member_that_diverges_is_left_out_of_a_run():
    """With a warning; where all of them diverge, that is an error."""
    record = first_order_record(0.8, np.random.default_rng(0).normal(size=300))
    good, other, bad, worse = (first_order_model(feedback, record) for feedback in (0.8, 0.7, 50.0, 60.0))
    expected = Ensemble.from_candidates([good, other])
    with pytest.warns(UserWarning, match="^1 of 3 members diverged and are left out of this run: ") as seen:
        path = Ensemble.from_candidates([good, bad, other]).simulate(record.u)
    assert len(seen) == 1
    for name in ("mean", "std"):
        np.testing.assert_array_equal(getattr(path, name), getattr(expected.simulate(record.u), name))
    with pytest.raises(ComputationError):
        Ensemble.from_candidates([bad, worse]).simulate(record.u)


def test_a_mixture_is_smoothed_where_all_members_are(mixture):
    [path], [first, second] = mixture.smooth(), [member.smooth()[0] for member in mixture.members]
    assert len(path) == len(second) < len(first)
    np.testing.assert_allclose(path.mean, (first.mean[-len(path) :] + second.mean) / 2.0)
    assert path.std.shape == path.mean.shape


def test_an_interrupted_mixture_stays_interrupted_in_its_file(mixture, ensemble, tmp_path):
    """The members that are kept have finished."""
    for model in (mixture, ensemble):
        stopped = replace(model, status=Status.INTERRUPTED)
        assert revarb.load(stopped.save(tmp_path / "e.rgp")).status is Status.INTERRUPTED
        assert revarb.load(model.save(tmp_path / "e.rgp")).status is model.status


def test_an_ensemble_has_the_surface_of_a_single_model(ensemble):
    single = ensemble.best
    internal = {"trained", "chain", "resolve_start", "refit", "cold_start", "settling", "width_factors",
                "known_range"}  # fmt: skip
    assert not {name for name in dir(single) if not name.startswith("_")} - set(dir(ensemble)) - internal
    for name in ("spec", "bound", "lengths", "history", "calibration"):
        assert getattr(ensemble, name) == getattr(single, name), name
    assert ensemble.bound == max(ensemble.bounds)
    with pytest.raises(revarb.InputError, match="has no networks"):
        ensemble.recognise(small.record(1).u)
    linear = Ensemble.from_candidates([revarb.ARX(2, 2).fit(small.record())])
    assert len(linear.plot_fit(small.record()).axes) == 1  # its free run
    assert ensemble.smooth()[0].mean.shape == single.smooth()[0].mean.shape
    assert len(ensemble.latent_paths()) == 2


@pytest.mark.parametrize("degrees", [(4.0, None), (4.0, None, None), (3.0, 10.0), (4.0, 4.0)])
@pytest.mark.parametrize("level", [0.95, 0.99])
def test_heavy_tails_outlive_a_gaussian_member(degrees, level):
    """The band of the mixture of members with equal means and standard deviations, found by bisection."""

    def outside(x):
        tails = [2 * norm.sf(x) if d is None else 2 * student_t.sf(x * np.sqrt(d / (d - 2.0)), d) for d in degrees]
        return np.mean(tails) - (1.0 - level)

    mean = np.zeros((3, 1))
    paths = [Trajectory(mean, mean + 1.0, "moments", 0, ("y",), degrees_of_freedom=each) for each in degrees]
    mixture = mix_paths(paths)
    np.testing.assert_allclose(mixture.interval(level)[1], brentq(outside, 0.5, 9.0), rtol=0.05)
    assert mix_paths([replace(path, degrees_of_freedom=None) for path in paths]).degrees_of_freedom is None
