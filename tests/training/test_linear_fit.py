"""ARX fits of records with gaps, by a plain loop over the complete rows."""

import numpy as np
import pytest

from revarb.baselines.arx import ARX
from revarb.baselines.per_output import PerOutput
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.training.linear_fit import limit_order, list_orders
from support import small


def solve_complete_rows(records, scaling, order):
    """Least squares on the rows without a missing value, neither as target nor as regressor; z-scored."""
    design, targets = [], []
    for record in records:
        y, u = scaling.outputs(record.y), scaling.inputs(record.u)
        for i in range(order.first_row, len(record)):
            past = [y[i - k] for k in range(1, order.lags + 1)]
            inputs = [u[i - order.input_delay - k] for k in range(order.input_lags)]
            row = np.concatenate([*past, *inputs, [1.0]])
            if np.isfinite(row).all() and np.isfinite(y[i]).all():
                design.append(row)
                targets.append(y[i])
    return np.linalg.lstsq(np.array(design), np.array(targets))[0], len(design)


@pytest.mark.parametrize("outputs", [1, 2])
def test_gaps_leave_out_the_incomplete_rows(outputs):
    gaps = [(slice(20, 23), 0), (40, outputs - 1), (58, slice(None))]
    records = [small.with_gaps(small.record(0, outputs=outputs), *gaps), small.record(1, samples=35, outputs=outputs)]
    model = ARX(lags=3, input_lags=3).fit(records)
    expected, rows = solve_complete_rows(records, model.scaling, model.order)
    assert rows < 60 + 35 - 2 * model.order.first_row
    np.testing.assert_allclose(model.model.coefficients, expected[:-1], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(model.model.offset, expected[-1], rtol=1e-9, atol=1e-11)
    assert np.isfinite(model.simulate(small.record(5).u).mean).all() and (model.residual_std > 0.0).all()


def test_gaps_in_one_output_do_not_touch_the_others_fitted_alone():
    whole = small.record(outputs=2)
    model = PerOutput(ARX(2, 2)).fit(small.with_gaps(whole, (slice(7, 9), 1)))
    alone = ARX(2, 2).fit(Series(whole.u, whole.y[:, 0]))
    u = small.record(5).u
    np.testing.assert_array_equal(model.simulate(u).mean[:, 0], alone.simulate(u).mean[:, 0])


def test_records_that_cannot_be_fitted_are_refused():
    with pytest.raises(InputError, match="no row of the records has all its past outputs measured; use fewer lags"):
        ARX(2, 2).fit(small.with_gaps(small.record(), slice(0, None, 2)))
    with pytest.raises(InputError, match="no output after the transients is measured, by which the model is chosen"):
        ARX(1, 1).fit(small.with_gaps(small.record(), slice(2, None)))


@pytest.mark.parametrize("records", [1, 5])
def test_a_tail_that_is_not_measured_does_not_choose_the_order(records):
    data = [small.record(seed) for seed in range(records)]
    last = small.with_gaps(data[0], slice(45, None)) if records == 1 else small.with_gaps(data[3], slice(4, None))
    data = [last] if records == 1 else [*data[:3], last, data[4]]
    model = ARX(2, 2).fit(data)
    expected, _ = solve_complete_rows(data, model.scaling, model.order)
    np.testing.assert_allclose(model.model.coefficients, expected[:-1], rtol=1e-9, atol=1e-11)
    assert 0.0 < model.residual_std[0] < 1.0


def test_orders_that_are_tried():
    assert limit_order(Order(10, 10, 1), [small.record(samples=20), small.record()]) == Order(4, 4, 1)
    assert limit_order(Order(10, 0, 1), [small.record(samples=8, inputs=0)]) == Order(1, 0, 1)
    assert [order.lags for order in list_orders(Order(13, 0, 1))] == [*range(1, 11), 12]
    assert len(list_orders(Order(4, 3, 2))) == 12 and {order.input_delay for order in list_orders(Order(4, 3, 2))} == {
        2
    }
