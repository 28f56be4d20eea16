"""Atomic writes: a file is complete or not there."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from revarb.errors import InputError
from revarb.runtime.files import write_atomic


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch, tmp_path):
    before = saved.read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(InputError, match="No space left on device"):
        write_atomic(saved, b"half")
    assert saved.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m.rgp"]


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="does not exist; create it first"):
        write_atomic(tmp_path / "no" / "m.rgp", b"")
    with pytest.raises(InputError, match="it is a folder"):
        write_atomic(tmp_path, b"")


def test_what_killed_writers_left_behind_is_removed(tmp_path):
    old, fresh = tmp_path / ".revarb-old.part", tmp_path / ".revarb-fresh.part"
    for path in (old, fresh):
        path.write_bytes(b"half")
    then = time.time() - 7200
    os.utime(old, (then, then))
    write_atomic(tmp_path / "m.rgp", b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [fresh.name, "m.rgp"]


@pytest.mark.parametrize("kills", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_writer_killed_at_any_moment_leaves_one_whole_model(tmp_path, record_property, kills):
    """SIGKILL while one of two models is written over the other, again and again: the file is one of them."""
    program = [sys.executable, str(Path(__file__).with_name("kill_writers.py")), str(tmp_path), str(kills)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    record_property("fuzzed", f"killed writers of a model file: {counts}")
    assert counts["kills"] == counts["whole"] == kills
    assert counts["killed while writing"] > kills / 10  # or the moments were not well chosen
