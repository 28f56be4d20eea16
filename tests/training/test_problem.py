"""Records as rows of a bound: outputs that were not measured are masked."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.gp.collapsed import collapsed_bound
from revarb.gp.layer import Gaussians, Targets
from revarb.runtime.numerics import with_numerics
from revarb.training.problem import mask_missing
from revarb.variational.bound import Layout, Rows, build_layer_problems, compute_posteriors, revarb_bound
from support import small


@pytest.mark.slow
@with_numerics
def test_masked_rows_have_no_weight():
    """The bound with masked rows is that of the output layer over the other rows, and of all hidden layers."""
    spec, record = small.spec(hidden=1), small.record()
    problem = small.problem(spec, record)
    gone = np.array([3, 4, 20])
    y = problem.rows.y.copy()
    y[gone] = np.nan
    rows, layout = mask_missing(Rows(problem.rows.u_bar, y), problem.layout)
    assert layout.groups == ((0,),) and rows.measured.sum() == len(y) - 3 and not np.isnan(rows.y).any()
    whole, part = (
        float(revarb_bound(problem.start, r, lay)) for r, lay in ((problem.rows, problem.layout), (rows, layout))
    )
    layer, x_hat, targets = build_layer_problems(problem.start, problem.start.states, problem.rows, problem.layout)[-1]
    keep = np.delete(np.arange(len(y)), gone)
    less = collapsed_bound(
        layer, Gaussians(x_hat.mean[keep], x_hat.variance[keep]), Targets(targets.mean[keep], 0.0), layout.jitter
    )
    full = collapsed_bound(layer, x_hat, targets, layout.jitter)
    assert whole - part == pytest.approx(float(full - less), rel=1e-6)


@pytest.mark.slow
@with_numerics
def test_all_measured_is_the_same_as_no_mask():
    problem = small.problem(small.spec(), small.record())
    measured = np.ones((len(problem.rows.y), 1), dtype=bool)
    layout = problem.layout._replace(groups=((0,),))
    plain = revarb_bound(problem.start, problem.rows, problem.layout)
    assert float(revarb_bound(problem.start, problem.rows._replace(measured=measured), layout)) == pytest.approx(
        float(plain)
    )


@with_numerics
def test_outputs_with_different_gaps_are_separate_groups():
    record = small.record(outputs=3)
    y = record.y.copy()
    y[10:15, 1] = np.nan
    problem = small.problem(small.spec(hidden=1), replace(record, y=y))
    assert sorted(problem.layout.groups) == [(0, 2), (1,)]
    known = compute_posteriors(problem.start, problem.rows, problem.layout)[-1]
    assert known.reduction.ndim == 3
    np.testing.assert_array_equal(known.reduction[0], known.reduction[2])
    assert not np.allclose(known.reduction[0], known.reduction[1])
    # Each output alone has the same posterior.
    for column in range(3):
        alone = small.problem(small.spec(hidden=1), replace(record, y=y))
        rows, layout = mask_missing(
            Rows(alone.rows.u_bar, np.where(np.isnan(y[2:, column : column + 1]), np.nan, alone.rows.y[:, [column]])),
            Layout(alone.layout.lags, alone.layout.lengths, alone.layout.jitter),
        )
        single = compute_posteriors(alone.start, rows, layout)[-1]
        np.testing.assert_allclose(single.beta[:, 0], known.beta[:, column], rtol=1e-6, atol=1e-9)
