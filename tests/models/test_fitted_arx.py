"""A trained ARX model against plain loops: starts, predictions, bands, files, summary and figure."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure

import revarb
from revarb.baselines import FittedARX
from revarb.data.preprocessor import Preprocessor
from revarb.data.windows import Order
from revarb.fitting.arx import build_narx_rows, mark_complete, solve_least_squares
from revarb.gp.layer import Linear
from revarb.models.model_file import read_container, write_container
from support import small

STDS = np.array([[0.1, 0.2], [0.3, 0.4]])
MODELS = {  # order, inputs, outputs
    "one output": (Order(3, 2, 1), 1, 1),
    "two outputs, two inputs": (Order(2, 3, 1), 2, 2),
    "dead time": (Order(1, 2, 3), 1, 1),
    "feedthrough": (Order(2, 1, 0), 1, 2),
    "no inputs": (Order(2, 0, 1), 0, 1),
}
GAPS = (slice(20, 24), slice(50, 51), slice(78, 80))  # the last one is at the end


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

    A plain loop over z-scored values from zero past outputs and inputs; NaN is replaced by the prediction.
    """
    order, scaling = model.order, model.scaling
    z, target = scaling.inputs(u), scaling.outputs(y)
    coefficients, offset = model.model.coefficients, model.model.offset
    past_y, past_u, predicted = [np.zeros(y.shape[1])] * order.lags, [np.zeros(u.shape[1])] * (order.reach + 1), []
    for i in range(len(z)):
        past_u.append(z[i])
        oldest_last = [past_y[-age] for age in range(1, order.lags + 1)]
        inputs = [past_u[-1 - order.input_delay - age] for age in range(order.input_lags)]
        value = np.concatenate([*oldest_last, *inputs]) @ coefficients + offset
        predicted.append(value)
        past_y.append(np.where(np.isnan(target[i]) | (i >= known), value, target[i]))
    return scaling.raw_outputs(np.array(predicted))


@pytest.mark.parametrize("name", MODELS)
def test_a_run_after_a_window_is_that_of_a_plain_loop(name):
    model, (_, gaps) = train(name)
    begin, middle, end = 12, 52, 75
    path = model.simulate(**inputs_of(model, gaps, middle, end), start=window(gaps, begin, middle))
    expected = by_hand(model, gaps.u[begin:end], gaps.y[begin:end], middle - begin)[middle - begin :]
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
        expected = by_hand(model, gaps.u[: row + 1], gaps.y[: row + 1], row - horizon + 1)[row]
        np.testing.assert_allclose(path.mean[row], expected, rtol=1e-10, atol=1e-12)
    assert path.start == f"{horizon} step{'s' * (horizon > 1)} ahead" and path.skip == model.skip


@pytest.mark.parametrize("horizon", [80, 1000])
def test_a_horizon_beyond_the_record_is_a_cold_run(horizon):
    model, (record, _) = train("one output")
    path, cold = model.predict(record, horizon), model.simulate(record.u)
    np.testing.assert_array_equal(path.mean, cold.mean)
    np.testing.assert_array_equal(path.std, cold.std)
    assert path.start == f"{horizon} steps ahead"


@pytest.mark.parametrize("name", MODELS)
def test_continuing_is_simulating_on_after_the_training_record(name):
    model, records = train(name)
    new = make_record(5, *MODELS[name][1:], samples=20)
    known = inputs_of(model, new)
    assert len(model.final_states) == 2
    for state, record in zip(model.final_states, records, strict=True):
        path = model.simulate(**known, start=state)
        joined = np.concatenate([record.u, new.u]), np.concatenate([record.y, new.y])
        np.testing.assert_allclose(path.mean, by_hand(model, *joined, 80)[80:], rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(path.mean, model.simulate(**known, start=window(record, 0, 80)).mean)
        assert path.start == "given state"
    last = model.simulate(**known, start="continue")
    np.testing.assert_array_equal(last.mean, path.mean)
    assert (last.start, last.skip) == ("continued", 0)


def test_the_fit_remembers_how_every_record_ended():
    records = [make_record(seed, 1, 1) for seed in (0, 1)]
    model = revarb.ARX(2, 2).fit(records)
    for state, record in zip(model.final_states, records, strict=True):
        newest_first = model.scaling.outputs(record.y)[: -model.order.lags - 1 : -1, 0]
        np.testing.assert_array_equal(state.mean, newest_first)
        np.testing.assert_array_equal(state.past_u, model.scaling.inputs(record.u)[-model.order.reach :])


def test_a_gap_longer_than_the_lags_is_a_free_run_inside_the_window():
    model, (record, _) = train("one output")
    y = record.y.copy()
    y[30:] = np.nan
    after_gap = model.simulate(record.u[60:], start=revarb.Window(record.u[:60], y[:60]))
    before_gap = model.simulate(record.u[30:], start=window(record, 0, 30))
    np.testing.assert_allclose(after_gap.mean, before_gap.mean[30:], rtol=1e-12)


def test_one_missing_output_of_two_is_replaced_alone():
    model, (record, _) = train("two outputs, two inputs")
    y = record.y[:30].copy()
    y[-1, 1] = np.nan
    path = model.simulate(record.u[30:32], start=revarb.Window(record.u[:30], y))
    y[-1, 1] = model.predict(record).mean[29, 1]
    filled = model.simulate(record.u[30:32], start=revarb.Window(record.u[:30], y))
    np.testing.assert_allclose(path.mean, filled.mean, rtol=1e-12)


def test_a_known_system_is_continued_and_predicted_to_rounding():
    rng = np.random.default_rng(0)
    u, y = rng.normal(size=200), np.zeros(200)
    for i in range(2, 200):
        y[i] = 1.4 * y[i - 1] - 0.6 * y[i - 2] + 0.5 * u[i - 1]
    model = revarb.ARX(2, 1).fit(revarb.Series(u[:150], y[:150]))
    np.testing.assert_allclose(model.simulate(u[150:], start="continue").mean[:, 0], y[150:], atol=1e-9)
    np.testing.assert_allclose(model.predict(revarb.Series(u, y), 5).mean[8:, 0], y[8:], atol=1e-9)
    np.testing.assert_allclose(np.sort(model.poles), np.sort(np.roots([1.0, -1.4, 0.6])), atol=1e-9)


def test_bands_know_the_number_of_steps_since_the_last_measurement():
    plain, (record, _) = train("two outputs, two inputs")
    model = replace(plain, horizon_std=STDS)
    unit, long_run = model.scaling.y_std, model.residual_std * model.scaling.y_std
    by_steps = np.concatenate([STDS * unit, np.tile(long_run, (3, 1))])
    for start in ("continue", model.final_states[0], window(record, 0, 30)):
        np.testing.assert_allclose(model.simulate(record.u[:5], start=start).std, by_steps, rtol=1e-12)
        np.testing.assert_allclose(plain.simulate(record.u[:5], start=start).std, np.tile(long_run, (5, 1)), rtol=1e-12)
    np.testing.assert_allclose(model.simulate(record.u).std, np.tile(long_run, (80, 1)), rtol=1e-12)
    for horizon in (1, 2, 3):
        std = model.predict(record, horizon).std
        np.testing.assert_allclose(std[:horizon], np.tile(long_run, (horizon, 1)), rtol=1e-12)
        np.testing.assert_allclose(std[horizon:], np.tile(by_steps[horizon - 1], (80 - horizon, 1)), rtol=1e-12)


def test_without_rows_the_band_is_that_of_the_free_run():
    model, (record, _) = train("two outputs, two inputs")
    assert model.horizon_std.shape == (0, 2)
    np.testing.assert_array_equal(model.predict(record, 2).std, model.simulate(record.u).std)


@pytest.mark.parametrize("std", [np.zeros((2, 2)), np.full((1, 2), np.nan)])
def test_bands_that_do_not_fit_are_refused(std):
    with pytest.raises(revarb.InputError, match=r"horizon_std must have a row of 2 positive number\(s\) per step"):
        replace(train("two outputs, two inputs")[0], horizon_std=std)


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_starts_and_predicts_the_same(name, tmp_path):
    model, (record, gaps) = train(name)
    model = replace(model, horizon_std=STDS[:, : len(model.output_names)])
    again = revarb.load(model.save(tmp_path / "arx.rgp"))
    np.testing.assert_array_equal(again.horizon_std, model.horizon_std)
    for start in ("cold", "continue", window(gaps, 0, 30)):
        ours, theirs = (one.simulate(**inputs_of(model, record), start=start) for one in (model, again))
        np.testing.assert_array_equal(ours.mean, theirs.mean)
        np.testing.assert_array_equal(ours.std, theirs.std)
    state = again.simulate(**inputs_of(model, record), start=again.final_states[0])
    np.testing.assert_array_equal(
        state.mean, model.simulate(**inputs_of(model, record), start=model.final_states[0]).mean
    )
    np.testing.assert_array_equal(model.predict(gaps, 2).mean, again.predict(gaps, 2).mean)


def test_a_file_without_the_new_fields_is_the_same_model_but_cannot_continue(tmp_path):
    model, (record, _) = train("two outputs, two inputs")
    header, arrays = read_container(model.save(tmp_path / "new.rgp"))
    old_header = {name: value for name, value in header.items() if name not in ("horizons", "final_states")}
    old_arrays = {name: array for name, array in arrays.items() if not name.startswith("final_")}
    assert set(old_arrays) == {"residual_std", "model.coefficients", "model.offset"}
    old = revarb.load(write_container(tmp_path / "old.rgp", old_header, old_arrays))
    np.testing.assert_array_equal(old.simulate(record.u).mean, model.simulate(record.u).mean)
    np.testing.assert_array_equal(old.simulate(record.u).std, model.simulate(record.u).std)
    assert old.final_states == () and old.horizon_std.shape == (0, 2)
    with pytest.raises(revarb.InputError, match="does not know how its training records ended and cannot continue"):
        old.simulate(record.u, start="continue")
    assert revarb.load(old.save(tmp_path / "again.rgp")).final_states == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizons": 3}, r"array 'horizon_std' has shape \(2, 2\), expected \(3, 2\)"),
        ({"final_states": 1}, r"array 'final_(means|inputs)' has shape"),
        ({"final_states": 0}, "is not expected"),
        ({"horizons": 10**12}, "horizons must be a whole number from 0 to"),
        ({"final_states": "two"}, "final_states must be a whole number"),
    ],
)
def test_a_file_whose_parts_disagree_is_refused(changes, message, tmp_path):
    model = replace(train("two outputs, two inputs")[0], horizon_std=STDS)
    header, arrays = read_container(model.save(tmp_path / "new.rgp"))
    file = write_container(tmp_path / "odd.rgp", {**header, **changes}, arrays)
    with pytest.raises(revarb.InputError, match=message):
        revarb.load(file)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (revarb.Window(np.zeros((20, 2)), np.zeros(20)), r"the record has 2 input\(s\), but the model 1"),
        (revarb.Window(np.zeros(20), np.zeros((20, 2))), r"the record has 2 output\(s\), but the model 1"),
        (revarb.Window(np.zeros(1), np.zeros(1)), "has 1 samples, but the lags need at least"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(start, message):
    with pytest.raises(revarb.InputError, match=message):
        train("one output")[0].simulate(np.zeros(9), start=start)


def test_a_state_of_another_model_is_refused():
    other = train("two outputs, two inputs")[0].final_states[0]
    with pytest.raises(revarb.InputError, match="start must be 'cold', 'continue'"):
        train("one output")[0].simulate(np.zeros(9), start=other)


def test_a_prediction_that_does_not_fit_is_refused():
    model, (record, _) = train("one output")
    with pytest.raises(revarb.InputError, match="horizon must be a whole number from 1 to"):
        model.predict(record, 0)
    with pytest.raises(revarb.InputError, match=r"the record has 2 output\(s\), but the model 1"):
        model.predict(make_record(0, 1, 2))


def test_a_prediction_that_diverges_is_a_computation_error():
    model, (record, _) = train("one output")
    unstable = replace(model, model=Linear(1e30 * np.ones_like(model.model.coefficients), model.model.offset))
    with pytest.raises(revarb.ComputationError, match="diverged"):
        unstable.predict(record, 60)
    with pytest.raises(revarb.ComputationError, match="diverged"):
        unstable.simulate(record.u, start="continue")


def test_a_state_that_diverges_is_not_kept(tmp_path):
    """An unstable model and a long gap at the end of a record: the file must stay readable."""
    model, (record, _) = train("one output")
    explosive = Linear(1e30 * np.ones_like(model.model.coefficients), model.model.offset)
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


def test_poles_of_several_outputs_are_the_eigenvalues_of_one_step():
    """Growth of the free run without inputs and offset: a generic start follows the largest pole."""
    model, _ = train("two outputs, two inputs")
    poles, lags = model.poles, model.order.lags
    assert len(poles) == 2 * lags and (np.diff(np.abs(poles)) <= 0.0).all()
    past = list(np.random.default_rng(0).normal(size=(lags, 2)))
    own = model.model.coefficients[: 2 * lags]
    for _ in range(400):
        past.append(np.concatenate(past[-1 : -lags - 1 : -1]) @ own)
    rate = (np.linalg.norm(past[-200:]) / np.linalg.norm(past[-400:-200])) ** (1 / 200)
    assert rate == pytest.approx(abs(poles[0]), rel=1e-2)


@pytest.mark.parametrize("name", ["two outputs, two inputs", "no inputs"])
def test_the_figure_shows_measured_outputs_and_the_free_run(name):
    model, records = train(name)
    figure = model.plot_fit(records)
    assert isinstance(figure, Figure) and len(figure.axes) == len(model.output_names)
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == ["95 % band, not measured", "measured", "free run"]
    drawn = {line.get_label(): line.get_ydata() for line in figure.axes[-1].lines}
    runs = [model.simulate(**inputs_of(model, record)).mean[:, -1] for record in records]
    np.testing.assert_array_equal(drawn["free run"], np.concatenate([runs[0], [np.nan], runs[1]]))
    np.testing.assert_array_equal(
        drawn["measured"], np.concatenate([records[0].y[:, -1], [np.nan], records[1].y[:, -1]])
    )
    assert isinstance(model.plot_fit(records[0]), Figure)


def test_the_figure_refuses_other_records():
    with pytest.raises(revarb.InputError, match=r"records must have the outputs \['y'\]"):
        train("one output")[0].plot_fit(make_record(0, 1, 2))
