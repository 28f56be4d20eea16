"""Step and frequency responses and static gain curves: known systems, agreement with each other, refusals, pictures."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import revarb
from support import small
from support.export_models import fit_small


@pytest.fixture(scope="module")
def lag():
    """A first-order lag with pole 0.8, gain 5 and a dead time of one sample, dt = 0.1."""
    u = np.sin(np.arange(200.0) ** 1.5)
    y = np.convolve(u, [0.0, *0.8 ** np.arange(60)])[:200]
    return revarb.ARX(lags=1, input_lags=1).fit(revarb.Series(u, y, dt=0.1))


@pytest.fixture(scope="module")
def nonlinear():
    """A small RGP of a saturating system."""
    return small.spec(hidden=1, calibrate=False).fit(small.record(samples=120))


def test_a_first_order_lag_has_its_textbook_numbers(lag):
    response = lag.step_response(0.5, at=0.1, steps=60)
    share = 1.0 - 0.8 ** np.arange(60)  # of the change: the input is seen one sample later
    np.testing.assert_allclose(response.path.mean[:, 0], 0.5 + 2.5 * share, atol=1e-6)
    np.testing.assert_allclose(response.gain, 5.0, rtol=1e-6)
    first = [np.argmax(share >= part) for part in (0.1, 0.9)]
    np.testing.assert_allclose(response.rise_time, 0.1 * (first[1] - first[0]))
    np.testing.assert_allclose(response.settling_time, 0.1 * np.argmax(share > 0.98))
    np.testing.assert_allclose(response.overshoot, 0.0, atol=1e-6)
    assert np.isnan(lag.step_response(0.5, steps=5).settling_time).all()
    assert np.isnan(lag.step_response(0.5, steps=5).rise_time).all()


def test_the_length_is_until_it_has_settled(lag):
    rows = len(lag.step_response(0.5).path)
    settled = np.log(0.01) / np.log(0.8)
    assert settled < rows < 1.6 * settled
    assert len(lag.step_response(0.5, steps=7).path) == 7
    assert lag.step_response().size == pytest.approx(float(lag.scaling.u_std[0]))


@pytest.mark.parametrize("name", ["GP-NARX", "MLP-NARX"])
def test_a_step_goes_from_one_equilibrium_to_the_other_with_a_band(name):
    model = fit_small(name, 2, 1)
    response = model.step_response(1.5, at=[3.0, 2.5], steps=25, input="u1")
    np.testing.assert_allclose(response.point.outputs, model.linearise(at=[3.0, 2.5]).point.outputs)
    np.testing.assert_allclose(response.final, model.linearise(at=[3.0, 4.0]).point.outputs, rtol=1e-9)
    np.testing.assert_allclose(response.path.mean[-1], response.final, rtol=1e-5)
    np.testing.assert_allclose(response.path.mean[0], response.point.outputs, rtol=1e-6)  # input_delay = 1
    np.testing.assert_array_equal(response.path.inputs, np.tile([3.0, 4.0], (25, 1)))
    assert (response.path.std > 0.0).all() and response.path.start == "equilibrium"


def test_a_small_step_is_that_of_the_linearisation(nonlinear):
    for at in (-0.3, 0.2):
        response = nonlinear.step_response(1e-4, at=at, steps=25)
        ours = (response.path.mean - response.point.outputs) / 1e-4
        np.testing.assert_allclose(ours, nonlinear.linearise(at=at).step(25)[:, :, 0], atol=1e-3)


def test_a_step_out_of_the_training_range_warns_once(lag):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lag.step_response(100.0)
    assert [str(each.message)[:30] for each in caught] == ["input 'u' leaves its training "]


def test_the_frequency_response_is_the_spectrum_of_the_impulse_response(nonlinear):
    linear = nonlinear.linearise(at=0.1)
    impulse = np.diff(linear.step(400)[:, 0, 0], prepend=0.0)
    frequencies = np.array([0.004, 0.05, 0.2, 0.5])
    spectrum = [np.sum(impulse * np.exp(-2j * np.pi * f * np.arange(400))) for f in frequencies]
    found = nonlinear.frequency_response(at=0.1, frequencies=frequencies)
    np.testing.assert_allclose(found.response[:, 0, 0], spectrum, rtol=1e-8)
    np.testing.assert_allclose(found.magnitude[:, 0, 0], np.abs(spectrum), rtol=1e-8)
    turns = (found.phase[:, 0, 0] - np.degrees(np.angle(spectrum))) / 360.0
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-9)


def test_the_default_frequencies_show_the_corner_and_end_at_nyquist(lag):
    found = lag.frequency_response()
    assert found.frequencies[-1] == pytest.approx(5.0)  # dt = 0.1
    corner = 0.2 / (2.0 * np.pi * 0.1)
    assert found.frequencies[0] < 0.11 * corner
    np.testing.assert_allclose(found.magnitude[0, 0, 0], 5.0, rtol=0.01)
    assert (np.abs(np.diff(found.phase[:, 0, 0])) < 180.0).all()


def test_the_curve_has_the_equilibria_and_their_slopes(nonlinear):
    curve = nonlinear.static_gain_curve()
    low, high = (float(each[0]) for each in nonlinear.preprocessor.input_range)
    assert (curve.inputs[0], curve.inputs[-1]) == (low, high)
    linear = nonlinear.linearise(at=curve.inputs[10])
    np.testing.assert_allclose(curve.outputs[10], linear.point.outputs, rtol=1e-9)
    np.testing.assert_allclose(curve.gains[10], linear.static_gain[:, 0], rtol=1e-6)
    fine = nonlinear.static_gain_curve(np.linspace(-0.2, 0.2, 81))
    np.testing.assert_allclose(np.gradient(fine.outputs[:, 0], fine.inputs)[2:-2], fine.gains[2:-2, 0], rtol=0.02)


def test_a_curve_marks_what_is_beyond_the_training_data(lag):
    low, high = (float(each[0]) for each in lag.preprocessor.input_range)
    with pytest.warns(UserWarning, match="static gain curve leaves what training has shown in 2 of 3 values of 'u'"):
        curve = lag.static_gain_curve([low - 1.0, 0.5 * (low + high), 2.0 * high])
    assert curve.extrapolates.tolist() == [True, False, True]
    assert "outside of the training range" in curve.plot().axes[0].get_legend_handles_labels()[1]


def test_of_several_inputs_one_varies():
    model = fit_small("ARX", 2, 2)
    curve = model.static_gain_curve([1.0, 2.0, 5.0], input="u1", at={"u0": 4.0})
    np.testing.assert_allclose(curve.outputs[2], model.linearise(at=[4.0, 5.0]).point.outputs)
    assert curve.input_name == "u1" and curve.others[0] == 4.0
    np.testing.assert_allclose(curve.gains, np.tile(model.linearise().static_gain[:, 1], (3, 1)))


def test_a_file_that_does_not_know_the_range_of_its_inputs(lag):
    old = replace(lag, preprocessor=replace(lag.preprocessor, input_range=None))
    mean, std = float(lag.scaling.u_mean[0]), float(lag.scaling.u_std[0])
    np.testing.assert_allclose(old.static_gain_curve().inputs[[0, -1]], [mean - 2.0 * std, mean + 2.0 * std])


def test_pictures(lag):
    many = fit_small("ARX", 2, 2)
    values = (
        (lag.step_response(), 2),
        (many.step_response(input="u0"), 3),
        (lag.frequency_response(), 2),
        (many.frequency_response(), 4),
        (many.frequency_response(input="u1"), 2),
        (lag.static_gain_curve(), 2),
        (many.static_gain_curve(input="u0"), 4),
    )
    for value, axes in values:
        figure = value.plot()
        assert isinstance(figure, Figure) and len(figure.axes) == axes, value
        figure.canvas.draw()
        assert len(repr(value)) < 200
