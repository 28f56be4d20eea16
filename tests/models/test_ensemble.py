"""The mixture of several fits."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import revarb
from fuzz import samples
from revarb.data.series import Window
from revarb.errors import InputError
from revarb.models.ensemble import Ensemble, mix_paths
from revarb.models.model_file import read_container, write_container
from revarb.models.status import Status
from support import small


@pytest.fixture(scope="module")
def ensemble():
    return small.spec().fit(small.record(), seed=3, restarts=3)


def same_numbers(one, other):
    assert one.bounds == other.bounds
    for ours, theirs in zip(one.members, other.members, strict=True):
        assert (ours.seed, ours.history) == (theirs.seed, theirs.history)
        for a, b in zip(jax.tree.leaves(ours.trained), jax.tree.leaves(theirs.trained), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("method", ["mean", "moments"])
def test_the_mixture_has_the_mean_of_the_means_and_the_total_variance(ensemble, method):
    u = small.record(1).u
    path, paths = ensemble.simulate(u, method), [member.simulate(u, method) for member in ensemble.members]
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


@pytest.mark.slow
def test_samples_are_divided_among_the_members(ensemble):
    u = small.record(1).u
    path = ensemble.simulate(u, "samples", samples=8, seed=5)
    assert path.samples.shape == (8, 60, 1)
    first = ensemble.members[0].simulate(u, "samples", samples=3, seed=5)
    np.testing.assert_array_equal(path.samples[:3], first.samples)
    apart = [
        member.simulate(u, "samples", samples=count, seed=5 + number).disagreement
        for number, (member, count) in enumerate(zip(ensemble.members, (3, 3, 2), strict=True))
    ]
    assert path.disagreement == max(apart) > min(apart)
    assert ensemble.simulate(u).disagreement is None
    with pytest.raises(InputError, match=r"two or more per member.* at least 6, received 4"):
        ensemble.simulate(u, "samples", samples=4)


def test_an_ensemble_continues_from_its_final_states(ensemble):
    u = small.record(1).u
    path = ensemble.simulate(u, start=ensemble.final_states[0])
    each = [member.simulate(u, start=member.final_states[0]) for member in ensemble.members]
    np.testing.assert_array_equal(path.mean, mix_paths(each).mean)
    for wrong in (ensemble.final_states[0][:1], ensemble.best.final_states):
        with pytest.raises(InputError, match=r"must be one of this ensemble's final_states.* each of its 3 members"):
            ensemble.simulate(u, start=wrong)


def test_an_ensemble_is_saved_whole(ensemble, tmp_path):
    again = revarb.load(ensemble.save(tmp_path / "e.rgp"))
    assert isinstance(again, Ensemble)
    same_numbers(ensemble, again)
    u = small.record(1).u
    np.testing.assert_array_equal(again.simulate(u).std, ensemble.simulate(u).std)
    assert repr(again) == repr(ensemble)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: header["members"].pop(), "names 2 members and has arrays of 3"),
        (lambda header: header["members"][1].update(kind="Oracle"), "kind 'Oracle'"),
        (lambda header: header["members"][1].update(seed=3), r"must differ in their seeds, received \[3, 3, 5\]"),
        (lambda header: header["members"][1].update(seed=float("inf")), "seed must be a whole number"),
        (lambda header: header.update(members=[]), "names 0 members"),
        (lambda header: header.update(members=7), "is damaged"),
    ],
)
def test_an_invalid_ensemble_file_is_refused(ensemble, tmp_path, change, message):
    path = ensemble.save(tmp_path / "e.rgp")
    header, arrays = read_container(path)
    change(header)
    write_container(path, header, arrays)
    with pytest.raises(InputError, match=message):
        revarb.load(path)


def test_members_of_different_records_do_not_mix(ensemble):
    other = small.spec().fit(small.record(2))
    with pytest.raises(InputError, match=r"one configuration to the same records; the one of seed 3 differs from .* 0"):
        Ensemble.from_members([*ensemble.members, other])
    with pytest.raises(InputError, match="takes one or more fitted RGPs, received"):
        Ensemble.from_members([])
    with pytest.raises(InputError, match=r"must differ in their seeds, received \[0, 0\]"):
        Ensemble.from_members([other, other])


@pytest.mark.slow
def test_an_ensemble_takes_the_same_starts():
    ensemble = small.spec(hidden=1).fit(small.record(samples=80), restarts=2)
    record = small.record(5)
    window = Window(record.u[:20], record.y[:20])
    for start in ("continue", window):
        path = ensemble.simulate(record.u[20:], start=start)
        each = [member.simulate(record.u[20:], start=start).mean for member in ensemble.members]
        np.testing.assert_allclose(path.mean, np.mean(each, axis=0))
    assert ensemble.predict(record, 2).start == "2 steps ahead"


@pytest.fixture(scope="module")
def mixture(ensemble):
    """Two models of the same record with different orders; the second has the larger skip."""
    other = samples.at_the_start(small.spec(lags=3, input_lags=4, hidden=1, inducing=5), 3, [small.record()])
    return Ensemble.from_candidates([ensemble.members[0], other])


def test_different_models_of_the_same_records_mix(mixture):
    first, second = mixture.members
    assert mixture.mixed and mixture.best is first and mixture.skip == second.skip == 7 > first.skip
    assert (mixture.spec, mixture.bound, mixture.status) == (first.spec, first.bound, first.status)
    u = small.record(1).u
    path, paths = mixture.simulate(u), [member.simulate(u) for member in mixture.members]
    np.testing.assert_allclose(path.mean, (paths[0].mean + paths[1].mean) / 2.0)
    assert path.skip == 7 and (path.std >= np.minimum(paths[0].std, paths[1].std)).all()
    continued = mixture.simulate(u, start=mixture.final_states[0])
    np.testing.assert_allclose(continued.mean, mixture.simulate(u, start="continue").mean)
    summary = mixture.summary()
    assert "Ensemble, best member: seed 3" in str(summary)
    assert [row[-1] for row in summary.tables[0].rows] == [
        "2 + 2 lags, 2 hidden, w = 0", "3 + 4 lags, 1 hidden, w = 0",
    ]  # fmt: skip


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


def test_a_mixture_is_saved_in_its_order(mixture, tmp_path):
    again = revarb.load(mixture.save(tmp_path / "e.rgp"))
    same_numbers(mixture, again)
    assert [member.spec for member in again.members] == [member.spec for member in mixture.members]
    assert again.mixed and again.skip == mixture.skip
    u = small.record(1).u
    np.testing.assert_array_equal(again.simulate(u).std, mixture.simulate(u).std)


def test_a_mixture_takes_models_of_the_same_records_only(mixture):
    other = samples.at_the_start(small.spec(inducing=5), 0, [small.record(2)])
    with pytest.raises(InputError, match="members must be fits to the same records"):
        Ensemble.from_candidates([*mixture.members, other])
    with pytest.raises(InputError, match="takes one or more fitted RGPs, received"):
        Ensemble.from_candidates([])
    assert len(Ensemble.from_candidates([other])) == 1
