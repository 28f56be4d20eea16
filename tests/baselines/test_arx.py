"""ARX against systems whose coefficients are known."""

import numpy as np
import pytest

from revarb.data.series import Series
from revarb.errors import RevarbError
from revarb.fitting.arx import ARX


def linear_record(seed, samples=400, noise=0.0, delay=1):
    """y_i = 1.4 y_{i−1} − 0.6 y_{i−2} + 0.5 u_{i−delay} + 0.3 u_{i−delay−1} + 2."""
    rng = np.random.default_rng(seed)
    before = 100  # the record begins when the system has long been running
    u, y = rng.normal(size=before + samples), np.zeros(before + samples)
    for i in range(3, before + samples):
        y[i] = 1.4 * y[i - 1] - 0.6 * y[i - 2] + 0.5 * u[i - delay] + 0.3 * u[i - delay - 1] + 2.0
    return Series(u[before:], y[before:] + noise * rng.normal(size=samples))


@pytest.mark.parametrize(("delay", "lags"), [(1, 4), (0, 2), (2, 2)])
def test_a_linear_system_is_simulated_to_rounding(delay, lags):
    """With an input that acts after one sample, at once, or after dead time."""
    test = linear_record(1, delay=delay)
    path = ARX(lags, lags, input_delay=delay).fit(linear_record(0, delay=delay)).simulate(test.u)
    # Cold start: what is left of it after 60 rows is 0.775^60.
    np.testing.assert_allclose(path.mean[60:], test.y[60:], atol=1e-5)


def by_hand(train, order, head):
    """Least squares of one order on the head, simulated freely from the record's start; z-scored errors of the tail."""
    y = (train.y[:, 0] - train.y.mean()) / train.y.std()
    u = (train.u[:, 0] - train.u.mean()) / train.u.std()
    a, b = order

    def window(y, u, i):
        return [*(y[i - k] for k in range(1, a + 1)), *(u[i - k] for k in range(1, b + 1)), 1.0]

    solution = np.linalg.lstsq(np.array([window(y, u, i) for i in range(4, head)]), y[4:head])[0]
    run, padded = [0.0] * 4, np.concatenate([np.zeros(4), u])
    for i in range(4, len(y) + 4):
        if i == 8:  # cold, where the window of four inputs is full
            run[4:] = [0.0] * 4
        run.append(np.dot(window(run, padded, i), solution))
    return (run[4:] - y)[head:]


def test_the_order_is_the_one_that_simulates_the_training_tail_best():
    """All sixteen orders up to four in a plain loop give the same choice and the same residual standard deviation."""
    train = linear_record(3, samples=120, noise=0.3)
    errors = {(a, b): by_hand(train, (a, b), 90) for a in range(1, 5) for b in range(1, 5)}
    sizes = {order: np.sqrt(np.mean(each**2)) for order, each in errors.items()}
    best = min(sizes, key=sizes.get)
    model = ARX(lags=4, input_lags=4).fit(train)
    assert (model.order.lags, model.order.input_lags) == best
    assert best != (4, 4)  # otherwise the test could not fail
    np.testing.assert_allclose(model.residual_std, sizes[best], rtol=1e-6)
    path = model.simulate(train.u)
    assert path.method == "residuals" and path.skip == model.skip < 40
    np.testing.assert_allclose(path.std[80:], np.full((40, 1), sizes[best] * train.y.std()), rtol=1e-6)


def test_a_short_record_is_tried_with_fewer_lags():
    model = ARX(lags=10, input_lags=10).fit(linear_record(0, samples=20))
    assert model.order.lags <= 4 and model.order.input_lags <= 4


def test_where_every_order_diverges_there_is_no_model():
    """The head of the record grows fiftyfold at every sample: every order simulates that without bound."""
    rng = np.random.default_rng(0)
    y = np.concatenate([50.0 ** np.arange(-299.0, 1.0), rng.normal(size=100)])
    with pytest.raises(RevarbError, match="all ARX models with up to 2 past outputs and 2 past inputs diverged"):
        ARX(lags=2, input_lags=2).fit(Series(rng.normal(size=400), y))
