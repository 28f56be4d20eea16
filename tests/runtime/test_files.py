"""Atomic writes: a file is complete or not there."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from revarb.errors import InputError
from revarb.runtime.files import check_writable, make_folder, write_atomic
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


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("no/m.rgp", "does not exist; create it first"),
        ("", "it is a folder"),
        ("circle", "cannot write"),
        ("m" * 300, "File name too long"),
        ("/dev/no-such-device", "it is no pipe or device that may be written to"),
    ],
)
def test_places_that_cannot_be_written(tmp_path, place, message):
    (tmp_path / "circle").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "circle")
    for refuse in (check_writable, lambda path: write_atomic(path, b"")):
        with pytest.raises(InputError, match=message):
            refuse(tmp_path / place)


@pytest.fixture
def small_files():
    """No file of this process can have more than 1000 bytes, as on a disk that is nearly full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_seen_before_the_work(tmp_path, small_files):
    with pytest.raises(InputError, match=r"no file can be written in .*: File too large; choose another folder"):
        check_writable(tmp_path / "m.rgp")
    assert not list(tmp_path.iterdir())


def test_a_check_leaves_the_folder_as_it_was(tmp_path):
    (tmp_path / "m.rgp").write_bytes(b"old")
    assert check_writable(tmp_path / "m.rgp") == tmp_path / "m.rgp"
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_a_folder_is_made_and_a_file_in_its_place_is_refused(tmp_path):
    assert make_folder(tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match=r"cannot create the folder .*file"):
        make_folder(tmp_path / "file")


def test_what_killed_writers_left_behind_is_removed(tmp_path):
    old, fresh = tmp_path / ".revarb-old.part", tmp_path / ".revarb-fresh.part"
    for path in (old, fresh):
        path.write_bytes(b"half")
    then = time.time() - 7200
    os.utime(old, (then, then))
    write_atomic(tmp_path / "m.rgp", b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [fresh.name, "m.rgp"]


def test_a_writer_killed_at_any_moment_leaves_a_complete_file(tmp_path):
    """SIGKILL while one of two contents is written over the other, repeatedly."""
    done = run_python("-m", "support.killed_writers", tmp_path / "m.rgp", 40)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 4  # temporary files: otherwise no kill came during a write


def test_a_link_stays_and_its_target_is_written(tmp_path):
    target, link = tmp_path / "models" / "m.rgp", tmp_path / "latest.rgp"
    target.parent.mkdir()
    link.symlink_to(target)
    for content in (b"old", b"new"):
        write_atomic(link, content)
        assert link.is_symlink() and target.read_bytes() == content


def test_devices_and_the_standard_output_are_not_replaced(tmp_path):
    assert write_atomic("/dev/null", b"complete").is_char_device()
    code = "from revarb.runtime.files import write_atomic as w; print('before', flush=True); w('/dev/stdout', b'in')"
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_bytes() == b"before\nin"


def test_files_in_shared_memory_are_files():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for content in (b"old", b"new"):
            assert write_atomic(Path(folder) / "m.rgp", content).read_bytes() == content
