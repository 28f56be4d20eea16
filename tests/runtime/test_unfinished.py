"""The store of unfinished work: finished parts of an earlier call, old files, several hosts."""

import os
import time
from functools import partial
from pathlib import Path

import jax
import pytest

from revarb.errors import InputError
from revarb.runtime import unfinished as store
from revarb.runtime.unfinished import UnfinishedParts, keep_journals, make_checkpoints

open_parts = partial(UnfinishedParts.open, "choice", ["a.*"])


def write_parts(*texts):
    parts = open_parts(resume=False)
    for number, text in enumerate(texts):
        parts.write(f"a.{number}", lambda path, text=text: path.write_text(text))
    return parts


def test_parts_are_read_by_a_call_that_resumes_and_by_no_other(unfinished):
    assert write_parts("one", "two").read("a.0", Path.read_text) is None
    (unfinished / "b.0").write_text("of other work")
    parts = open_parts(resume=True)
    assert parts.read("a.1", Path.read_text) == "two"
    assert parts.read("a.2", Path.read_text) is None  # missing
    assert parts.read("a.0", lambda path: int(path.read_text())) is None  # damaged
    with pytest.warns(UserWarning, match="an unfinished choice like this one exists; resume=True"):
        open_parts(resume=False)
    assert [path.name for path in unfinished.iterdir()] == ["b.0"]
    with pytest.warns(UserWarning, match="there is no unfinished choice like this one to resume"):
        open_parts(resume=True)


def test_parts_are_kept_until_the_results_are_saved(unfinished):
    parts = write_parts("one")
    with pytest.raises(InputError), keep_journals():
        parts.discard()
        raise InputError("cannot write the result")
    assert len([*unfinished.iterdir()]) == 1
    with keep_journals():
        parts.discard()
        assert len([*unfinished.iterdir()]) == 1
    assert not [*unfinished.iterdir()]


def test_a_folder_that_cannot_be_written_to_does_no_harm(monkeypatch):
    monkeypatch.setattr(store, "user_cache_path", lambda name: Path(__file__) / name)
    parts = write_parts("one")
    assert parts.read("a.0", Path.read_text) is None
    parts.discard()


def test_old_files_are_removed(unfinished):
    unfinished.mkdir(parents=True)
    for name, days in (("old", 31), ("new", 29)):
        (unfinished / f"{name}.journal").write_bytes(b"")
        then = time.time() - 86400 * days
        os.utime(unfinished / f"{name}.journal", (then, then))
    make_checkpoints(["another"], resume=False)
    assert [path.name for path in unfinished.iterdir()] == ["new.journal"]


def test_several_hosts_keep_no_journal(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert make_checkpoints(["one", "two"], resume=True) == [None, None]
