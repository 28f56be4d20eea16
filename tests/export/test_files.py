"""The files of an export: chosen by ending or name, and written together or not at all."""

import os
import signal
import sys

import pytest

from revarb.errors import InputError
from revarb.export import exportable
from support.export_models import fit_small


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_ending_or_the_name_chooses_the_format(tmp_path):
    model = fit_small("ARX")
    assert [path.name for path in model.export(tmp_path / "m.c")] == ["m.h", "m.c"]
    assert model.export(str(tmp_path / "m.onnx")) == (tmp_path / "m.onnx",)
    assert model.export(tmp_path / "m.CASADI") == (tmp_path / "m.CASADI",)
    assert model.export(tmp_path / "m.bin", "onnx") == (tmp_path / "m.bin",)
    assert (tmp_path / "m.bin").read_bytes() == (tmp_path / "m.onnx").read_bytes()
    assert list_names(tmp_path) == ["m.CASADI", "m.bin", "m.c", "m.h", "m.onnx"]


@pytest.mark.parametrize(("library", "what"), [("casadi", "a CasADi function"), ("onnx", "an ONNX file")])
def test_without_an_optional_library(library, what, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"revarb.export.{library}", raising=False)
    with pytest.raises(InputError, match=rf'{what} needs {library}; pip install "revarb\[{library}\]"'):
        fit_small("ARX").export(tmp_path / f"m.{library}")


def test_a_header_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    (tmp_path / "m.h").mkdir()
    with pytest.raises(InputError, match=r"m\.h: it is a folder"):
        fit_small("ARX").export(tmp_path / "m.c")
    assert list_names(tmp_path) == ["m.h"]


@pytest.fixture
def before_each_file(monkeypatch):
    """Add an action before every file that is written."""
    write = exportable.write_atomic

    def add(act):
        monkeypatch.setattr(exportable, "write_atomic", lambda path, content: (act(path), write(path, content))[1])

    return add


@pytest.mark.parametrize("before", [None, b"an older header"])
def test_a_source_that_cannot_be_written_leaves_the_header_of_before(tmp_path, before_each_file, before):
    header = tmp_path / "m.h"
    if before is not None:
        header.write_bytes(before)

    def fail_at_source(path):
        if path.suffix == ".c":
            raise InputError("cannot write: no space left")

    before_each_file(fail_at_source)
    with pytest.raises(InputError, match="no space left"):
        fit_small("ARX").export(tmp_path / "m.c")
    assert list_names(tmp_path) == ([] if before is None else ["m.h"])
    assert before is None or header.read_bytes() == before


def test_ctrl_c_between_the_two_files_waits_until_both_are_written(tmp_path, before_each_file):
    before_each_file(lambda path: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        fit_small("ARX").export(tmp_path / "m.c")
    assert list_names(tmp_path) == ["m.c", "m.h"]
