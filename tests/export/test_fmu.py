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
from revarb.export import fmu
from support.c_programs import SANITISED, STRICT, compile_c
from support.export_formats import export_fmu, fmu_instance, get_references, needs_compiler, run_fmu
from support.export_models import fit_mixed, fit_small, make_record, simulate_mean

pytestmark = needs_compiler

CLOSE = {"rtol": 1e-9, "atol": 1e-9}  # outputs are of the order of 100
ERROR, COLD_START = 3, 0  # fmi2Error; the value reference of the Boolean


@pytest.mark.slow
def test_single_precision(tmp_path):
    record, model = make_record(), fit_small("two layers")
    found, expected = run_fmu(model, tmp_path, record.u, precision="float")[0], simulate_mean(model, record.u)
    assert 1e-9 < np.abs(found - expected).max() / np.ptp(expected) < 1e-4


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
    with fmu_instance(export_fmu(model, tmp_path), tmp_path) as (slave, description):
        [inputs], [outputs] = (get_references(description, each) for each in ("input", "output"))
        for size in (0.05, 0.15, 0.0, -0.1, 0.101, float("nan"), float("inf")):
            with pytest.raises(FMICallException) as refused:
                slave.doStep(0.0, size)
            assert refused.value.status == ERROR
        assert "must be a multiple of the sampling interval 0.1, received 0.05" in capfd.readouterr().out
        found = []
        for k in range(3):  # four samples at once, the input held
            slave.setReal([inputs], [held[4 * k, 0]])
            slave.doStep(0.4 * k, 0.1 + 0.1 + 0.1 + 0.1 + 1e-12)
            found.append(slave.getReal([outputs]))
    np.testing.assert_allclose(found, simulate_mean(model, held)[3::4], **CLOSE)


def test_states_can_be_saved_serialised_and_restored(tmp_path):
    record, model = make_record(2, 2), fit_small("two layers", 2, 2)
    expected = simulate_mean(model, record.u)
    with fmu_instance(export_fmu(model, tmp_path), tmp_path) as (slave, description):
        inputs, outputs = (get_references(description, each) for each in ("input", "output"))

        def advance(rows):
            for k in rows:
                slave.setReal(inputs, record.u[k].tolist())
                slave.doStep(float(k), 1.0)
            return slave.getReal(outputs)

        advance(range(2))  # before the restart of a cold run, which the state must know of
        saved = slave.getFMUState()
        written = slave.serializeFMUState(saved)
        np.testing.assert_allclose(advance(range(2, 20)), expected[19], **CLOSE)
        slave.setFMUState(saved)
        np.testing.assert_allclose(advance(range(2, 30)), expected[29], **CLOSE)
        slave.freeFMUState(saved)
        again = slave.deserializeFMUState(written)
        slave.setFMUState(again)
        np.testing.assert_allclose(advance(range(2, 40)), expected[39], **CLOSE)
        for foreign in (written[:-1], bytes(len(written)), b""):
            with pytest.raises(FMICallException):
                slave.deserializeFMUState(foreign)
        slave.reset()
        slave.enterInitializationMode()
        slave.exitInitializationMode()
        np.testing.assert_allclose(advance(range(10)), expected[9], **CLOSE)


def test_calls_that_are_not_allowed(tmp_path, capfd):
    model = fit_small("two layers", 2, 2)
    with fmu_instance(export_fmu(model, tmp_path), tmp_path) as (slave, description):
        [output, *_], [state, *_], [start, *_] = (
            get_references(description, each) for each in ("output", "local", "parameter")
        )
        for call in (
            lambda: slave.setReal([output], [1.0]),
            lambda: slave.setReal([state], [1.0]),
            lambda: slave.setReal([start], [1.0]),  # after the initialisation
            lambda: slave.setReal([999], [1.0]),
            lambda: slave.setReal([0], [float("nan")]),
            lambda: slave.getReal([999]),
            lambda: slave.setBoolean([COLD_START], [True]),
            lambda: slave.getBoolean([1]),
            lambda: slave.getInteger([0]),
            lambda: slave.setInteger([0], [1]),
            lambda: slave.getString([0]),
            lambda: slave.setString([0], ["a"]),
            slave.enterInitializationMode,
            slave.cancelStep,
        ):
            with pytest.raises(FMICallException) as refused:
                call()
            assert refused.value.status == ERROR
        said = capfd.readouterr().out
        assert "is that of a start value, which is set before the first step" in said
        slave.doStep(3.0, 1.0)
        assert slave.getRealStatus(2) == 4.0 and not slave.getBooleanStatus(3)
        slave.terminate()
        with pytest.raises(FMICallException):
            slave.doStep(4.0, 1.0)


def test_a_run_that_diverges_is_an_error(tmp_path, capfd):
    y = 1.5 ** np.arange(12.0)
    model = revarb.ARX(lags=1).fit(revarb.Series(None, y))
    assert np.abs(model.poles[0]) > 1.2
    with fmu_instance(export_fmu(model, tmp_path), tmp_path, start=np.array([1.0])) as (slave, _), \
            pytest.raises(FMICallException):  # fmt: skip
        for k in range(10000):
            slave.doStep(float(k), 1.0)
    assert "the run diverged" in capfd.readouterr().out


@pytest.mark.parametrize("flags", [STRICT, SANITISED], ids=["strict", "sanitised"])
@pytest.mark.parametrize("precision", ["double", pytest.param("float", marks=pytest.mark.slow)])
def test_the_sources_inside_can_be_built_elsewhere(tmp_path, flags, precision):
    """Also under a prefix, for tools that link several FMUs into one program."""
    for number, model in enumerate((fit_mixed(), revarb.ARX(lags=2).fit(revarb.Series(None, np.sin(np.arange(40.0)))))):
        path, folder = export_fmu(model, tmp_path, precision=precision), tmp_path / str(number)
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        described = ElementTree.parse(folder / "modelDescription.xml").iter("File")
        listed = [folder / "sources" / file.attrib["name"] for file in described]
        assert len(listed) == 2 and all(file.exists() for file in listed)
        for more in ([], ["-DFMI2_FUNCTION_PREFIX=tank_"]):
            command = ["cc", *flags, "-fPIC", "-shared", *more, *listed, "-o", folder / "tank.so", "-lm"]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0 and done.stderr == "", done.stderr


def test_the_interface_under_the_sanitisers(tmp_path):
    """All memory is given back, too."""
    with zipfile.ZipFile(export_fmu(fit_mixed(), tmp_path)) as archive:
        archive.extractall(tmp_path)
    sources = tmp_path / "sources"
    shutil.copy(Path(__file__).with_name("fmu_driver.c"), sources)
    compile_c(sorted(sources.glob("*.c")), tmp_path / "driver", SANITISED)
    done = subprocess.run([tmp_path / "driver"], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_the_library_exports_the_functions_of_the_standard_only(tmp_path):
    with zipfile.ZipFile(export_fmu(fit_small("ARX"), tmp_path)) as archive:
        [library] = [name for name in archive.namelist() if name.startswith("binaries/")]
        archive.extract(library, tmp_path)
    listed = subprocess.run(["nm", "-D", "--defined-only", tmp_path / library], capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in listed.splitlines()]
    assert len(names) == 34 and all(name.startswith("fmi2") for name in names), names


def test_without_a_compiler(tmp_path, monkeypatch):
    model = fit_small("ARX")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="an FMU needs a C compiler, and none of cc, gcc, clang is installed"):
        model.export(tmp_path / "m.fmu")
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(InputError, match="CC=no-such-compiler is not installed; install one, or export to c"):
        model.export(tmp_path / "m.fmu")
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_that_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "cc --no-such-option")
    with pytest.raises(ComputationError, match=r"the C compiler cc failed with status 1: .*no-such-option"):
        fit_small("ARX").export(tmp_path / "m.fmu")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_the_compiler_runs_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(fmu, "compile_library", interrupt)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        fit_small("ARX").export(tmp_path / "m.fmu")
    assert list(tmp_path.iterdir()) == []
