"""Resumed fits after a kill or a damaged journal have the numbers of an uninterrupted fit."""

import itertools
import os
import signal
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import revarb
from revarb.errors import InputError
from revarb.runtime import journal
from revarb.runtime import unfinished as store
from revarb.runtime.journal import Journal
from revarb.runtime.unfinished import Checkpoint
from support import journals, small
from support.journals import assert_same, count_evaluations, entry_ends, kill_fit

SPEC = small.spec()


@pytest.fixture
def finished(unfinished, at_once):
    """A fit that was not interrupted, and the path and content of its journal."""
    return journals.fit_with_journal(unfinished, SPEC)


def resume(spec=SPEC, **arguments):
    return spec.fit(small.record(), resume=True, **arguments)


def test_a_journal_cut_anywhere_gives_the_same_numbers(unfinished, at_once):
    spec = small.spec(recipe=journals.TWO_STAGES)
    plain = spec.fit(small.record())
    model, path, content = journals.fit_with_journal(unfinished, spec)
    assert_same(model, plain)
    ends = entry_ends(content)
    assert {step.stage for step in model.history} == {1, 2} and len(ends) > 15
    cuts = [(whole, ends[whole] + more) for whole in range(0, len(ends), 3) for more in (0, 20, 300)]
    for whole, cut in [*cuts, (len(ends) - 1, len(content)), (len(ends) - 2, len(content) - 1)]:
        path.write_bytes(content[:cut])
        with count_evaluations() as seen:
            again = resume(spec)
        assert_same(again, model)
        assert len(seen) == len(ends) - 1 - min(whole, len(ends) - 1)
        assert not path.exists()


@pytest.mark.slow
def test_a_fit_killed_during_calibration_can_be_resumed(unfinished, at_once):
    spec = small.spec(hidden=1, calibrate=True, recipe=journals.TWO_STAGES)
    record = small.record(samples=130)
    with count_evaluations() as seen:
        plain = spec.fit(record)
    whole = len(seen)
    for evaluation in (whole // 4, whole - 2):  # in the first fold, or near it, and in the last
        with count_evaluations(kill_at=evaluation), pytest.raises(journals.Killed):
            spec.fit(record)
        with count_evaluations() as seen:
            again = spec.fit(record, resume=True)
        assert len(seen) == whole - evaluation + 1
        assert_same(again, plain)
        assert again.calibration == plain.calibration is not None


def test_a_fit_can_be_resumed_after_two_kills_and_after_ctrl_c(finished):
    model, path, content = finished
    kill_fit(SPEC, 4)
    assert len(entry_ends(path.read_bytes())) == 1 + 3
    with path.open("ab") as file:
        file.write(content[: len(content) // 3])  # reads as a half-written entry
    kill_fit(SPEC, 5, resume=True)
    assert path.read_bytes() == content[: entry_ends(content)[3 + 4]]
    assert_same(resume(), model)
    with count_evaluations(press_at=9):
        stopped = SPEC.fit(small.record())
    assert stopped.status == "interrupted" and path.exists()
    assert_same(resume(), model)


@pytest.mark.parametrize("where", [0.0, 0.01, 0.3, 0.31, 0.6, 0.999, "length"])
def test_entries_after_a_damaged_byte_or_an_impossible_length_are_ignored(finished, where):
    model, path, content = finished
    ends, damaged = entry_ends(content), bytearray(content)
    place = ends[2] if where == "length" else int(where * len(content))
    damage = b"\xff" * 8 if where == "length" else bytes([content[place] ^ 64])
    damaged[place : place + len(damage)] = damage
    path.write_bytes(damaged)
    with count_evaluations() as seen:
        assert_same(resume(), model)
    assert len(seen) == len(ends) - max(sum(end <= place for end in ends), 1)  # those before the damaged one count


def test_a_journal_belongs_to_one_fit(unfinished, at_once, recwarn):
    record = small.record()
    kill_fit(SPEC, 9)
    [path] = unfinished.iterdir()
    other = revarb.Series(record.u, record.y + 1e-9)
    rougher = small.spec(recipe=replace(small.QUICK, ftol=1e-8))
    for spec, data, seed in ((SPEC, record, 1), (SPEC, other, 0), (rougher, record, 0)):
        with pytest.warns(UserWarning, match="no unfinished fit like this one to resume: it starts from the beginning"):
            spec.fit(data, seed=seed, resume=True)
    assert [*unfinished.iterdir()] == [path]
    kill_fit(SPEC, 9, seed=1)
    [other] = [each for each in unfinished.iterdir() if each != path]
    other.rename(path)  # under a wrong name it is not used, without a warning
    recwarn.clear()
    with count_evaluations() as seen:
        resumed = resume()
    assert len(seen) > 9 and not recwarn
    assert_same(resumed, SPEC.fit(record))


def test_answers_of_another_rounding_are_dropped_with_one_warning(finished):
    model, path, content = finished
    ends = entry_ends(content)
    path.write_bytes(content)
    with path.open("rb") as file:
        file.seek(ends[3])
        entry = journal._read_entry(file)
    bound, gradient = entry.results
    forged = journal._pack(entry.name, entry.digest, [bound, gradient * (1 + 1e-9)])
    path.write_bytes(content[: ends[3]] + forged + content[ends[4] :])
    with count_evaluations() as seen, pytest.warns(UserWarning, match="rounded differently") as said:
        resumed = resume()
    assert len(said) == 1 and len(seen) > 5
    assert resumed.bound == pytest.approx(model.bound, rel=1e-3) and resumed.bound != model.bound


def test_the_first_minute_leaves_no_trace(unfinished, monkeypatch):
    kill_fit(SPEC, 12)
    assert not unfinished.exists()
    monkeypatch.setattr(journal, "MAX_BUFFER_BYTES", 20_000)  # but the buffer in memory is limited
    kill_fit(SPEC, 12)
    [path] = unfinished.iterdir()
    assert path.stat().st_size > 20_000 and len(entry_ends(path.read_bytes())) == 12


def test_a_fit_warns_that_an_earlier_one_can_be_resumed(unfinished, at_once, monkeypatch):
    kill_fit(SPEC, 9)
    [path] = unfinished.iterdir()
    before = path.read_bytes()
    monkeypatch.setattr(store, "DELAY_SECONDS", 60.0)
    with pytest.warns(UserWarning, match="an unfinished fit like this one exists; resume=True"):
        kill_fit(SPEC, 3)
    assert path.read_bytes() == before  # after a minute it would be overwritten by the new fit
    with pytest.warns(UserWarning, match="an unfinished fit"):
        SPEC.fit(small.record())
    assert not path.exists()


def test_a_journal_that_is_full_or_cannot_be_written_does_no_harm(finished, monkeypatch):
    model, path, content = finished
    with monkeypatch.context() as patch:
        patch.setattr(journal, "MAX_BYTES", len(content) // 2)
        kill_fit(SPEC, 14)
        assert path.stat().st_size <= len(content) // 2
        assert_same(resume(), model)

    def full(path, content):
        raise InputError("no space left")

    monkeypatch.setattr(journal, "write_atomic", full)
    assert_same(SPEC.fit(small.record()), model)
    monkeypatch.setattr(store, "user_cache_path", lambda name: Path(__file__) / name)
    assert_same(SPEC.fit(small.record()), model)


@pytest.mark.slow
def test_networks_resume_at_any_evaluation(unfinished, at_once):
    spec = small.spec(recognition=journals.NETWORKS)
    model, path, content = journals.fit_with_journal(unfinished, spec)
    parts = [(name, len([*same])) for name, same in itertools.groupby(journals.entry_names(content))]
    assert parts[:3] == [(journal.FORMAT, 1), ("output error", 2), ("rounds of Adam", 5)] and parts[3][0] == "fit"
    for end in entry_ends(content)[::4]:
        path.write_bytes(content[: end - 7])
        assert_same(resume(spec), model)


@pytest.mark.slow
def test_ctrl_c_during_adam_is_resumed_without_a_warning(unfinished, at_once, recwarn):
    """After an interrupt the fit ends at once and journals that too; a resumed fit must not use that entry."""
    spec = small.spec(recognition=journals.NETWORKS)
    model, path, _ = journals.fit_with_journal(unfinished, spec)
    real, calls = Journal._replay_or_compute, itertools.count()

    def pressed(self, name, question, compute):
        if name == "rounds of Adam" and next(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, name, question, compute)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "_replay_or_compute", pressed)
        assert spec.fit(small.record()).status == "interrupted"
    assert "fit" in journals.entry_names(path.read_bytes())
    assert_same(resume(spec), model)
    assert not [each for each in recwarn if "unfinished" in str(each.message)]


def test_restarts_that_had_finished_are_replayed(unfinished, at_once):
    members, counts = [], []
    for seed in range(3):
        with count_evaluations() as seen:
            members.append(SPEC.fit(small.record(), seed=seed))
        counts.append(len(seen))
    kill_fit(SPEC, counts[0] + 5, restarts=3)
    assert len([*unfinished.iterdir()]) == 2
    with count_evaluations() as rest:
        resumed = resume(restarts=3)
    for ours, theirs in zip(*(sorted(each, key=lambda m: m.bound) for each in (resumed.members, members)), strict=True):
        assert_same(ours, theirs)
    assert len(rest) == counts[1] - 4 + counts[2]
    assert not [*unfinished.iterdir()]


def test_a_tree_comes_back_in_its_form_and_types(tmp_path):
    def advance(tree):
        calls.append(tree)
        return {"x": tree["x"] * 2.5, "count": (tree["count"] + np.int32(1),)}

    calls, tree = [], {"x": np.array(0.1), "count": (np.array(7, dtype=np.int32),)}
    place = Checkpoint(tmp_path / "one.journal", resume=False, write_after=0.0)
    with Journal(place) as first:
        answer = first.wrap_function("s", advance)(tree)
    with Journal(place._replace(resume=True)) as second:
        again = second.wrap_function("s", advance)(tree)
    assert len(calls) == 1 and jax.tree.structure(again) == jax.tree.structure(answer)
    assert again["x"] == 0.25 and again["count"][0] == 8 and again["count"][0].dtype == np.int32
    with Journal() as nowhere:  # without a checkpoint functions stay as they are
        assert nowhere.wrap_objective("a", advance) is nowhere.wrap_function("a", advance) is advance
