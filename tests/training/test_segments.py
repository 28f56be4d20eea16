"""Cold runs over held-out stretches."""

import numpy as np
import pytest

from fuzz import samples
from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.windows import Order
from revarb.gp.layer import Linear
from revarb.simulation.chain import Chain
from revarb.simulation.mean import run_mean_cold
from revarb.training.segments import (
    can_start_late,
    cut_late_segments,
    cut_segments,
    measure_cold_runs,
    simulate_segments,
)
from revarb.training.stretches import Stretch
from support import small

RECORDS = (small.record(0, samples=90), small.with_gaps(small.record(1, samples=61), slice(30, 36)))
STRETCHES = (Stretch(0, 10, 35, 0), Stretch(0, 50, 90, 1), Stretch(1, 28, 40, 2), Stretch(1, 40, 61, 3))


@pytest.fixture(params=["RGP", "linear"])
def chain_and_prep(request):
    """A small recurrent GP, or a linear model."""
    if request.param == "RGP":
        model = samples.model()
        return model.trained.chain, model.preprocessor
    prep = Preprocessor.from_records(RECORDS, Order(2, 3, 2))
    return Chain((Linear(np.array([[0.5], [-0.2], [0.4], [0.3], [0.1]]), np.array([0.1])),), None, 2), prep


def test_errors_are_those_of_a_cold_run_of_each_record(chain_and_prep):
    chain, prep = chain_and_prep
    scaling = Standardiser.from_records(RECORDS)
    segments = cut_segments(RECORDS, STRETCHES)
    found = measure_cold_runs(chain, prep, scaling, segments)
    differences = simulate_segments(chain, prep, segments)
    for stretch, rms, errors in zip(STRETCHES, found, differences, strict=True):
        record = RECORDS[stretch.record]
        simulated = run_mean_cold(chain, prep.order, prep.scaling.inputs(record.u))
        expected = (prep.scaling.raw_outputs(np.asarray(simulated)) - record.y)[stretch.rows]
        np.testing.assert_allclose(errors, expected, atol=1e-9)
        assert rms == pytest.approx(np.sqrt(np.nanmean((expected / scaling.y_std) ** 2)), rel=1e-9)


def test_late_segments_start_at_a_third_of_the_record():
    late = [stretch for stretch in STRETCHES if can_start_late(RECORDS, stretch, 20)]
    assert not any(can_start_late(RECORDS, stretch, 21) for stretch in STRETCHES)
    segments = cut_late_segments(RECORDS, late)
    assert [segment.fold for segment in segments] == [1, 3]  # the others begin in the first half
    assert [len(segment.record) for segment in segments] == [60, 41]
    assert [segment.first for segment in segments] == [20, 20]
    np.testing.assert_array_equal(segments[0].record.y, RECORDS[0].y[30:90])
    np.testing.assert_array_equal(segments[1].record.u, RECORDS[1].u[20:])


def test_what_was_not_measured_and_what_diverges(chain_and_prep):
    chain, prep = chain_and_prep
    scaling = Standardiser.from_records(RECORDS)
    unmeasured = cut_segments([RECORDS[1]], [Stretch(0, 30, 36, 0), Stretch(0, 30, 37, 0)])
    nothing, one = measure_cold_runs(chain, prep, scaling, unmeasured)
    assert np.isnan(nothing) and np.isfinite(one)
    unstable = Chain((Linear(np.array([[1e9], [0.0], [1.0], [0.0], [0.0]]), np.zeros(1)),), None, 2)
    prep = Preprocessor.from_records(RECORDS, Order(2, 3, 2))
    assert measure_cold_runs(unstable, prep, scaling, cut_segments(RECORDS, STRETCHES))[1] == np.inf
