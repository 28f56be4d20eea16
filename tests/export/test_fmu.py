"""What FMUs have beyond the other formats: description, times, saved states, refused calls, sources, the compiler."""

import shutil
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException

import revarb
from revarb.errors import ComputationError, InputError
from support.c_programs import SANITISED, STRICT, compile_c
from support.export_formats import export_fmu, fmu_instance, needs_compiler, run_fmu
from support.export_models import fit_mixed, fit_small, make_record, simulate_mean

pytestmark = needs_compiler

CLOSE = {"rtol": 1e-9, "atol": 1e-9}  # outputs are of the order of 100
ERROR, COLD_START = 3, 0  # fmi2Error; the value reference of the Boolean


def refuses(call, *arguments):
    with pytest.raises(FMICallException) as refused:
        call(*arguments)
    return refused.value.status == ERROR


def unpack(model, folder, **options):
    with zipfile.ZipFile(export_fmu(model, folder, **options)) as archive:
        archive.extractall(folder)
    return folder / "sources"


def test_simulate_fmu_gives_row_k_after_step_k(tmp_path):
    """The convention of times: the outputs of row k are there at (k + 1) dt, when the step from k dt is done."""
    record = make_record()
    model = revarb.ARX(lags=3, input_lags=2).fit(revarb.Series(record.u, record.y, 0.02, ["valve"], ["level"]))
    path, rows = export_fmu(model, tmp_path), len(record.u)
    times = 0.02 * np.arange(rows)
    signals = np.array(list(zip(times, record.u[:, 0], strict=True)), dtype=[("time", float), ("valve", float)])
    found = fmpy.simulate_fmu(str(path), stop_time=0.02 * rows, input=signals, output=["level"], output_interval=0.02)
    assert len(found) == rows + 1
    np.testing.assert_allclose(found["time"][1:], times + 0.02, rtol=1e-12)
    np.testing.assert_allclose(found["level"][1:], simulate_mean(model, record.u)[:, 0], **CLOSE)


def test_the_description_names_columns_units_states_and_interval(tmp_path):
    record, inputs = make_record(2, 1), ["valve", 'flow <"&\n [l/s]']
    model = revarb.ARX(lags=2, input_lags=1).fit(revarb.Series(record.u, record.y, 0.5, inputs, ["level"]))
    description = fmpy.read_model_description(str(export_fmu(model, tmp_path, units={"valve": "%", "level": "cm"})))
    assert description.modelName == description.coSimulation.modelIdentifier == "tank"
    assert description.defaultExperiment.stepSize == "0.5"
    assert [unit.name for unit in description.unitDefinitions] == ["%", "l/s", "cm"]
    known = {each.name: each for each in description.modelVariables}
    assert list(known) == [
        "valve", 'flow <"&_ [l/s]', "level", "layer1.state1.lag0", "layer1.state1.lag1", "past.valve.lag1",
        'past.flow <"&_ [l/s].lag1', "start.layer1.state1.lag0", "start.layer1.state1.lag1",
        "start.past.valve.lag1", 'start.past.flow <"&_ [l/s].lag1', "cold_start",
    ]  # fmt: skip
    assert (known["valve"].unit, known["level"].unit, known["start.past.valve.lag1"].unit) == ("%", "cm", "%")
    assert float(known["valve"].start) == float(known["start.past.valve.lag1"].start) == model.scaling.u_mean[0]


def test_columns_that_would_have_the_names_of_other_variables(tmp_path):
    record = make_record(3, 2)
    names = ["cold_start", "layer1.state1.lag0", "a\tb"], ["a_b", "start.layer1.state1.lag0"]
    model = revarb.ARX(lags=1, input_lags=1).fit(revarb.Series(record.u, record.y, 1.0, *names))
    found, _ = run_fmu(model, tmp_path, record.u, name="fmi2_cosimulation")
    np.testing.assert_allclose(found, simulate_mean(model, record.u), **CLOSE)


def test_a_step_is_a_multiple_of_the_sampling_interval(tmp_path, capfd):
    record = make_record()
    model = revarb.ARX(lags=2, input_lags=1).fit(revarb.Series(record.u, record.y, 0.1))
    held = np.repeat(record.u[:3], 4, axis=0)
    with fmu_instance(export_fmu(model, tmp_path), tmp_path) as (slave, inputs, outputs, *_):
        assert all(refuses(slave.doStep, 0.0, h) for h in (0.05, 0.15, 0.0, -0.1, 0.101, float("nan"), float("inf")))
        assert "must be a multiple of the sampling interval 0.1, received 0.05" in capfd.readouterr().out
        found = []
        for k in range(3):  # four samples at once, the input held
            slave.setReal(inputs, [held[4 * k, 0]])
            slave.doStep(0.4 * k, 0.1 + 0.1 + 0.1 + 0.1 + 1e-12)
            found.append(slave.getReal(outputs))
    np.testing.assert_allclose(found, simulate_mean(model, held)[3::4], **CLOSE)


def test_states_can_be_saved_serialised_and_restored(tmp_path):
    record, model = make_record(2, 2), fit_small("two layers", 2, 2)
    expected = simulate_mean(model, record.u)
    with fmu_instance(export_fmu(model, tmp_path), tmp_path) as (slave, inputs, outputs, *_):

        def advance(rows):
            for k in rows:
                slave.setReal(inputs, record.u[k].tolist())
                slave.doStep(float(k), 1.0)
            return slave.getReal(outputs)

        advance(range(2))
        saved = slave.getFMUState()
        written = slave.serializeFMUState(saved)
        np.testing.assert_allclose(advance(range(2, 20)), expected[19], **CLOSE)
        slave.setFMUState(saved)
        np.testing.assert_allclose(advance(range(2, 30)), expected[29], **CLOSE)
        slave.freeFMUState(saved)
        again = slave.deserializeFMUState(written)
        slave.setFMUState(again)
        np.testing.assert_allclose(advance(range(2, 40)), expected[39], **CLOSE)
        assert all(refuses(slave.deserializeFMUState, each) for each in (written[:-1], bytes(len(written)), b""))
        slave.reset()
        slave.enterInitializationMode()
        slave.exitInitializationMode()
        np.testing.assert_allclose(advance(range(10)), expected[9], **CLOSE)


def test_calls_that_are_not_allowed(tmp_path, capfd):
    model = fit_small("two layers", 2, 2)
    with fmu_instance(export_fmu(model, tmp_path), tmp_path) as (slave, _, outputs, states, starts):
        for reference in (outputs[0], states[0], starts[0], 999):  # starts: after the initialisation
            assert refuses(slave.setReal, [reference], [1.0])
        assert "is that of a start value, which is set before the first step" in capfd.readouterr().out
        assert refuses(slave.setReal, [0], [float("nan")]) and refuses(slave.setBoolean, [COLD_START], [True])
        assert refuses(slave.setInteger, [0], [1]) and refuses(slave.setString, [0], ["a"])
        assert refuses(slave.getReal, [999]) and refuses(slave.getBoolean, [1])
        assert refuses(slave.getInteger, [0]) and refuses(slave.getString, [0])
        assert refuses(slave.enterInitializationMode) and refuses(slave.cancelStep)
        slave.doStep(3.0, 1.0)
        assert slave.getRealStatus(2) == 4.0 and not slave.getBooleanStatus(3)
        slave.terminate()
        assert refuses(slave.doStep, 4.0, 1.0)


def test_a_run_that_diverges_is_an_error(tmp_path, capfd):
    y = 1.5 ** np.arange(12.0)
    model = revarb.ARX(lags=1).fit(revarb.Series(None, y))
    assert np.abs(model.poles[0]) > 1.2
    with fmu_instance(export_fmu(model, tmp_path), tmp_path, start=np.array([1.0])) as (slave, *_), \
            pytest.raises(FMICallException):  # fmt: skip
        for k in range(10000):
            slave.doStep(float(k), 1.0)
    assert "the run diverged" in capfd.readouterr().out


@pytest.mark.parametrize("precision", ["double", "float"])
def test_the_sources_inside_can_be_built_elsewhere(tmp_path, precision):
    """Also under a prefix, for tools that link several FMUs into one program."""
    for model in (fit_mixed(), revarb.ARX(lags=2).fit(revarb.Series(None, np.sin(np.arange(40.0))))):
        sources = unpack(model, tmp_path, precision=precision)
        described = ElementTree.parse(tmp_path / "modelDescription.xml").iter("File")
        listed = [sources / file.attrib["name"] for file in described]
        assert len(listed) == 2
        for more in ((), ("-DFMI2_FUNCTION_PREFIX=tank_",)):
            compile_c(listed, tmp_path / "tank.so", (*STRICT, "-fPIC", "-shared", *more))


def test_the_interface_under_the_sanitisers(tmp_path):
    """All memory is given back, too."""
    sources = unpack(fit_mixed(), tmp_path)
    shutil.copy(Path(__file__).with_name("fmu_driver.c"), sources)
    compile_c(sorted(sources.glob("*.c")), tmp_path / "driver", SANITISED)
    done = subprocess.run([tmp_path / "driver"], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_the_library_exports_the_functions_of_the_standard_only(tmp_path):
    unpack(fit_small("ARX"), tmp_path)
    [library] = tmp_path.glob("binaries/*/*")
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in listed.splitlines()]
    assert len(names) == 34 and all(name.startswith("fmi2") for name in names), names


@pytest.mark.parametrize(
    ("variable", "value", "kind", "message"),
    [
        ("PATH", ".", InputError, "an FMU needs a C compiler, and none of cc, gcc, clang is installed"),
        ("CC", "none -m64", InputError, "CC=none is not installed; install one, or export to c"),
        ("CC", "cc --no-such-option", ComputationError, r"the C compiler cc failed with status 1: .*no-such-option"),
    ],
)
def test_without_a_compiler_that_works(tmp_path, monkeypatch, variable, value, kind, message):
    monkeypatch.setenv(variable, value)
    with pytest.raises(kind, match=message):
        fit_small("ARX").export(tmp_path / "m.fmu")
    assert list(tmp_path.iterdir()) == []
