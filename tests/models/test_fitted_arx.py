"""A trained ARX model against plain loops: starts, predictions, bands, files, summary and figure."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

import revarb
from revarb.baselines import FittedARX
from revarb.data.preprocessor import Preprocessor
from revarb.data.windows import Order
from revarb.fitting.arx import build_narx_rows, mark_complete, solve_least_squares
from revarb.gp.layer import Linear
from revarb.models.container import read_container, write_container
from support import small

STDS = np.array([[0.1, 0.2], [0.3, 0.4]])
MODELS = {  # order, inputs, outputs
    "one output": (Order(3, 2, 1), 1, 1),
    "two outputs, two inputs": (Order(2, 3, 1), 2, 2),
    "dead time": (Order(1, 2, 3), 1, 1),
    "feedthrough": (Order(2, 1, 0), 1, 2),
    "no inputs": (Order(2, 0, 1), 0, 1),
}
GAPS = (slice(20, 24), (40, -1), 50, slice(78, 80))  # longer than the lags, one output, one sample, at the end


def make_record(seed, inputs, outputs, samples=80):
    """A record of the small system; without inputs an oscillation."""
    if inputs:
        return small.record(seed, samples, inputs, outputs)
    rng = np.random.default_rng(seed)
    return revarb.Series(None, np.sin(0.3 * np.arange(samples)) + 0.05 * rng.normal(size=samples))


@cache
def train(name):
    """A model of one record without and one with gaps."""
    order, inputs, outputs = MODELS[name]
    records = [make_record(0, inputs, outputs), small.with_gaps(make_record(1, inputs, outputs), *GAPS)]
    prep = Preprocessor.from_records(records, order)
    rows = build_narx_rows(prep, records)
    model = solve_least_squares(rows, np.ones(rows.x_hat.shape[1], dtype=bool), mark_complete(rows))
    return FittedARX.from_records(records, prep, model, np.linspace(0.5, 0.6, outputs)), records


def inputs_of(model, record, begin=0, end=None):
    """Arguments of `simulate` for some samples of a record."""
    part = record.y[begin:end]
    return {"u": record.u[begin:end]} if model.input_names else {"steps": len(part)}


def window(record, begin, end):
    """Some samples of a record as a window."""
    return revarb.Window(record.u[begin:end], record.y[begin:end])


def by_hand(model, u, y, known):
    """Outputs of every sample in raw units, from those before it: measured up to row `known`, then its own.

    A Kalman filter by plain loops over z-scored values, newest outputs first. Two covariances: of what was not known at
    the last measured output, and of the errors of the model since then, whose newest ones have the model's band.
    """
    order, z, target, d = model.order, model.scaling.inputs(u), model.scaling.outputs(y), y.shape[1]
    coefficients, size = np.asarray(model.model.coefficients), d * model.order.lags
    move = np.eye(size, k=-d)
    move[:d] = coefficients[:size].T
    window, cov, errors = np.zeros(size), model.cold_start.cov, np.zeros((size, size))
    steps, cold, past_u, predicted = 0, True, [np.zeros(u.shape[1])] * (order.reach + 1), []
    for i in range(len(z)):
        past_u.append(z[i])
        inputs = [past_u[-1 - order.input_delay - age] for age in range(order.input_lags)]
        shift = np.concatenate([*inputs, []]) @ coefficients[size:] + np.asarray(model.model.offset)
        window, steps = move @ window + np.concatenate([shift, np.zeros(size - d)]), steps + 1
        predicted.append(window[:d])
        cov, errors = move @ cov @ move.T, move @ errors @ move.T
        errors[:d, :d] += np.diag(model.step_variances[0])
        row = -1 if cold else min(steps, len(model.step_variances) - 1) - 1
        scale = np.concatenate([np.sqrt(model.step_variances[row] / np.diag(errors)[:d]), np.ones(size - d)])
        errors = errors * np.outer(scale, scale)
        measured = np.flatnonzero(~np.isnan(target[i])) if i < known else []
        if len(measured):
            both = cov + errors
            gain = both[:, measured] @ np.linalg.inv(both[np.ix_(measured, measured)])
            window = window + gain @ (target[i] - window[:d])[measured]
            cov, errors, steps, cold = both - gain @ both[measured], np.zeros((size, size)), 0, False
    return model.scaling.raw_outputs(np.array(predicted)), (window, cov)


@pytest.mark.parametrize("name", MODELS)
def test_a_run_after_a_window_is_that_of_a_plain_loop(name):
    model, (_, gaps) = train(name)
    begin, middle, end = 12, 52, 75
    path = model.simulate(**inputs_of(model, gaps, middle, end), start=window(gaps, begin, middle))
    expected, _ = by_hand(model, gaps.u[begin:end], gaps.y[begin:end], middle - begin)
    expected = expected[middle - begin :]
    np.testing.assert_allclose(path.mean, expected, rtol=1e-10, atol=1e-12)
    assert (path.start, path.skip, path.method) == ("window of 40 samples", 0, "residuals")


@pytest.mark.parametrize("horizon", [1, 3, 20])
@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_those_of_a_plain_loop(name, horizon):
    model, (_, gaps) = train(name)
    path = model.predict(gaps, horizon)
    cold = model.simulate(**inputs_of(model, gaps)).mean
    np.testing.assert_allclose(path.mean[:horizon], cold[:horizon], rtol=1e-12)
    for row in range(horizon, len(gaps), 7):
        expected, _ = by_hand(model, gaps.u[: row + 1], gaps.y[: row + 1], row - horizon + 1)
        np.testing.assert_allclose(path.mean[row], expected[row], rtol=1e-10, atol=1e-12)
    assert path.start == f"{horizon} step{'s' * (horizon > 1)} ahead" and path.skip == model.order.skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("begin", "end"), [(0, 1), (18, 23), (19, 25), (0, 50)])
def test_what_is_not_known_of_a_window_is_that_of_a_filter(name, begin, end):
    """Of one sample, into and out of a gap: older outputs that were not measured stay uncertain."""
    plain, (_, gaps) = train(name)
    model = replace(plain, horizon_std=STDS[:, : len(plain.output_names)])
    start = window(gaps, begin, end)
    origin = model.resolve_start(start)
    _, (mean, cov) = by_hand(model, start.u, start.y, len(start))
    np.testing.assert_allclose(origin.state.mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(origin.state.cov, cov, rtol=1e-9, atol=1e-12)
    assert (origin.age, origin.cold) == ({23: 3}.get(end, 0), False)


@pytest.mark.parametrize("horizon", [1, 3])
def test_predictions_are_runs_after_the_window_before_them(horizon):
    """Means and bands, also in gaps and right after them."""
    plain, (_, gaps) = train("two outputs, two inputs")
    model = replace(plain, horizon_std=STDS)
    path = model.predict(gaps, horizon)
    for row in (*range(horizon, 30), *range(40, 54)):
        begin = row - horizon + 1
        run = model.simulate(gaps.u[begin : row + 1], start=window(gaps, 0, begin))
        np.testing.assert_allclose(path.mean[row], run.mean[-1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(path.std[row], run.std[-1], rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_continuing_is_simulating_on_after_the_training_record(name):
    model, records = train(name)
    new = make_record(5, *MODELS[name][1:], samples=20)
    known = inputs_of(model, new)
    assert len(model.final_states) == 2
    for state, record in zip(model.final_states, records, strict=True):
        path = model.simulate(**known, start=state)
        joined = np.concatenate([record.u, new.u]), np.concatenate([record.y, new.y])
        np.testing.assert_allclose(path.mean, by_hand(model, *joined, 80)[0][80:], rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(path.mean, model.simulate(**known, start=window(record, 0, 80)).mean)
        assert path.start == "given state"
    last = model.simulate(**known, start="continue")
    np.testing.assert_array_equal(last.mean, path.mean)
    assert (last.start, last.skip) == ("continued", 0)


@pytest.mark.usefixtures("same_width_beyond")
def test_bands_know_the_number_of_steps_since_the_last_measurement():
    plain, (record, _) = train("two outputs, two inputs")
    model = replace(plain, horizon_std=STDS)
    unit, long_run = model.scaling.y_std, model.residual_std * model.scaling.y_std
    halfway = 0.5 * (STDS[-1] * unit + long_run)  # there is no jump after the last known step
    by_steps = np.stack([*(STDS * unit), halfway, long_run, long_run])
    for start in ("continue", model.final_states[0], window(record, 0, 30)):
        np.testing.assert_allclose(model.simulate(record.u[:5], start=start).std, by_steps, rtol=1e-12)
        np.testing.assert_allclose(plain.simulate(record.u[:5], start=start).std, np.tile(long_run, (5, 1)), rtol=1e-12)
    cold = model.simulate(record.u).std
    np.testing.assert_allclose(cold[-1], long_run, rtol=1e-9)
    assert (cold[0] > 0.5 * unit).all() and (cold >= long_run).all()
    for horizon in (1, 2, 3):
        std = model.predict(record, horizon).std
        np.testing.assert_allclose(std[:horizon], cold[:horizon], rtol=1e-12)
        known = np.tile(by_steps[horizon - 1], (79 - horizon, 1))  # after two lags
        np.testing.assert_allclose(std[horizon + 1 :], known, rtol=1e-12)
        assert (std[horizon] > known[0]).all()


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_starts_and_predicts_the_same(name, tmp_path):
    model = replace(train(name)[0], horizon_std=STDS[:, : MODELS[name][2]])
    again = revarb.load(model.save(tmp_path / "arx.rgp"))
    ours, theirs = ((each.horizon_std, each.model, each.final_states) for each in (model, again))
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_a_file_without_the_new_fields_is_the_same_model_but_cannot_continue(tmp_path):
    model, (record, _) = train("two outputs, two inputs")
    header, arrays = read_container(model.save(tmp_path / "new.rgp"))
    new = ("horizons", "final_states", "output_cov")
    old_header = {name: value for name, value in header.items() if name not in new}
    old_arrays = {name: array for name, array in arrays.items() if not name.startswith(("final_", "output_cov"))}
    assert set(old_arrays) == {"residual_std", "model.coefficients", "model.offset"}
    old = revarb.load(write_container(tmp_path / "old.rgp", old_header, old_arrays))
    np.testing.assert_array_equal(old.simulate(record.u).mean, model.simulate(record.u).mean)
    np.testing.assert_allclose(old.simulate(record.u).std[-1], model.simulate(record.u).std[-1], rtol=1e-9)
    lags = old.order.lags
    np.testing.assert_array_equal(old.cold_start.cov, np.kron(np.ones((lags, lags)), np.eye(2)))
    assert old.final_states == () and old.horizon_std.shape == (0, 2)
    with pytest.raises(revarb.InputError, match="does not know how its training records ended and cannot continue"):
        old.simulate(record.u, start="continue")
    assert revarb.load(old.save(tmp_path / "again.rgp")).final_states == ()


def test_a_prediction_that_diverges_is_a_computation_error(tmp_path):
    """A state that diverges, in a long gap at the end of a record, is not kept: the file must stay readable."""
    model, (record, _) = train("one output")
    explosive = Linear(1e30 * np.ones_like(model.model.coefficients), model.model.offset)
    unstable = replace(model, model=explosive)
    for call in (lambda: unstable.predict(record, 60), lambda: unstable.simulate(record.u, start="continue")):
        with pytest.raises(revarb.ComputationError, match="diverged"):
            call()
    gap = small.with_gaps(record, slice(20, None))
    unstable = FittedARX.from_records([gap], model.preprocessor, explosive, model.residual_std)
    assert unstable.final_states == ()
    assert revarb.load(unstable.save(tmp_path / "unstable.rgp")).final_states == ()


def test_the_summary_says_whether_the_model_is_stable():
    model, _ = train("one output")
    text = str(model.summary())
    assert f"{model.order.lags}, {model.order.input_lags}, 1" in text
    assert f"{model.model.coefficients.size}, 1" in text and f"{abs(model.poles[0]):.4g} (stable)" in text
    unstable = replace(model, model=Linear(2.0 * np.ones_like(model.model.coefficients), model.model.offset))
    assert "(unstable)" in str(unstable.summary())


@pytest.mark.parametrize("name", ["two outputs, two inputs", "no inputs"])
def test_the_figure_shows_measured_outputs_and_the_free_run(name):
    model, records = train(name)
    figure = model.plot_fit(records)
    assert isinstance(figure, Figure) and len(figure.axes) == len(model.output_names)
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == ["95 % band, not measured", "measured", "free run"]
    drawn = {line.get_label(): line.get_ydata() for line in figure.axes[-1].lines}
    runs = [model.simulate(**inputs_of(model, record)).mean for record in records]
    for label, (one, other) in {"free run": runs, "measured": [record.y for record in records]}.items():
        np.testing.assert_array_equal(drawn[label], np.concatenate([one[:, -1], [np.nan], other[:, -1]]))
    assert isinstance(model.plot_fit(records[0]), Figure)
