"""Records as rows of a bound: missing outputs are masked, and blocks take the place of long records."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import revarb
from revarb.analysis.scores import scores
from revarb.errors import InputError
from revarb.fitting.problem import mask_missing
from revarb.gp.collapsed import collapsed_bound
from revarb.gp.layer import Gaussians, Targets
from revarb.models.recipe import FIXED_FREE, Recipe, Recognition, Stage
from revarb.runtime.numerics import with_numerics
from revarb.variational.bound import Layout, Rows, build_layer_problems, compute_posteriors, revarb_bound
from support import small


@pytest.mark.slow
@with_numerics
def test_masked_rows_have_no_weight():
    """The bound with masked rows is that of the output layer over the other rows, and of all hidden layers."""
    problem = small.problem(small.spec(hidden=1), small.record())
    y, gone = problem.rows.y.copy(), np.array([3, 4, 20])
    y[gone] = np.nan
    rows, layout = mask_missing(Rows(problem.rows.u_bar, y), problem.layout)
    assert layout.groups == ((0,),) and rows.measured.sum() == len(y) - 3 and not np.isnan(rows.y).any()
    whole = float(revarb_bound(problem.start, problem.rows, problem.layout))
    layer, x_hat, targets = build_layer_problems(problem.start, problem.start.states, problem.rows, problem.layout)[-1]
    kept = np.delete(np.arange(len(y)), gone)
    x_kept, y_kept = Gaussians(x_hat.mean[kept], x_hat.variance[kept]), Targets(targets.mean[kept], 0.0)
    full, less = (collapsed_bound(layer, *each, layout.jitter) for each in ((x_hat, targets), (x_kept, y_kept)))
    lost = whole - float(revarb_bound(problem.start, rows, layout))
    assert lost == pytest.approx(float(full - less), rel=1e-6)
    everything = problem.rows._replace(measured=np.ones((len(y), 1), dtype=bool))  # the same as no mask
    assert float(revarb_bound(problem.start, everything, layout)) == pytest.approx(whole)


@with_numerics
def test_outputs_with_different_gaps_are_separate_groups():
    record = small.with_gaps(small.record(outputs=3), (slice(10, 15), 1))
    problem = small.problem(small.spec(hidden=1), record)
    assert sorted(problem.layout.groups) == [(0, 2), (1,)]
    known = compute_posteriors(problem.start, problem.rows, problem.layout)[-1]
    assert known.reduction.ndim == 3
    np.testing.assert_array_equal(known.reduction[0], known.reduction[2])
    assert not np.allclose(known.reduction[0], known.reduction[1])
    for column in range(3):  # each output alone has the same posterior
        y = np.where(np.isnan(record.y[2:, [column]]), np.nan, problem.rows.y[:, [column]])
        layout = Layout(problem.layout.lags, problem.layout.lengths, problem.layout.jitter)
        single = compute_posteriors(problem.start, *mask_missing(Rows(problem.rows.u_bar, y), layout))[-1]
        np.testing.assert_allclose(single.beta[:, 0], known.beta[:, column], rtol=1e-6, atol=1e-9)


LIMIT = 200  # rows of a small limit
RECIPE = replace(small.QUICK, max_rows=LIMIT)


@with_numerics
@pytest.mark.parametrize("lengths", [(60,), (60, 60), (40, 60, 60, 50)])
def test_below_the_limit_nothing_changes(lengths):
    records = [small.record(seed, samples) for seed, samples in enumerate(lengths)]
    limited, unlimited = (
        small.problem(small.spec(recipe=replace(small.QUICK, max_rows=rows)), *records) for rows in (sum(lengths), None)
    )
    assert limited.layout == unlimited.layout and limited.ends == tuple(np.cumsum(limited.layout.lengths))
    for ours, theirs in zip(*(jax.tree.leaves(each[3:5]) for each in (limited, unlimited)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@with_numerics
def test_scaling_is_that_of_all_rows_and_free_runs_and_inducing_inputs_those_of_the_blocks():
    record, recipe = small.record(samples=1000), replace(RECIPE, free_run_weight=1.0)
    with pytest.warns(UserWarning, match="only 192 training rows"):
        problem = small.problem(small.spec(hidden=1, inducing=300, recipe=recipe), record)
    assert sum(problem.layout.lengths) == LIMIT and problem.spec.inducing == 192
    assert problem.runs.y.shape[:2] == (48, 4)
    np.testing.assert_array_equal(problem.preprocessor.scaling.y_std, record.y.std(0))
    assert problem.preprocessor.input_range.high == record.u.max()


SLOWER = Recipe(hidden_noise=0.01, latent_variance=0.02, stages=(Stage(FIXED_FREE, 40),))


def fit_rows(records, rows):
    return small.spec(hidden=1, inducing=20, recipe=replace(SLOWER, max_rows=rows)).fit(records)


@pytest.mark.slow
def test_a_fit_by_blocks_simulates_as_well_as_one_to_all_rows():
    """A fifth of the rows, and an error on a new record that is at most one and a half times as large."""
    train, test = small.record(0, samples=1500), small.record(1, samples=400)
    few, all_rows = (scores(fit_rows(train, rows).simulate(test.u), test.y, skip=5).rmse for rows in (300, None))
    assert few < 1.5 * all_rows and few < 0.05


@pytest.mark.slow
def test_a_simulation_continues_the_end_of_every_record():
    whole = small.record(0, samples=1000)
    records = [small.record(2, samples=500), whole[:970]]
    model = fit_rows(records, 400)
    assert len(model.final_states) == 2 and len(model.lengths) == 8
    for state, record in zip(model.final_states, records, strict=True):
        np.testing.assert_array_equal(state.past_u, model.scaling.inputs(record.u)[-2:])
    after = scores(model.simulate(whole.u[970:], start="continue"), whole.y[970:], skip=0)
    assert after.rmse < 0.1  # from the first row on, where a cold run is wrong by 0.5


def test_gaps_files_summary_and_figure_of_blocks(tmp_path):
    """A record with gaps, one of which ends it."""
    record = small.with_gaps(small.record(samples=1000), np.s_[100:400], np.s_[950:])
    model = small.spec(recipe=RECIPE).fit(record)
    assert sum(model.lengths) == LIMIT and len(model.smooth()) == len(model.lengths) == 4
    assert np.isfinite(model.simulate(record.u).mean).all()
    assert np.isfinite(model.simulate(record.u, start="continue").std).all()
    loaded = revarb.load(model.save(tmp_path / "model.rgp"))
    assert (loaded.lengths, len(loaded.final_states)) == (model.lengths, 1)
    ours, theirs = (each.simulate(record.u[:30], start="continue").mean for each in (model, loaded))
    np.testing.assert_array_equal(ours, theirs)
    assert "1, 192 rows in 4 blocks" in str(model.summary())
    assert len(model.plot_fit(record).axes) == len(model.plot_fit().axes)
    with pytest.raises(InputError, match="pass the training records"):
        model.plot_fit(record[:300])


@pytest.mark.slow
def test_calibration_restarts_and_recognition():
    """Of a record that ends in a gap; it is calibrated on whole records."""
    record = small.with_gaps(small.record(samples=600), np.s_[540:])
    spec = small.spec(hidden=1, recipe=RECIPE, calibrate=True)
    ensemble = spec.fit(record, restarts=2, jobs=1)
    assert ensemble.lengths == (50,) * 4
    assert ensemble.calibration.stretches >= 10 and ensemble.calibration.edges[-1] == 50  # a twelfth of the record
    networks = Recognition(hidden=(4,), starts=1, start_steps=3, rounds=(3,))
    model = replace(spec, recognition=networks, calibrate=False).fit(record)
    assert model.lengths == (50,) * 4 and len(model.recognise(record.u)[0]) == 600
