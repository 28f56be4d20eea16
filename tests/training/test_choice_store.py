"""Finished fits of an unfinished choice, on disk."""

import os
import time

import numpy as np
import pytest

from fuzz import samples
from revarb.optim.journal import MAX_AGE_DAYS, keep_journals
from revarb.training.choice_store import ChoiceStore


@pytest.fixture
def models():
    return [samples.model(0), samples.model(1)]


@pytest.fixture
def store(unfinished):
    """As after a call with `resume` that found something, but empty."""
    return ChoiceStore(unfinished, "abc", resume=True)


def list_names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_what_is_written_is_read(store, models, unfinished):
    assert store.read("fixed-10.0") is None
    store.write("fixed-10.0", models, 2.5)
    assert list_names(unfinished) == ["abc.fixed-10.0.0.rgp", "abc.fixed-10.0.1.rgp", "abc.fixed-10.0.json"]
    read, seconds = store.read("fixed-10.0")
    assert seconds == 2.5 and [model.bound for model in read] == [model.bound for model in models]
    np.testing.assert_array_equal(read[1].simulate(samples.U).mean, models[1].simulate(samples.U).mean)
    assert store.read("fixed-10.1") is None


def test_only_a_resumed_choice_reads_what_another_has_left(store, models, unfinished):
    store.write("a.0", models, 1.0)
    assert ChoiceStore.open("abc", resume=True).read("a.0") is not None
    other = ChoiceStore.open("abd", resume=False)
    other.write("a.0", models[:1], 1.0)
    with pytest.warns(UserWarning, match=r"an unfinished choice like this one exists; resume=True \(--resume\)"):
        assert ChoiceStore.open("abc", resume=False).read("a.0") is None
    assert list_names(unfinished) == ["abd.a.0.0.rgp", "abd.a.0.json"]
    with pytest.warns(UserWarning, match="there is no unfinished choice like this one to resume: it starts from"):
        ChoiceStore.open("abc", resume=True)


def test_without_resume_nothing_is_read_not_even_its_own(models, unfinished):
    """Every path is made once in a call; what a second call inside of `keep_journals` finds is not its own."""
    store = ChoiceStore.open("abc", resume=False)
    store.write("a.0", models, 1.0)
    assert store.read("a.0") is None
    assert ChoiceStore.open("abc", resume=True).read("a.0") is not None


def test_old_entries_go_at_once_and_those_of_an_interrupted_second_call_stay(store, models, unfinished):
    """`open` must not leave the removal to the end of `keep_journals`: that would remove what came after it."""
    store.write("a.0", models, 1.0)
    with keep_journals():
        with pytest.warns(UserWarning, match="an unfinished choice like this one exists"):
            second = ChoiceStore.open("abc", resume=False)
        assert list_names(unfinished) == []
        second.write("a.0", models[1:], 2.0)  # interrupted afterwards: not discarded
    read, seconds = ChoiceStore.open("abc", resume=True).read("a.0")
    assert seconds == 2.0 and [model.bound for model in read] == [models[1].bound]


def test_a_resumed_call_that_is_interrupted_again_keeps_its_entries(store, models, unfinished):
    store.write("a.0", models, 1.0)
    with keep_journals():
        resumed = ChoiceStore.open("abc", resume=True)
        assert resumed.read("a.0") is not None
        resumed.write("a.1", models, 2.0)
    again = ChoiceStore.open("abc", resume=True)
    assert again.read("a.0") is not None and again.read("a.1")[1] == 2.0


def test_discarded_entries_are_gone_at_the_end_of_keep_journals(store, models, unfinished):
    store.write("a.0", models, 1.0)
    with keep_journals():
        store.discard()
        assert store.read("a.0") is not None
    assert list_names(unfinished) == []
    store.write("a.0", models, 1.0)
    store.discard()
    assert store.read("a.0") is None


ENTRIES = ["", "{", "[]", "3", '{"models": 2}', '{"models": "2", "seconds": 1}', '{"models": 2, "seconds": []}',
           '{"models": 3, "seconds": 1}', '{"seconds": 1}', "null", '{"models": null, "seconds": 1}']  # fmt: skip


@pytest.mark.parametrize("content", ENTRIES)
def test_a_damaged_entry_is_ignored(store, models, content):
    store.write("a.0", models, 1.0)
    (store.folder / "abc.a.0.json").write_text(content)
    assert store.read("a.0") is None


def test_a_damaged_model_is_ignored_and_written_again(store, models):
    store.write("a.0", models, 1.0)
    path = store.folder / "abc.a.0.1.rgp"
    path.write_bytes(path.read_bytes()[:-7])
    assert store.read("a.0") is None
    path.unlink()
    assert store.read("a.0") is None
    store.write("a.0", models, 1.0)
    assert store.read("a.0") is not None


def test_a_folder_that_cannot_be_written_to_is_ignored(store, models):
    store.folder.parent.mkdir(parents=True)
    store.folder.write_text("a file where the folder should be")
    store.write("a.0", models, 1.0)
    assert store.read("a.0") is None
    store.discard()
    assert ChoiceStore.open("abc", resume=False).read("a.0") is None


def test_old_entries_are_removed(store, models, unfinished):
    store.write("a.0", models[:1], 1.0)
    old = time.time() - (MAX_AGE_DAYS + 1.0) * 86400.0
    for path in unfinished.iterdir():
        os.utime(path, (old, old))
    ChoiceStore.open("other", resume=False)
    assert list_names(unfinished) == []
