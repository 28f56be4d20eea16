"""Every export format, run by its own tool, against the simulation of the model.

The format "numpy" is the step in plain arrays that all others are written from.
"""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.errors import InputError
from revarb.simulation.chain import StartState
from support.c_programs import MOMENTS, SANITISED, build, run_moments
from support.export_formats import FORMATS, needs_compiler, open_session, run_numpy
from support.export_models import RECIPE, SPECS, fit_mixed, fit_mixture, fit_small, make_record, simulate_mean

CLOSE = {"rtol": 1e-9, "atol": 1e-9}  # outputs are of the order of 100
# Variances are differences of large numbers, here and in simulate: against long double both are wrong by up to 2e-8.
ROUNDED = {"rtol": 1e-7, "atol": 0.0}
COLD_ONLY = ("GP-NARX", "MLP-NARX")  # their `simulate` has no other start
MAKE_GAUSSIAN = [pytest.param(lambda name=name: fit_small(name, 2, 2), id=name) for name in SPECS if "AR" not in name]
SINE = np.sin(0.3 * np.arange(60.0))

each_format = pytest.mark.parametrize("run", FORMATS)


def window(record, samples=30):
    return revarb.Window(record.u[:samples], record.y[:samples], record.dt)


def fit(name):
    return fit_mixture() if name == "mixture" else fit_small(name, 2, 2)


@each_format
@pytest.mark.parametrize("name", [*SPECS, "mixture"])
def test_a_cold_run_and_its_continuation(run, name, tmp_path):
    """The mixture has members that look back differently far, and a linear one."""
    record, model = make_record(2, 2), fit(name)
    first, state = run(model, tmp_path, record.u[:40])
    second, _ = run(model, tmp_path, record.u[40:], state)
    np.testing.assert_allclose(np.concatenate([first, second]), simulate_mean(model, record.u), **CLOSE)


@pytest.mark.parametrize("samples", [1, 3, 50])
@pytest.mark.parametrize("name", [*SPECS, "mixture"])
def test_the_state_after_a_measured_window(name, samples, tmp_path):
    """Windows can be shorter and longer than the lags; one as long as the lags is in the test of all formats."""
    record, model = make_record(2, 2), fit(name)
    start, u = window(record, samples), record.u[samples:]
    found, _ = run_numpy(model, tmp_path, u, model.step_state(start))
    if name not in COLD_ONLY:
        np.testing.assert_allclose(found, model.simulate(u, model.methods[0], start=start).mean, **CLOSE)
    elif samples > 1:
        np.testing.assert_allclose(found[0], model.predict(record).mean[samples], rtol=1e-9)


@each_format
def test_a_run_after_windows_of_any_length(run, tmp_path):
    record, model = make_record(2, 2), fit_mixture()
    for samples in (2, 3, 50):
        found, _ = run(model, tmp_path, record.u[samples:], model.step_state(window(record, samples)))
        expected = model.simulate(record.u[samples:], "mean", start=window(record, samples)).mean
        np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("fit", [fit_mixed, fit_mixture])
def test_an_ensemble_continues_its_training_records(fit, tmp_path):
    model = fit()
    record = make_record(len(model.input_names), len(model.output_names))
    assert len({member.order.reach for member in model.members}) > 1
    found, _ = run_numpy(model, tmp_path, record.u, model.step_state("continue"))
    np.testing.assert_allclose(found, model.simulate(record.u, "mean", start="continue").mean, **CLOSE)
    np.testing.assert_array_equal(model.step_state(model.final_states[-1]), model.step_state("continue"))


@each_format
def test_system_without_inputs(run, tmp_path):
    model, rows = revarb.ARX(lags=2).fit(revarb.Series(None, SINE, dt=0.1)), np.empty((20, 0))
    np.testing.assert_allclose(run(model, tmp_path, rows)[0], model.simulate(steps=20).mean, rtol=1e-9, atol=1e-12)
    before = revarb.Window(None, SINE[:30], dt=0.1)
    found, _ = run(model, tmp_path, rows, model.step_state(before))
    np.testing.assert_allclose(found, model.simulate(steps=20, start=before).mean, rtol=1e-9)


@each_format
@pytest.mark.parametrize(
    "spec",
    [
        revarb.ARX(1, 1, 1),
        revarb.ARX(1, 1, 0),  # it keeps no past inputs
        pytest.param(revarb.RGP(1, 1, 0, hidden=2, inducing=5, recipe=RECIPE, calibrate=False), marks=pytest.mark.slow),
    ],
)
def test_windows_of_one_sample(run, spec, tmp_path):
    record = make_record(2, 1)
    model = spec.fit(record)
    assert model.order.reach == spec.input_delay
    np.testing.assert_allclose(run(model, tmp_path, record.u)[0], simulate_mean(model, record.u), **CLOSE)


@pytest.mark.parametrize("ending", ["c", "fmu", "onnx", "casadi"])
def test_two_exports_of_a_model_are_equal(ending, tmp_path):
    first, second = ([file.read_bytes() for file in fit_mixed().export(tmp_path / f"m.{ending}")] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", ["ARX", *COLD_ONLY])
def test_a_narx_model_takes_the_last_measured_outputs(name, tmp_path):
    """The next output is then that of `predict`, one step ahead; a missing output is replaced by its prediction."""
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    y = record.y.copy()
    y[28, 1] = np.nan
    state = model.step_state(revarb.Window(record.u[:30], y[:30]))
    raw = state[: 2 * model.order.lags].reshape(-1, 2) * model.scaling.y_std + model.scaling.y_mean
    np.testing.assert_allclose(raw[0], record.y[29], rtol=1e-12)
    assert np.isfinite(raw).all()
    if name != "GP-NARX":  # whose mean in `predict` counts the uncertainty of the missing output
        expected = model.predict(revarb.Series(record.u, y)).mean[30]
        np.testing.assert_allclose(run_numpy(model, tmp_path, record.u[30:31], state)[0][0], expected, rtol=1e-9)


# Standard deviations: in C of a whole run, by propagated moments; in CasADi and ONNX of one step from a known state


def build_moments(model, folder, **options):
    return build(model.export(folder / "model.c", with_std=True, **options)[1], SANITISED, MOMENTS)


def run_c_moments(model, folder, u, start=None, **options):
    return run_moments(build_moments(model, folder, **options), u, len(model.output_names), start)


def check(found, path):
    np.testing.assert_allclose(found[0], path.mean, **CLOSE)
    np.testing.assert_allclose(found[1], path.std, **ROUNDED)


def calibrate():
    """A model whose bands change with the number of steps since its start."""
    known = revarb.Calibration(2.0, 0.03, (2, 7), (0.5, 1.5, 3.0), 3, 0.2, degrees_of_freedom=5.0)
    return replace(fit_small("two layers"), calibration=known)


def fit_robust():
    """Outputs that were measured at different rows have a variance each; Student-t noise."""
    record = make_record(1, 2)
    y = record.y.copy()
    y[::3, 1] = np.nan
    y[20, 0] += 500.0
    spec = revarb.RGP(2, 2, hidden=1, inducing=8, latent_dim=2, recipe=RECIPE, noise="student-t")
    model = spec.fit(revarb.Series(record.u, y))
    assert np.asarray(model.chain.output.reduction).ndim == 3 and model.chain.degrees is not None
    return model


def with_horizon_stds():
    """A linear model whose band is that of its errors by steps since the start."""
    return replace(fit_small("ARX", 2, 2), horizon_std=np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]))


@needs_compiler
@pytest.mark.parametrize("make", [*MAKE_GAUSSIAN, calibrate, with_horizon_stds, fit_robust])
def test_bands_in_c_cold_and_after_a_window(make, tmp_path):
    model = make()
    record = make_record(len(model.input_names), len(model.output_names))
    program, path = build_moments(model, tmp_path), model.simulate(record.u)
    assert np.ptp(path.std) > 0.01 * path.std.mean()  # the band is no constant
    check(run_moments(program, record.u, len(model.output_names)), path)
    for samples in (1, model.order.lags, 50):
        start = window(record, samples)
        cov = np.asarray(model.resolve_start(start).state.cov)
        found = run_moments(program, record.u, len(model.output_names), model.step_state(start), cov)
        check(found, model.simulate(record.u, start=start))


@needs_compiler
@pytest.mark.parametrize("name", ["ARX", "MLP-NARX"])
def test_band_of_a_model_with_a_mean_in_single_precision(name, tmp_path):
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    found, path = run_c_moments(model, tmp_path, record.u, precision="float"), model.simulate(record.u)
    np.testing.assert_allclose(found, (path.mean, path.std), rtol=1e-4, atol=0.01)


@needs_compiler
def test_moments_in_c_without_inputs(tmp_path):
    noise = 0.1 * np.random.default_rng(0).normal(size=len(SINE))
    model = revarb.GPNARX(lags=2, iterations=5).fit(revarb.Series(None, SINE + noise))
    check(run_c_moments(model, tmp_path, np.empty((20, 0))), model.simulate(steps=20))
    assert "beyond" not in (tmp_path / "model.c").read_text()  # its band does not widen: no held runs


def step_casadi(model, folder, state, u):
    return [np.asarray(each)[:, 0] for each in model.to_casadi(with_std=True)(state, u)]


def step_onnx(model, folder, state, u):
    [file] = model.export(folder / "m.onnx", with_std=True)
    return open_session(file).run(["next_state", "y", "std"], {"state": state, "u": u})


def step_c(model, folder, state, u):
    mean, std = run_c_moments(model, folder, u[None], state)
    return None, mean[0], std[0]


def know_exactly(model, start):
    """The state after a window, without uncertainty; of an ensemble those of its members."""
    if isinstance(model, revarb.Ensemble):
        return tuple(know_exactly(member, start) for member in model.members)
    state = model.resolve_start(start).state
    return StartState(state.mean, np.zeros_like(state.cov), state.past_u)


@pytest.mark.parametrize("step", [step_casadi, step_onnx])
@pytest.mark.parametrize("make", [*MAKE_GAUSSIAN, calibrate, fit_mixed, fit_robust])
def test_std_of_one_step(step, make, tmp_path):
    """To first order where `simulate` matches moments; of an ensemble that of the mixture."""
    model = make()
    record = make_record(len(model.input_names), len(model.output_names))
    start, now = know_exactly(model, window(record)), record.u[30:31]
    state, y, std = step(model, tmp_path, model.step_state(start), now[0])
    np.testing.assert_allclose(std, model.simulate(now, start=start).std[0], rtol=0.03)
    rows, expected = run_numpy(model, tmp_path, now, model.step_state(start))
    np.testing.assert_allclose(y, rows[0], **CLOSE)
    np.testing.assert_allclose(state, expected, **CLOSE)


@pytest.mark.parametrize("step", [step_casadi, step_onnx, pytest.param(step_c, marks=needs_compiler)])
def test_std_of_one_step_of_a_gp_narx_is_that_of_predict(step, tmp_path):
    """After measured outputs its states are known: one step ahead nothing is propagated."""
    record, model = make_record(2, 2), fit_small("GP-NARX", 2, 2)
    _, y, std = step(model, tmp_path, model.step_state(window(record)), record.u[30])
    path = model.predict(record)
    np.testing.assert_allclose((y, std), (path.mean[30], path.std[30]), rtol=1e-7)


# Refusals


def export(*names, **options):
    return lambda model, folder: model.export(folder.joinpath(*names), **options)


def start_at(start):
    return lambda model, folder: model.step_state(start(model) if callable(start) else start)


@pytest.mark.parametrize(
    ("name", "call", "message"),
    [
        ("ARX", export("m.txt"), r"m.txt' is that of no export; choose one of these, or pass to=: c \(\.c\), fmu"),
        ("ARX", export("m.c", to="matlab"), r"a model can be exported to c \(\.c\), .*; received 'matlab'"),
        ("ARX", export("m.onnx", precision="float"), "an export to onnx has no option precision; leave it out"),
        ("ARX", export("m.c", step_only=True), "an export to c has no option step_only; .* or export to onnx"),
        ("ARX", export("m.casadi", name="tank"), "an export to casadi has no option name"),
        ("one layer", export("m.fmu", with_std=True), "an export to fmu has no option with_std; .* or export to c"),
        ("ARX", export("none", "m.c"), "does not exist; create it first"),
        ("ARX", export("m.h", to="c"), r"name a file that ends in \.c, received"),
        ("ARX", export('a"b.c'), "which no quotes can hold; choose another name"),
        *(("ARX", export("m.c", name=name), "name must be an identifier of C") for name in ("2nd", "a b", "", "größe")),
        ("ARX", export("m.c", precision="half"), "precision must be 'double' or 'float', received 'half'"),
        ("ARX", export("m.c", units={"valve": "%"}), "units has the column 'valve', but those of the model are"),
        ("ARX", export("m.c", units={"u": 3}), "the unit of 'u' must be a text, received 3"),
        ("mixed", export("m.c", with_std=True), "the standard deviation of an ensemble cannot be exported, only the"),
        ("mixture", export("m.c", with_std=True), "the standard deviation of an ensemble cannot be exported, only the"),
        ("mixture", export("m.onnx", with_std=True), "a FittedARX has no variance of its own; leave with_std out"),
        ("mixture", export("m.casadi", with_std=True), "a FittedARX has no variance of its own; leave with_std out"),
        ("one layer", export("m.c", with_std=True, precision="float"), "propagated moments need double precision"),
        ("ARX", lambda model, _: model.to_casadi(horizon=0), "horizon must be a whole number of at least 1, received"),
        ("one layer", lambda model, _: model.to_casadi(3, with_std=True), "with_std is of one step from a known state"),
        ("GP-NARX", start_at("continue"), "this model does not know how its training records ended"),
        ("ARX", start_at("warm"), "start must be 'cold', 'measured', 'continue', a revarb"),
        ("mixed", start_at(lambda model: model.members[0].final_states[0]), "one state, but the model has 2 members"),
        ("mixed", start_at(lambda model: model.final_states[0][:1]), r"start has 1 state\(s\), but the model 2 member"),
    ],
)  # fmt: skip
def test_refusals(name, call, message, tmp_path):
    mixtures = {"mixed": fit_mixed, "mixture": fit_mixture}
    model = mixtures[name]() if name in mixtures else fit_small(name)
    with pytest.raises(InputError, match=message):
        call(model, tmp_path)
    assert list(tmp_path.iterdir()) == []
