"""Operating points and linear models there, against finite differences, known maps, ARX's own numbers and control."""

import sys
import warnings
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.export.step_model import make_step_model
from revarb.gp.layer import Linear
from revarb.models.fitted_arx import FittedARX
from revarb.models.linearisation import find_operating_point
from revarb.models.recipe import Status
from support.export_models import SPECS, fit_small
from support.numpy_step import step_vector

AT = [3.5, 2.2]


class Logistic(eqx.Module):
    """y⁺ = u y (1 − y): at rest at 1 − 1/u with the pole 2 − u, stable for 1 < u < 3, chaotic at 3.8."""

    outputs: int = eqx.field(static=True, default=1)

    def mean(self, x):
        return x[:, 1:] * x[:, :1] * (1.0 - x[:, :1])


def make_narx(layer, lags=1, input_lags=1, inputs=1):
    """A NARX model with this layer, whose raw values are its z-scores."""
    scaling = Standardiser(np.zeros(inputs), np.ones(inputs), np.zeros(1), np.ones(1))
    names = tuple(f"u{k}" for k in range(inputs)) if inputs != 1 else ("u",)
    prep = Preprocessor(scaling, Order(lags, input_lags, 1), names, ("y",), 0.5)
    return FittedARX(prep, Status.CONVERGED, 0, np.ones(1), layer)


def make_arx(past, inputs=(1.0,), offset=0.0):
    """An ARX model with known coefficients."""
    coefficients = np.array([*past, *inputs])[:, None]
    return make_narx(Linear(coefficients, np.array([offset])), len(past), len(inputs))


def step_by_numpy(model, point):
    """The state of a linearisation at rest, by its documented layout, and one step of it."""
    step, [rest] = make_step_model(model.step_parts()), point.states
    [member], units, shift = step.members, np.ones(step.state_size), np.zeros(step.state_size)
    if member.output is None:  # past outputs are raw, latent states are not
        units[: member.states] = np.tile(member.scaling.y_std, member.order.lags)
        shift[: member.states] = np.tile(member.scaling.y_mean, member.order.lags)

    def advance(x, u):
        state, y = step_vector(step, (x - shift) / units, u)
        return state * units + shift, y

    return np.concatenate([rest.mean, np.tile(point.inputs, model.order.reach)]) * units + shift, advance


@pytest.mark.parametrize("name", SPECS)
def test_matrices_are_the_derivatives_of_a_step(name):
    model = fit_small(name, 2, 2)
    linear = model.linearise(at=AT)
    (x, advance), u = step_by_numpy(model, linear.point), np.array(AT)
    np.testing.assert_allclose(advance(x, u)[0], x, atol=1e-7)  # the equilibrium is one
    np.testing.assert_allclose(advance(x, u)[1], linear.point.outputs, rtol=1e-9)
    whole, h = np.concatenate([x, u]), 1e-4
    columns = []
    for push in h * np.eye(len(whole)):  # central differences of [state, outputs] by [x, u]
        after, before = (np.concatenate(advance(*np.split(v, [len(x)]))) for v in (whole + push, whole - push))
        columns.append((after - before) / (2.0 * h))
    ours = np.block([[linear.A, linear.B], [linear.C, linear.D]])
    np.testing.assert_allclose(ours, np.stack(columns, axis=1), rtol=1e-5, atol=1e-5)
    assert (linear.D != 0.0).any() == (name == "feedthrough")
    assert len(linear.state_names) == len(set(linear.state_names)) == len(x)


def test_arx_keeps_its_poles():
    model = fit_small("ARX", 2, 2)
    linear = model.linearise()
    moving = linear.poles[: len(model.poles)]
    np.testing.assert_allclose(np.abs(moving), np.abs(model.poles), atol=1e-6)
    np.testing.assert_allclose(linear.poles[len(model.poles) :], 0.0, atol=1e-6)
    np.testing.assert_allclose(model.linearise(at=AT).A, linear.A, atol=1e-12)  # the same everywhere


def test_known_coefficients_give_known_matrices():
    linear = make_arx([1.2, -0.35], [0.5, 0.25], offset=0.3).linearise(at=2.0)
    np.testing.assert_allclose(linear.A, [[1.2, -0.35, 0.25, 0.5], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    np.testing.assert_allclose(linear.B[:, 0], [0, 0, 0, 1])
    np.testing.assert_allclose(linear.C, linear.A[:1])
    np.testing.assert_allclose(linear.poles, [0.7, 0.5, 0.0, 0.0], atol=1e-12)
    assert linear.static_gain.item() == pytest.approx(5.0)
    assert linear.point.outputs.item() == pytest.approx((0.3 + 0.75 * 2.0) / 0.15)
    assert linear.time_constants[0] == pytest.approx(-0.5 / np.log(0.7))
    assert linear.state_names == ("y, 1 ago", "y, 2 ago", "u, 2 ago", "u, 1 ago")


def test_to_control_answers_a_step_as_the_model_does():
    control = pytest.importorskip("control")
    model = fit_small("ARX", 2, 2)
    linear = model.linearise()
    system = linear.to_control()
    assert system.dt == model.dt and system.input_labels == ["u0", "u1"] and system.output_labels == ["y0", "y1"]
    answer = control.step_response(system, T=np.arange(20) * model.dt).outputs
    np.testing.assert_allclose(np.moveaxis(linear.step(20), 0, 2), answer, atol=1e-9)
    for column, name in enumerate(model.input_names):
        response = model.step_response(0.1, steps=20, input=name)
        ours = (response.path.mean - response.point.outputs) / 0.1
        np.testing.assert_allclose(ours.T, answer[:, column], atol=1e-8)
    frequencies = np.array([0.01, 0.1, 0.3])
    theirs = control.frequency_response(system, 2.0 * np.pi * frequencies)
    ours = model.frequency_response(frequencies=frequencies).response
    np.testing.assert_allclose(np.moveaxis(ours, 0, 2), theirs.complex, rtol=1e-9)


def test_names_that_control_does_not_allow_and_no_control(monkeypatch):
    pytest.importorskip("control")
    model = make_arx([0.5])
    dotted = replace(model, preprocessor=replace(model.preprocessor, input_names=("valve.in",)))
    assert dotted.linearise().to_control().input_labels == ["valve_in"]
    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(InputError, match=r'to_control needs control; pip install "revarb\[control\]"'):
        model.linearise().to_control()


@pytest.mark.parametrize(("at", "rest", "pole"), [(2.5, 0.6, -0.5), (1.25, 0.2, 0.75), (2.0, 0.5, 0.0)])
def test_a_map_whose_equilibrium_is_known(at, rest, pole):
    linear = make_narx(Logistic()).linearise(at)
    assert linear.point.outputs.item() == pytest.approx(rest, abs=1e-12)
    assert linear.poles[0].real == pytest.approx(pole, abs=1e-9)
    assert linear.static_gain.item() == pytest.approx(1.0 / at**2)  # of 1 − 1/u


@pytest.mark.parametrize(
    ("model", "at", "what"),
    [
        (make_narx(Logistic()), 3.8, "does not come to rest in 20000 steps"),
        (make_narx(Logistic()), 5.0, "diverges"),
        (make_arx([1.5]), 0.0, "diverges"),  # at 0 it would stay at rest if nothing pushed it
        (make_arx([1.0]), 1.0, "does not come to rest"),
        (make_arx([2.0 * np.cos(0.3), -1.0]), 1.0, "does not come to rest"),
    ],
)
def test_without_a_stable_equilibrium_there_is_a_line(model, at, what):
    for call in (model.linearise, lambda at: model.step_response(1.0, at=at)):
        with pytest.raises(InputError, match=f"no stable equilibrium at u = {at:g}: the run ({what})"):
            call(at)


def test_a_step_to_where_the_model_does_not_come_to_rest():
    model = make_narx(Logistic())
    response = model.step_response(1.3, at=2.5)
    assert len(response.path) == 2000 and response.final == response.path.mean[-1]
    with pytest.raises(InputError, match="the model comes to rest at none of the 2 values of 'u'"):
        model.static_gain_curve([3.8, 5.0])


def test_a_slow_model_comes_to_rest():
    """Its time constant is as long as the run: the equilibrium is where the run goes."""
    point = find_operating_point(make_arx([0.9999], [1e-4]), 3.0)
    assert point.outputs.item() == pytest.approx(3.0, rel=1e-9)


def test_where_it_is_linearised():
    model = fit_small("ARX", 2, 2)
    np.testing.assert_array_equal(model.linearise().point.inputs, model.scaling.u_mean)
    point = model.linearise(at={"u1": 2.0}).point
    np.testing.assert_array_equal(point.inputs, [model.scaling.u_mean[0], 2.0])
    assert str(point) == f"u0 = {model.scaling.u_mean[0]:.6g}, u1 = 2"


def test_a_point_beyond_the_training_data_gives_a_warning():
    model = fit_small("ARX", 2, 2)
    low, high = model.preprocessor.input_range
    with pytest.warns(UserWarning, match="the operating point u0 = .* is outside of what training has shown"):
        model.linearise(at=high + (high - low))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.linearise()


def test_figures_and_a_model_without_memory():
    linear = fit_small("two layers", 2, 2).linearise()
    figure = linear.plot()
    assert isinstance(figure, Figure) and len(figure.axes) == 3
    replace(linear, input_names=("a$b", "c_d"), output_names=("$x", "y$")).plot().canvas.draw()
    linear = make_narx(Linear(jnp.array([[0.0], [2.0]]), jnp.zeros(1))).linearise(at=1.0)  # it follows the input
    np.testing.assert_allclose(linear.poles, [0.0, 0.0])
    assert "largest pole 0" in repr(linear) and isinstance(linear.plot(), Figure)
