"""What C programs have beyond the other formats: single precision, identifiers, comments, header, static data."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import revarb
from revarb.errors import InputError
from revarb.export.c_text import check_name, find_units, make_identifiers, quote_comment
from support.c_programs import SANITISED, STRICT, build, compile_c, run_program
from support.export_formats import needs_compiler
from support.export_models import fit_mixed, fit_small, make_record, simulate_mean

pytestmark = needs_compiler

CLOSE = {"rtol": 1e-9, "atol": 1e-9}  # outputs are of the order of 100


@pytest.mark.parametrize("name", ["two layers", "linear part, dead time", "MLP-NARX", "ensemble"])
def test_single_precision(tmp_path, name):
    record = make_record()
    model = fit_mixed() if name == "ensemble" else fit_small(name)
    source = model.export(tmp_path / "model.c", precision="float")[1]
    found, _ = run_program(build(source, (*STRICT, "-Wdouble-promotion", "-Wconversion")), record.u, 1)
    expected = simulate_mean(model, record.u)
    assert 1e-9 < np.abs(found - expected).max() / np.ptp(expected) < 1e-4  # the promise is 1e-3
    assert "double" not in source.read_text()


def test_columns_with_hostile_names(tmp_path):
    record = make_record(6, 3)
    inputs = ('a "quoted" */ name', "int", "a quoted name", "Düse [°C]", "温度", "tab\there\nand ??/ \u202e \\")
    outputs = ("1st out/* put", "double", "Double")
    model = revarb.ARX(lags=1, input_lags=1).fit(revarb.Series(record.u, record.y, 0.02, inputs, outputs))
    header, source = model.export(tmp_path / "9 lives-of a.cat.c", units={"int": "%"})
    found, _ = run_program(build(source, SANITISED), record.u, 3)
    np.testing.assert_allclose(found, simulate_mean(model, record.u), **CLOSE)
    text = header.read_text()
    for place in ("IN_A_QUOTED_NAME = 0", "IN_INT = 1", "IN_A_QUOTED_NAME_2 = 2", "IN_DUSE_C = 3", "IN_COLUMN_5 = 4",
                  "OUT_1ST_OUT_PUT = 0", "OUT_DOUBLE = 1", "OUT_DOUBLE_2 = 2"):  # fmt: skip
        assert f"    MODEL_9_LIVES_OF_A_CAT_{place}" in text, place
    assert '"Düse [°C]", unit "°C"' in text and '"温度"' in text and ' = 1, /* "int", unit "%" */' in text
    assert "#define MODEL_9_LIVES_OF_A_CAT_DT 0.02 " in text and "Sampling interval: 0.02." in text


def test_header_and_source_of_different_exports_do_not_compile(tmp_path):
    _, source = fit_small("ARX").export(tmp_path / "m.c")
    before = source.read_bytes()
    fit_small("MLP-NARX").export(tmp_path / "m.c")
    source.write_bytes(before)
    with pytest.raises(AssertionError, match="the header is of another export"):
        compile_c(["-c", source], tmp_path / "m.o", STRICT)


def test_a_program_keeps_what_it_changes_in_the_state(tmp_path):
    """No variable of the program but constants: the object file has nothing in its data and bss sections."""
    source = fit_mixed().export(tmp_path / "model.c")[1]
    compile_c(["-c", source], tmp_path / "model.o", STRICT)
    symbols = subprocess.run(["nm", tmp_path / "model.o"], capture_output=True, text=True, check=True).stdout
    kinds = {line.split()[-2] for line in symbols.splitlines()}
    assert kinds <= {"T", "t", "r", "U"}, symbols
    assert {line.split()[-1] for line in symbols.splitlines() if line.split()[-2] == "U"} <= {"exp", "__stack_chk_fail"}


def test_a_number_that_a_float_cannot_hold_is_refused(tmp_path):
    record = make_record()
    model = revarb.ARX(lags=1, input_lags=1).fit(revarb.Series(1e50 * record.u, record.y))
    with pytest.raises(InputError, match="which a float cannot hold; export it as double"):
        model.export(tmp_path / "m.c", precision="float")
    found, _ = run_program(build(model.export(tmp_path / "m.c")[1]), 1e50 * record.u, 1)
    np.testing.assert_allclose(found, simulate_mean(model, 1e50 * record.u), **CLOSE)


def test_identifiers_are_valid_and_differ():
    names = ["int", "Int", "in t", "", "***", "naïve", "x" * 90, "x" * 91, "A_2", "a", "A", "µ", "°C", "_lead", "\x00"]
    made = make_identifiers(names)
    assert len(set(made)) == len(names)
    assert all(re.fullmatch("[A-Z0-9][A-Z0-9_]*", each) for each in made), made
    assert made[:5] == ("INT", "INT_2", "IN_T", "COLUMN_4", "COLUMN_5")
    assert made[8:11] == ("A_2", "A", "A_3")  # the second a may not become the first name
    assert max(map(len, made)) <= 43


@pytest.mark.parametrize(
    ("file", "name"),
    [("tank.c", "tank"), ("My Tank-2.c", "My_Tank_2"), ("2.c", "model_2"), ("温.c", "model"), ("_x.c", "x")],
)
def test_the_name_of_a_program_from_that_of_its_file(file, name):
    assert check_name(None, Path(file)) == name


@pytest.mark.parametrize(
    "text", ["*/", "/*", "**//", "*/*/", "/**/", "??/", "????", "a\\\nb", "\u202e", "\ud800", "/*/"]
)
def test_a_comment_stays_a_comment(text):
    quoted = quote_comment(text)
    assert "*/" not in quoted and "/*" not in quoted and "??" not in quoted and quoted.isprintable()
    quoted.encode()  # a lone surrogate could not be written


def test_units_are_given_or_in_brackets():
    assert find_units(["level [cm]", "T[°C] ", "[m]", "flow", "a []"], None) == {"level [cm]": "cm", "T[°C] ": "°C"}
    given = {"level [cm]": "m", "flow": " l/s "}
    assert find_units(["level [cm]", "flow"], given) == {"level [cm]": "m", "flow": "l/s"}
