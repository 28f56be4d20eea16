"""Atomic writes: a file is complete or not there."""

import json
import os
import time

import pytest

from revarb.errors import InputError
from revarb.runtime.files import write_atomic
from support.processes import run_python


def test_a_failed_write_leaves_the_old_file(monkeypatch, tmp_path):
    path = write_atomic(tmp_path / "m.rgp", b"complete")

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match="No space left on device"):
        write_atomic(path, b"half")
    assert path.read_bytes() == b"complete"
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
def test_a_writer_killed_at_any_moment_leaves_one_complete_model(tmp_path, record_property, kills):
    """SIGKILL while one of two models is written over the other, repeatedly: the file is one of them."""
    done = run_python("-m", "support.killed_writers", tmp_path, kills)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    record_property("fuzzed", f"killed writers of a model file: {counts}")
    assert counts["kills"] == counts["whole"] == kills
    assert counts["killed while writing"] > kills / 10  # otherwise no kill came during a write
