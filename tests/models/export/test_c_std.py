"""Exported C programs with standard deviations, against the moments of the model's own simulation."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.errors import InputError
from support.c_programs import MOMENTS, SANITISED, STRICT, build, run_moments, run_program
from support.export_models import RECIPE, fit_mixed, fit_small, make_record

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

BY_MOMENTS = ["one layer", "two layers", "linear part, dead time", "feedthrough", "two states", "GP-NARX"]
CLOSE = {"rtol": 1e-9, "atol": 1e-9}  # outputs are of the order of 100
# Variances are differences of large numbers, here and in simulate: against long double both are wrong by up to 2e-8.
ROUNDED = {"rtol": 1e-7, "atol": 0.0}


def export(model, folder, flags=STRICT, **options):
    return build(model.export(folder / "model.c", with_std=True, **options)[1], flags, MOMENTS)


def check(found, path):
    np.testing.assert_allclose(found[0], path.mean, **CLOSE)
    np.testing.assert_allclose(found[1], path.std, **ROUNDED)


@pytest.mark.parametrize("name", BY_MOMENTS)
@pytest.mark.parametrize("outputs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_cold_run_has_the_moments_of_simulate(tmp_path, name, outputs):
    record, model = make_record(outputs, outputs), fit_small(name, outputs, outputs)
    path = model.simulate(record.u)
    assert np.ptp(path.std) > 0.01 * path.std.mean()  # the band is no constant
    found = run_moments(export(model, tmp_path, SANITISED), record.u, outputs)
    check(found, path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in BY_MOMENTS if name != "GP-NARX"])
def test_a_run_from_a_measured_window(tmp_path, name):
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    start = revarb.Window(record.u[:30], record.y[:30])
    cov = np.asarray(model.resolve_start(start).state.cov)
    program = export(model, tmp_path)
    check(
        run_moments(program, record.u[30:], 2, model.step_state(start), cov), model.simulate(record.u[30:], start=start)
    )


def test_states_that_are_known_exactly(tmp_path):
    """GP-NARX one step after measured outputs has the band of its predictions."""
    record, model = make_record(2, 2), fit_small("GP-NARX", 2, 2)
    state = model.step_state(revarb.Window(record.u[:30], record.y[:30]))
    mean, std = run_moments(export(model, tmp_path), record.u[30:31], 2, state)
    path = model.predict(record)
    np.testing.assert_allclose((mean[0], std[0]), (path.mean[30], path.std[30]), rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("degrees", [None, pytest.param(5.0, marks=pytest.mark.slow)])
def test_calibrated_noises_and_widths(tmp_path, degrees):
    record = make_record()
    calibration = revarb.Calibration(
        2.0, 0.03, edges=(2, 7), factors=(0.5, 1.5, 3.0), stretches=3, error=0.2, degrees_of_freedom=degrees
    )
    model = replace(fit_small("two layers"), calibration=calibration)
    program = export(model, tmp_path)
    check(run_moments(program, record.u, 1), model.simulate(record.u))
    start = revarb.Window(record.u[:30], record.y[:30])
    cov = np.asarray(model.resolve_start(start).state.cov)
    path = model.simulate(record.u[30:], start=start)
    check(run_moments(program, record.u[30:], 1, model.step_state(start), cov), path)


@pytest.mark.slow
def test_outputs_with_gaps_and_student_t_noise(tmp_path):
    """Outputs that were measured at different rows have a variance each."""
    record = make_record(1, 2)
    y = record.y.copy()
    y[::3, 1] = np.nan
    y[20, 0] += 500.0
    spec = revarb.RGP(2, 2, hidden=1, inducing=8, latent_dim=2, recipe=RECIPE, noise="student-t")
    model = spec.fit(revarb.Series(record.u, y))
    assert np.asarray(model.chain.output.reduction).ndim == 3 and model.chain.degrees is not None
    check(run_moments(export(model, tmp_path, SANITISED), record.u, 2), model.simulate(record.u))


def test_a_system_without_inputs(tmp_path):
    y = np.sin(0.3 * np.arange(60.0))
    model = revarb.GPNARX(lags=2, iterations=5).fit(revarb.Series(None, y))
    check(run_moments(export(model, tmp_path, SANITISED), np.empty((20, 0)), 1), model.simulate(steps=20))


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("name", ["ARX", "MLP-NARX"])
def test_models_with_a_mean_have_the_band_of_their_errors(tmp_path, name, precision):
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    found = run_moments(export(model, tmp_path, SANITISED, precision=precision), record.u, 2)
    path = model.simulate(record.u)
    tolerance = 1e-8 if precision == "double" else 1e-4
    np.testing.assert_allclose(found, (path.mean, path.std), rtol=tolerance, atol=100 * tolerance)


def test_the_band_of_arx_by_steps_since_a_measured_start(tmp_path):
    record = make_record(2, 2)
    model = replace(fit_small("ARX", 2, 2), horizon_std=np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]))
    start, program = revarb.Window(record.u[:30], record.y[:30]), export(model, tmp_path)
    check(run_moments(program, record.u[30:], 2, model.step_state(start)), model.simulate(record.u[30:], start=start))
    check(run_moments(program, record.u, 2), model.simulate(record.u))


def test_the_mean_only_step_is_the_same_with_standard_deviations(tmp_path):
    record, model = make_record(), fit_small("two layers")
    plain, _ = run_program(build(model.export(tmp_path / "plain.c")[1]), record.u, 1)
    both, _ = run_program(build(model.export(tmp_path / "both.c", with_std=True)[1]), record.u, 1)
    np.testing.assert_allclose(plain, both, rtol=1e-12)  # where the compiler fuses products with sums, it may differ


def test_refusals(tmp_path):
    with pytest.raises(InputError, match="the standard deviation of an ensemble cannot be exported, only the mean"):
        fit_mixed().export(tmp_path / "m.c", with_std=True)
    with pytest.raises(InputError, match="propagated moments need double precision"):
        fit_small("one layer").export(tmp_path / "m.c", with_std=True, precision="float")
    with pytest.raises(InputError, match="an export to fmu has no option with_std; leave it out, or export to c"):
        fit_small("one layer").export(tmp_path / "m.fmu", with_std=True)
    assert list(tmp_path.iterdir()) == []
