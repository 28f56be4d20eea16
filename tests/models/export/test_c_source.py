"""Exported C programs, compiled with every warning as an error and run, against the simulation of the model."""

import shutil
import subprocess

import numpy as np
import pytest

import revarb
from revarb.errors import InputError
from support.c_programs import SANITISED, STRICT, build, compile_c, run_program
from support.export_models import SPECS, fit_mixed, fit_small, make_record, simulate_mean

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

CLOSE = {"rtol": 1e-9, "atol": 1e-9}  # outputs are of the order of 100


def export(model, folder, name="model.c", **options):
    return model.export(folder / name, **options)[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (2, 2)])
def test_a_cold_run_is_that_of_simulate(tmp_path, name, inputs, outputs):
    record, model = make_record(inputs, outputs), fit_small(name, inputs, outputs)
    found, state = run_program(build(export(model, tmp_path)), record.u, outputs)
    np.testing.assert_allclose(found, simulate_mean(model, record.u), **CLOSE)
    past = model.order.reach * inputs
    np.testing.assert_array_equal(state[len(state) - past :], record.u[len(record) - model.order.reach :].ravel())


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("flags", [STRICT, SANITISED], ids=["plain", "sanitised"])
def test_a_run_from_a_measured_window_is_that_of_simulate(tmp_path, name, flags):
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    before, after = revarb.Window(record.u[:30], record.y[:30]), record.u[30:]
    found, _ = run_program(build(export(model, tmp_path), flags), after, 2, model.step_state(before))
    if name in ("GP-NARX", "MLP-NARX"):  # which simulate from a cold start only
        expected = model.predict(record).mean[30]
        np.testing.assert_allclose(found[0], expected, rtol=1e-9)
    else:
        expected = model.simulate(after, model.methods[0], start=before).mean
        np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("name", SPECS)
def test_a_cold_run_has_no_undefined_behaviour(tmp_path, name):
    record, model = make_record(), fit_small(name)
    found, _ = run_program(build(export(model, tmp_path), SANITISED), record.u, 1)
    np.testing.assert_allclose(found, simulate_mean(model, record.u), **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("start", ["cold", "window"])
def test_members_of_an_ensemble_restart_each_where_its_own_window_is_full(tmp_path, start):
    record, model = make_record(), fit_mixed()
    program = build(export(model, tmp_path), SANITISED)
    if start == "cold":
        found, expected = run_program(program, record.u, 1)[0], simulate_mean(model, record.u)
    else:
        before = revarb.Window(record.u[:30], record.y[:30])
        found, _ = run_program(program, record.u[30:], 1, model.step_state(before))
        expected = model.simulate(record.u[30:], "mean", start=before).mean
    np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("name", [*SPECS, "ensemble"])
def test_single_precision(tmp_path, name):
    record = make_record()
    model = fit_mixed() if name == "ensemble" else fit_small(name)
    source = export(model, tmp_path, precision="float")
    found, _ = run_program(build(source, (*STRICT, "-Wdouble-promotion", "-Wconversion")), record.u, 1)
    expected = simulate_mean(model, record.u)
    assert 1e-9 < np.abs(found - expected).max() / np.ptp(expected) < 1e-4  # the promise is 1e-3
    assert "double" not in source.read_text()


def test_a_system_without_inputs(tmp_path):
    y = np.sin(0.3 * np.arange(60.0))
    model = revarb.ARX(lags=2).fit(revarb.Series(None, y, dt=0.1))
    program = build(export(model, tmp_path), SANITISED)
    found, _ = run_program(program, np.empty((20, 0)), 1)
    np.testing.assert_allclose(found, model.simulate(steps=20).mean, rtol=1e-9, atol=1e-12)
    before = revarb.Window(None, y[:30], dt=0.1)
    found, _ = run_program(program, np.empty((20, 0)), 1, model.step_state(before))
    np.testing.assert_allclose(found, model.simulate(steps=20, start=before).mean, rtol=1e-9)


def test_a_direct_feedthrough_without_past_inputs(tmp_path):
    record = make_record(2, 1)
    model = revarb.ARX(lags=1, input_lags=1, input_delay=0).fit(record)
    assert model.order.reach == 0
    found, _ = run_program(build(export(model, tmp_path), SANITISED), record.u, 1)
    np.testing.assert_allclose(found, simulate_mean(model, record.u), **CLOSE)


def test_a_state_that_was_read_continues_the_run(tmp_path):
    record, model = make_record(2, 2), fit_small("two layers", 2, 2)
    program = build(export(model, tmp_path))
    whole, _ = run_program(program, record.u, 2)
    _, state = run_program(program, record.u[:40], 2)
    rest, _ = run_program(program, record.u[40:], 2, state)
    np.testing.assert_array_equal(rest, whole[40:])


def test_columns_with_hostile_names(tmp_path):
    record = make_record(6, 3)
    inputs = ('a "quoted" */ name', "int", "a quoted name", "Düse [°C]", "温度", "tab\there\nand ??/ \u202e \\")
    outputs = ("1st out/* put", "double", "Double")
    named = revarb.Series(record.u, record.y, input_names=inputs, output_names=outputs)
    model = revarb.ARX(lags=1, input_lags=1).fit(named)
    header, source = model.export(tmp_path / "9 lives-of a.cat.c")
    found, _ = run_program(build(source, SANITISED), record.u, 3)
    np.testing.assert_allclose(found, simulate_mean(model, record.u), **CLOSE)
    text = header.read_text()
    for place in ("IN_A_QUOTED_NAME = 0", "IN_INT = 1", "IN_A_QUOTED_NAME_2 = 2", "IN_DUSE_C = 3", "IN_COLUMN_5 = 4",
                  "OUT_1ST_OUT_PUT = 0", "OUT_DOUBLE = 1", "OUT_DOUBLE_2 = 2"):  # fmt: skip
        assert f"    MODEL_9_LIVES_OF_A_CAT_{place}" in text, place
    assert '"Düse [°C]", unit "°C"' in text and '"温度"' in text


def test_units_names_and_interval_are_in_the_header(tmp_path):
    record = make_record()
    model = revarb.ARX(lags=1, input_lags=1).fit(revarb.Series(record.u, record.y, 0.02, ["valve"], ["level [cm]"]))
    header, _ = model.export(tmp_path / "x.c", name="tank", units={"valve": "%"})
    text = header.read_text()
    assert '    TANK_IN_VALVE = 0 /* "valve", unit "%" */' in text
    assert '    TANK_OUT_LEVEL_CM = 0 /* "level [cm]", unit "cm" */' in text
    assert "#define TANK_DT 0.02 " in text and "Sampling interval: 0.02." in text and "void tank_step(" in text


def test_two_exports_of_a_model_are_equal_and_others_do_not_mix(tmp_path):
    one, other = fit_small("ARX"), fit_small("MLP-NARX")
    header, source = one.export(tmp_path / "m.c")
    first = header.read_bytes(), source.read_bytes()
    one.export(tmp_path / "m.c")
    assert (header.read_bytes(), source.read_bytes()) == first
    other.export(tmp_path / "m.c")
    source.write_bytes(first[1])  # of the export before
    with pytest.raises(AssertionError, match="the header is of another export"):
        compile_c(["-c", source], tmp_path / "m.o", STRICT)


def test_a_program_keeps_what_it_changes_in_the_state(tmp_path):
    """No variable of the program but constants: the object file has nothing in its data and bss sections."""
    source = export(fit_mixed(), tmp_path)
    compile_c(["-c", source], tmp_path / "model.o", STRICT)
    symbols = subprocess.run(["nm", tmp_path / "model.o"], capture_output=True, text=True, check=True).stdout
    kinds = {line.split()[-2] for line in symbols.splitlines()}
    assert kinds <= {"T", "t", "r", "U"}, symbols
    assert {line.split()[-1] for line in symbols.splitlines() if line.split()[-2] == "U"} <= {"exp", "__stack_chk_fail"}


def test_refusals(tmp_path):
    model = fit_small("ARX")
    for name in ("2nd", "a b", "", "größe"):
        with pytest.raises(InputError, match="name must be an identifier of C"):
            model.export(tmp_path / "m.c", name=name)
    with pytest.raises(InputError, match="precision must be 'double' or 'float', received 'half'"):
        model.export(tmp_path / "m.c", precision="half")
    with pytest.raises(InputError, match="units has the column 'valve', but those of the model are"):
        model.export(tmp_path / "m.c", units={"valve": "%"})
    with pytest.raises(InputError, match="the unit of 'u' must be a text, received 3"):
        model.export(tmp_path / "m.c", units={"u": 3})
    with pytest.raises(InputError, match=r"name a file that ends in \.c, received"):
        model.export(tmp_path / "m.h", "c")
    with pytest.raises(InputError, match="which no quotes can hold; choose another name"):
        model.export(tmp_path / 'a"b.c')
    with pytest.raises(InputError, match="a FittedMean cannot be exported"):
        revarb.Mean().fit(make_record()).export(tmp_path / "m.c")
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_a_float_cannot_hold_is_refused(tmp_path):
    record = make_record()
    model = revarb.ARX(lags=1, input_lags=1).fit(revarb.Series(1e50 * record.u, record.y))
    with pytest.raises(InputError, match="which a float cannot hold; export it as double"):
        model.export(tmp_path / "m.c", precision="float")
    found, _ = run_program(build(export(model, tmp_path)), 1e50 * record.u, 1)
    np.testing.assert_allclose(found, simulate_mean(model, 1e50 * record.u), **CLOSE)
