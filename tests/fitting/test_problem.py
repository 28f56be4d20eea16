"""Records as rows of a bound: missing outputs are masked, and blocks take the place of long records."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import revarb
from revarb.analysis.scores import scores
from revarb.errors import InputError
from revarb.fitting.problem import initialise, mask_missing, prepare
from revarb.models.recipe import FIXED_FREE, RECIPES, Recipe, Stage
from revarb.runtime.numerics import with_numerics
from revarb.variational.bound import Layout, Rows, compute_posteriors
from support import small


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


KNOWN = replace(RECIPES["narx"], stages=(Stage(("zeta", "w"), 5),))
"""Neither states nor the linear part are trained."""


@with_numerics
@pytest.mark.parametrize(
    "options, certain",
    [({}, True), ({"recipe": "narx"}, False), ({"noise": "student-t"}, False), ({"latent_dim": 2}, False)],
)
def test_states_are_certain_where_they_are_the_outputs_and_no_line_is_trained(options, certain):
    spec = revarb.RGP(2, 2, **{"hidden": 1, "linear": True, "inducing": 5, "recipe": KNOWN, **options})
    assert small.problem(spec, small.record()).layout.certain == certain


@with_numerics
@pytest.mark.parametrize("outputs", [1, 2])
def test_where_states_are_certain_the_output_layer_gives_the_outputs(outputs):
    """Two outputs: the states are their principal components."""
    record = small.record(outputs=outputs)
    problem = small.problem(
        revarb.RGP(2, 2, hidden=1, linear=True, latent_dim=outputs, inducing=5, recipe=KNOWN), record
    )
    output = compute_posteriors(problem.start, problem.rows, problem.layout)[-1]
    mu = problem.start.states.mu[0]
    windows = np.concatenate([mu[2:], mu[1:-1]], axis=1)
    np.testing.assert_allclose(output.mean(windows), problem.rows.y, atol=1e-9)


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


@pytest.mark.slow
def test_a_simulation_continues_the_end_of_every_record():
    whole = small.record(0, samples=1000)
    records, stages = [small.record(2, samples=500), whole[:970]], (Stage(FIXED_FREE, 40),)
    recipe = Recipe(hidden_noise=0.01, latent_variance=0.02, stages=stages, max_rows=400)
    model = small.spec(hidden=1, inducing=20, recipe=recipe).fit(records)
    assert len(model.final_states) == 2 and len(model.lengths) == 8
    for state, record in zip(model.final_states, records, strict=True):
        np.testing.assert_array_equal(state.past_u, model.scaling.inputs(record.u)[-2:])
    after = scores(model.simulate(whole.u[970:], start="continue"), whole.y[970:], skip=0)
    assert after.rmse < 0.1  # from the first row on, where a cold run is wrong by 0.5
    test = small.record(1, samples=400)
    assert scores(model.simulate(test.u), test.y, skip=5).rmse < 0.05


@with_numerics
def test_a_record_that_ends_in_a_gap_is_calibrated_on_whole_records():
    record = small.with_gaps(small.record(samples=600), np.s_[540:])
    task = prepare(small.spec(hidden=1, recipe=RECIPE, calibrate=True), [record])
    assert task.records == (record,) and len(task.blocks) >= 10
    assert initialise(task, 0).layout.lengths == (50,) * 4


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
