"""`RGP.fit`: shapes, seeds, stages, gaps, interrupts, warnings."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.analysis.scores import scores
from revarb.data.series import Series
from revarb.errors import QualityWarning
from revarb.fitting import objective
from revarb.models.recipe import GROUPS, R0_FREE, Recipe, Stage, Status
from revarb.models.rgp import RGP
from revarb.variational.parameters import flatten, select_entries
from support import small
from support.journals import count_evaluations


def flat(model):
    return np.asarray(flatten(model.trained.parameters))


@pytest.mark.parametrize(
    ("changes", "inputs", "outputs"),
    [
        ({"hidden": 1}, 1, 1),
        pytest.param({"hidden": 3, "lags": 1, "input_lags": 3, "input_delay": 3}, 2, 1, marks=pytest.mark.slow),
        pytest.param({"latent_dim": (2, 1), "lags": 3, "input_delay": 0}, 1, 3, marks=pytest.mark.slow),
        pytest.param({}, 0, 1, marks=pytest.mark.slow),
    ],
)
def test_every_shape_of_the_model_fits_and_simulates(changes, inputs, outputs):
    records = [small.record(seed, samples, inputs, outputs) for seed, samples in ((0, 40), (1, 25))]
    model = small.spec(**changes).fit(records)
    assert np.isfinite(model.bound)
    assert model.status in (Status.ITERATION_LIMIT, Status.CONVERGED)
    path = model.simulate(steps=30) if inputs == 0 else model.simulate(small.record(2, 30, inputs).u)
    assert path.mean.shape == path.std.shape == (30, outputs)
    assert np.isfinite(path.mean).all() and (path.std > 0).all()
    assert [len(path) for path in model.smooth()] == [n - model.order.first_row for n in (40, 25)]


def test_the_bound_grows_and_the_fit_follows_the_record():
    record = small.record()
    model = small.spec(recipe=Recipe()).fit(record)
    bounds = [step.bound for step in model.history]
    assert bounds == sorted(bounds) and model.bound == pytest.approx(bounds[-1])
    residual = model.smooth()[0].mean - record.y[2:]
    assert residual.std() < 0.2 * record.y.std()


@pytest.mark.slow
def test_a_known_system_is_recovered():
    """From 150 samples of a known system, simulate it with a far smaller error than the training mean."""
    train, test = small.record(0, samples=150), small.record(7, samples=150)
    model = RGP(lags=2, input_lags=2, inducing=40, calibrate=False).fit(train)
    moments, mean = (scores(model.simulate(test.u, method=method), test.y) for method in ("moments", "mean"))
    assert moments.nrmse < 0.25 and mean.nrmse < 0.25 and 0.85 <= moments.coverage95 <= 1.0


def test_raw_units_do_not_matter():
    record, unseen = small.record(), small.record(5).u
    scaled = Series(1e4 * record.u + 7, 1e-3 * record.y - 2)
    path = small.spec().fit(record).simulate(unseen)
    same = small.spec().fit(scaled).simulate(1e4 * unseen + 7)
    np.testing.assert_allclose(same.mean, 1e-3 * path.mean - 2, rtol=1e-4, atol=1e-6)


def test_stages_free_what_they_name():
    record = small.record()
    mu_only = small.spec(recipe=Recipe(stages=(Stage(("mu",), 1),))).fit(record)
    both = small.spec(recipe=Recipe(stages=(Stage(R0_FREE, 5), Stage(GROUPS, 5)))).fit(record)
    for other, free in ((small.spec().fit(record), small.QUICK.stages[0].free), (both, GROUPS)):
        moved = flat(other) != flat(mu_only)
        for group in (each for each in GROUPS if each not in ("tau", "nu", "linear")):  # it has none
            assert moved[select_entries(mu_only.trained.parameters, (group,))].any() == (group in free), group
    assert {step.stage for step in both.history} == {1, 2}


def test_more_inducing_inputs_than_rows_warn_and_use_the_rows():
    with pytest.warns(UserWarning) as said:
        model = small.spec(inducing=500).fit(small.record(), restarts=2)
    assert [str(each.message) for each in said] == ["inducing=500, but there are only 58 training rows: using 58"]
    assert len(model.best.trained.chain.output.zeta) == model.best.spec.inducing == 58


def test_what_looks_spoiled_in_a_record_is_said_once():
    """At the caller's own line, however many fits a call takes."""
    record = small.record()
    clipped, longer = (replace(each, y=np.minimum(each.y, 0.2)) for each in (record, small.record(samples=130)))
    quick = small.spec(hidden=1)
    for fit, count in (
        (lambda: quick.fit(clipped), 1),
        (lambda: quick.fit(clipped, restarts=2), 1),
        (lambda: quick.fit(record), 0),
        (lambda: revarb.compare(clipped, small.record(1), {"a": quick, "b": revarb.Mean()}, seeds=1), 1),
        (lambda: revarb.fit(longer, jobs=1, candidates=[revarb.ARX(2, 2)]), 1),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        said = [each for each in caught if each.category is QualityWarning]
        assert len(said) == count
        assert all("output 'y' is at its largest" in str(each.message) and each.filename == __file__ for each in said)


def test_an_interrupt_returns_the_best_model_so_far():
    with count_evaluations(press_at=9):
        model = small.spec().fit(small.record())
    assert model.status is Status.INTERRUPTED and 0 < len(model.history) < 15
    assert np.isfinite(model.simulate(small.record(1).u).mean).all()


@pytest.mark.slow
@pytest.mark.usefixtures("kept_programs")
def test_restarts_and_stages_share_one_compilation():
    """Two stages, three seeds, one shape: the bound is traced once."""
    recipe = Recipe(stages=(Stage(("mu",), 2), Stage(("mu", "lam", "zeta", "w"), 2)))
    before = objective.bound_and_gradient._cache_size()
    small.spec(inducing=9, recipe=recipe).fit(small.record(samples=47), restarts=3)
    assert objective.bound_and_gradient._cache_size() == before + 1


@pytest.mark.slow
def test_a_whole_output_may_be_missing_in_one_record(tmp_path):
    """It is filled, with a wider band."""
    records, test = [small.record(outputs=2), small.with_gaps(small.record(1, outputs=2), np.s_[:, 1])], small.record(2)
    model = small.spec(hidden=1).fit(records)
    loaded = revarb.load(model.save(tmp_path / "m.rgp"))
    for method in ("moments", "mean", "samples"):
        path = model.simulate(test.u, method)
        assert np.isfinite(path.mean).all()
        np.testing.assert_array_equal(path.mean, loaded.simulate(test.u, method).mean)
    assert len(model.trained.chain.output.reduction) == 2  # separate posterior covariances, for different gaps
    measured, filled = (path.std[:, 1].mean() for path in model.smooth())
    assert filled > measured
