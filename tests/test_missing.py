"""Outputs that were not measured: masked in the output layer, while the latent chain goes on."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
import small
from revarb.data.series import Series
from revarb.gp.collapsed import collapsed_bound
from revarb.gp.layer import Gaussians, Targets
from revarb.runtime.numerics import with_numerics
from revarb.training.network_training import _measured_states
from revarb.training.problem import mask_missing, prepare
from revarb.variational.bound import Layout, Rows, layer_posteriors, layer_problems, revarb_bound


def with_gaps(record, rows, columns=slice(None)):
    y = record.y.copy()
    y[rows, columns] = np.nan
    return replace(record, y=y)


@with_numerics
def test_masked_rows_count_for_nothing():
    """The bound with masked rows is that of the output layer over the other rows, and of all hidden layers."""
    spec, record = small.spec(hidden=1), small.record()
    problem = prepare(spec, [record], 0)
    gone = np.array([3, 4, 20])
    y = problem.rows.y.copy()
    y[gone] = np.nan
    rows, layout = mask_missing(Rows(problem.rows.u_bar, y), problem.layout)
    assert layout.groups == ((0,),) and rows.measured.sum() == len(y) - 3 and not np.isnan(rows.y).any()
    whole, part = (
        float(revarb_bound(problem.start, r, lay)) for r, lay in ((problem.rows, problem.layout), (rows, layout))
    )
    layer, x_hat, targets = layer_problems(problem.start.layers, problem.start.states, problem.rows, problem.layout)[-1]
    keep = np.delete(np.arange(len(y)), gone)
    less = collapsed_bound(
        layer, Gaussians(x_hat.mean[keep], x_hat.variance[keep]), Targets(targets.mean[keep], 0.0), layout.jitter
    )
    full = collapsed_bound(layer, x_hat, targets, layout.jitter)
    assert whole - part == pytest.approx(float(full - less), rel=1e-6)


@with_numerics
def test_all_seen_is_the_same_as_no_mask():
    problem = prepare(small.spec(), [small.record()], 0)
    seen = np.ones((len(problem.rows.y), 1), dtype=bool)
    layout = problem.layout._replace(groups=((0,),))
    plain = revarb_bound(problem.start, problem.rows, problem.layout)
    assert float(revarb_bound(problem.start, problem.rows._replace(seen=seen), layout)) == pytest.approx(float(plain))


@with_numerics
def test_outputs_with_other_gaps_are_groups_of_their_own():
    record = small.record(outputs=3)
    y = record.y.copy()
    y[10:15, 1] = np.nan
    problem = prepare(small.spec(hidden=1), [replace(record, y=y)], 0)
    assert sorted(problem.layout.groups) == [(0, 2), (1,)]
    known = layer_posteriors(problem.start, problem.rows, problem.layout)[-1]
    assert known.reduction.ndim == 3
    np.testing.assert_array_equal(known.reduction[0], known.reduction[2])
    assert not np.allclose(known.reduction[0], known.reduction[1])
    # Each output by itself knows the same.
    for column in range(3):
        alone = prepare(small.spec(hidden=1), [replace(record, y=y)], 0)
        rows, layout = mask_missing(
            Rows(alone.rows.u_bar, np.where(np.isnan(y[2:, column : column + 1]), np.nan, alone.rows.y[:, [column]])),
            Layout(alone.layout.lags, alone.layout.lengths, alone.layout.jitter),
        )
        single = layer_posteriors(alone.start, rows, layout)[-1]
        np.testing.assert_allclose(single.beta[:, 0], known.beta[:, column], rtol=1e-6, atol=1e-9)


def test_a_fit_with_gaps_simulates_and_fills_them():
    record = small.record(samples=90)
    model = small.spec().fit(with_gaps(record, slice(40, 52)))
    test = small.record(3)
    full = small.spec().fit(record)
    error = [revarb.scores(each.simulate(test.u), test.y).rmse for each in (model, full)]
    assert error[0] < 1.5 * error[1] + 0.02
    [path] = model.smooth()
    assert len(path) == len(record) - model.order.first_row and path.start == "training record"
    gap = slice(40 - model.order.first_row, 52 - model.order.first_row)
    outside = np.delete(path.std[:, 0], np.arange(gap.start, gap.stop))
    assert path.std[gap, 0].mean() > 1.2 * outside.mean()


def test_a_whole_output_may_be_missing_in_one_record(tmp_path):
    first, second = small.record(outputs=2), with_gaps(small.record(1, outputs=2), slice(None), 1)
    model = small.spec(hidden=1).fit([first, second])
    test = small.record(2, outputs=2)
    loaded = revarb.load(model.save(tmp_path / "m.rgp"))
    for method in ("moments", "mean", "samples"):
        path = model.simulate(test.u, method)
        assert np.isfinite(path.mean).all()
        np.testing.assert_array_equal(path.mean, loaded.simulate(test.u, method).mean)
    # What was measured in one record only is known less well.
    assert model.trained.chain.output.reduction.shape[0] == 2


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_rates_of_missingness(share):
    record = small.record(samples=90)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(record.y.shape) < share, np.nan, record.y)
    model = small.spec(hidden=1).fit(replace(record, y=y))
    test = small.record(3)
    assert revarb.scores(model.simulate(test.u), test.y).nrmse < 0.9


@pytest.mark.slow
def test_networks_learn_with_gaps():
    recognition = revarb.Recognition(hidden=(8,), starts=1, start_steps=50, rounds=(50,))
    model = small.spec(hidden=1, recognition=recognition).fit(with_gaps(small.record(), slice(20, 30)))
    assert np.isfinite(model.simulate(small.record(2).u, "network").mean).all()


@with_numerics
def test_networks_are_not_told_to_follow_the_straight_line_in_a_gap():
    problem = prepare(small.spec(hidden=1), [with_gaps(small.record(), slice(20, 30)), small.record(1)], 0)
    followed = _measured_states(problem.rows, problem.layout)
    first = small.spec().order_for(1).first
    assert np.flatnonzero(~followed).tolist() == list(range(20, 30)) and len(followed) == sum(problem.layout.lengths)
    assert problem.layout.lags == first == 2  # so that states and samples are counted alike here


def test_nan_in_the_inputs_is_refused_by_place():
    with pytest.raises(revarb.InputError, match=r"in row 2, column 'u'"):
        Series([0.0, 1.0, np.nan], [0.0, 1.0, 2.0])
