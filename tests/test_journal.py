"""Killed, cut, damaged: a resumed fit has the numbers of one that was left alone."""

import itertools
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import revarb
import small
from revarb import cli
from revarb.config.recipe import R0_FREE, Recipe, Stage
from revarb.config.recognition import Recognition
from revarb.data.tables.writing import write_table
from revarb.errors import InputError
from revarb.optim import journal
from revarb.optim.journal import Checkpoint, Journal, keep_journals, make_checkpoints

TWO_STAGES = Recipe(stages=(Stage(R0_FREE, 6), Stage(R0_FREE, 8)))
NETWORKS = Recognition(hidden=(6,), start_steps=100, rounds=(50, 50))  # that of test_recognition: compiled once


@pytest.fixture
def at_once(monkeypatch):
    """Journals are begun without waiting a minute."""
    monkeypatch.setattr(journal, "QUIET_SECONDS", 0.0)


class Killed(BaseException):
    """As sudden as SIGKILL, but this process survives it."""


@contextmanager
def evaluations(kill_at=None):
    """Count the evaluations of the bound in a list; at one of them the process "dies"."""
    real, seen = revarb.training.objective.bound_and_gradient, []

    def counted(*args, **kwargs):
        seen.append(time.time())
        if len(seen) == kill_at:
            raise Killed
        return real(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("revarb.training.objective.bound_and_gradient", counted)
        yield seen


def kill(spec, evaluation, **arguments):
    with evaluations(kill_at=evaluation), pytest.raises(Killed):
        spec.fit(small.record(), **arguments)


def noted(folder, spec, **arguments):
    """An uninterrupted fit, its journal's path and content."""
    with keep_journals():
        model = spec.fit(small.record(), **arguments)
        [path] = folder.iterdir()
        content = path.read_bytes()
    assert not path.exists()
    return model, path, content


def seams(content):
    """Where entries end."""
    ends, end = [], 0
    while end < len(content):
        end += 40 + int.from_bytes(content[end : end + 8], "little")
        ends.append(end)
    assert ends[-1] == len(content)
    return ends


def names(content):
    begins = [0, *seams(content)[:-1]]
    return [content[begin + 40 :].split(b"\n", 1)[0].decode() for begin in begins]


def assert_same(model, other):
    for ours, theirs in zip(jax.tree.leaves(model.trained), jax.tree.leaves(other.trained), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (model.bound, model.status, model.history) == (other.bound, other.status, other.history)


def test_wherever_it_is_cut_the_numbers_are_the_same(unfinished, at_once):
    spec = small.spec(recipe=TWO_STAGES)
    plain = spec.fit(small.record())
    model, path, content = noted(unfinished, spec)
    assert_same(model, plain)
    ends = seams(content)
    assert {step.stage for step in model.history} == {1, 2} and len(ends) > 15
    cuts = [(whole, ends[whole] + more) for whole in range(0, len(ends), 3) for more in (0, 20, 300)]
    for whole, cut in [*cuts, (len(ends) - 1, len(content)), (len(ends) - 2, len(content) - 1)]:
        path.write_bytes(content[:cut])
        with evaluations() as seen:
            again = spec.fit(small.record(), resume=True)
        assert_same(again, model)
        assert len(seen) == len(ends) - 1 - min(whole, len(ends) - 1)
        assert not path.exists()


@pytest.mark.slow
def test_a_fit_that_was_killed_while_it_was_calibrated_goes_on(unfinished, at_once):
    spec = small.spec(hidden=1, calibrate=True, recipe=TWO_STAGES)
    record = small.record(samples=130)
    plain = spec.fit(record)
    with evaluations() as seen:
        spec.fit(record)
    whole = len(seen)
    for evaluation in (whole // 4, whole - 2):  # in the first fold, or near it, and in the last
        with evaluations(kill_at=evaluation), pytest.raises(Killed):
            spec.fit(record)
        with evaluations() as seen:
            again = spec.fit(record, resume=True)
        assert len(seen) == whole - evaluation + 1
        assert_same(again, plain)
        assert again.calibration == plain.calibration is not None


def test_a_resumed_fit_can_be_killed_and_resumed_again(unfinished, at_once):
    spec = small.spec(recipe=TWO_STAGES)
    model, path, content = noted(unfinished, spec)
    kill(spec, 4)
    assert len(seams(path.read_bytes())) == 1 + 3
    with path.open("ab") as file:
        file.write(content[: len(content) // 3])  # a half entry, as far as anybody can tell
    kill(spec, 5, resume=True)
    assert path.read_bytes() == content[: seams(content)[3 + 4]]
    assert_same(spec.fit(small.record(), resume=True), model)


@pytest.mark.parametrize("where", [0.0, 0.01, 0.3, 0.31, 0.6, 0.999])
def test_from_a_damaged_byte_on_nothing_is_believed(unfinished, at_once, where):
    spec = small.spec()
    model, path, content = noted(unfinished, spec)
    damaged = bytearray(content)
    damaged[int(where * len(content))] ^= 64
    path.write_bytes(damaged)
    with evaluations() as seen:
        assert_same(spec.fit(small.record(), resume=True), model)
    hit = sum(end <= where * len(content) for end in seams(content))  # entries before the damaged one
    assert len(seen) == len(seams(content)) - max(hit, 1)


def test_a_length_beyond_all_memory_is_no_length(unfinished, at_once):
    spec = small.spec()
    model, path, content = noted(unfinished, spec)
    third = seams(content)[2]
    path.write_bytes(content[:third] + b"\xff" * 8 + content[third + 8 :])
    assert_same(spec.fit(small.record(), resume=True), model)


def test_a_journal_belongs_to_one_fit(unfinished, at_once):
    spec, record = small.spec(), small.record()
    kill(spec, 9)
    [path] = unfinished.iterdir()
    other = revarb.Series(record.u, record.y + 1e-9)
    for change in (
        lambda: spec.fit(record, seed=1, resume=True),
        lambda: spec.fit(other, resume=True),
        lambda: small.spec(recipe=replace(small.QUICK, ftol=1e-8)).fit(record, resume=True),
    ):
        with pytest.warns(UserWarning, match="no unfinished fit like this one to resume: it starts from the beginning"):
            change()
    assert [*unfinished.iterdir()] == [path]


def test_a_journal_under_a_wrong_name_is_not_used(unfinished, at_once, recwarn):
    spec = small.spec()
    _, path, _ = noted(unfinished, spec)
    kill(spec, 9, seed=1)
    [other] = unfinished.iterdir()
    other.rename(path)
    with evaluations() as seen:
        resumed = spec.fit(small.record(), resume=True)
    assert_same(resumed, spec.fit(small.record()))
    assert len(seen) > 9 and not recwarn  # it is not even asked


def test_answers_of_another_rounding_are_dropped_with_one_warning(unfinished, at_once):
    spec = small.spec()
    model, path, content = noted(unfinished, spec)
    ends = seams(content)
    entry = journal._read(_file(path.parent, content[ends[3] : ends[4]]))
    bound, gradient = entry.answer
    forged = journal._packed(entry.name, entry.asked, [bound, gradient * (1 + 1e-9)])
    path.write_bytes(content[: ends[3]] + forged + content[ends[4] :])
    with evaluations() as seen, pytest.warns(UserWarning, match="rounded differently") as said:
        resumed = spec.fit(small.record(), resume=True)
    assert len(said) == 1 and len(seen) > 5
    assert resumed.bound == pytest.approx(model.bound, rel=1e-3) and resumed.bound != model.bound


def _file(folder, content):
    (folder / "entry").write_bytes(content)
    return (folder / "entry").open("rb")


def test_the_first_minute_leaves_no_trace(unfinished, monkeypatch):
    kill(small.spec(), 12)
    assert not unfinished.exists()
    monkeypatch.setattr(journal, "MAX_BUFFER_BYTES", 20_000)  # but memory is not to be filled either
    kill(small.spec(), 12)
    [path] = unfinished.iterdir()
    assert path.stat().st_size > 20_000 and len(seams(path.read_bytes())) == 12


def test_who_does_not_resume_is_told_that_he_could(unfinished, at_once, monkeypatch):
    kill(small.spec(), 9)
    [path] = unfinished.iterdir()
    before = path.read_bytes()
    monkeypatch.setattr(journal, "QUIET_SECONDS", 60.0)
    with pytest.warns(UserWarning, match="an unfinished fit like this one is there; resume=True"):
        kill(small.spec(), 3)
    assert path.read_bytes() == before  # a minute later it would be the new one's
    with pytest.warns(UserWarning, match="an unfinished fit"):
        small.spec().fit(small.record())
    assert not path.exists()


def test_a_journal_that_is_full_is_still_good(unfinished, at_once, monkeypatch):
    spec = small.spec()
    model, path, content = noted(unfinished, spec)
    monkeypatch.setattr(journal, "MAX_BYTES", len(content) // 2)
    kill(spec, 14)
    assert path.stat().st_size <= len(content) // 2
    assert_same(spec.fit(small.record(), resume=True), model)


def test_a_place_that_cannot_be_written_to_is_no_reason_to_fail(tmp_path, at_once, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(journal, "user_cache_path", lambda name: tmp_path / "file" / name)
    assert np.isfinite(small.spec().fit(small.record()).bound)


def test_a_full_disk_ends_the_journal_and_not_the_fit(unfinished, at_once, monkeypatch):
    plain = small.spec().fit(small.record())

    def full(path, content):
        raise InputError("no space left")

    monkeypatch.setattr(journal, "write_whole", full)
    assert_same(small.spec().fit(small.record()), plain)


def test_old_journals_are_removed(unfinished):
    unfinished.mkdir(parents=True)
    for name, days in (("old", 31), ("new", 29)):
        (unfinished / f"{name}.journal").write_bytes(b"")
        then = time.time() - 86400 * days
        os.utime(unfinished / f"{name}.journal", (then, then))
    make_checkpoints(["another"], resume=False)
    assert [path.name for path in unfinished.iterdir()] == ["new.journal"]


def test_hosts_that_compute_together_have_none(monkeypatch):
    monkeypatch.setattr("jax.process_count", lambda: 2)
    assert make_checkpoints(["one", "two"], resume=True) == [None, None]


def test_ctrl_c_keeps_the_journal_and_resume_goes_on(unfinished, at_once):
    spec = small.spec(recipe=TWO_STAGES)
    model, path, _ = noted(unfinished, spec)
    real, calls = revarb.training.objective.bound_and_gradient, itertools.count()

    def pressed(*args, **kwargs):
        if next(calls) == 8:
            os.kill(os.getpid(), signal.SIGINT)
        return real(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("revarb.training.objective.bound_and_gradient", pressed)
        stopped = spec.fit(small.record())
    assert stopped.status == "interrupted" and path.exists()
    assert_same(spec.fit(small.record(), resume=True), model)


@pytest.mark.slow
def test_networks_go_on_between_stretches_of_adam(unfinished, at_once):
    spec = small.spec(recognition=NETWORKS)
    model, path, content = noted(unfinished, spec)
    order = [(name, len([*same])) for name, same in itertools.groupby(names(content))]
    assert order[:3] == [(journal.FORMAT, 1), ("output error", 2), ("rounds of Adam", 5)] and order[3][0] == "fit"
    ends = seams(content)
    for cut in (ends[6], ends[9] - 5):  # before the last round, and in the middle of L-BFGS-B
        path.write_bytes(content[:cut])
        assert_same(spec.fit(small.record(), resume=True), model)


@pytest.mark.slow
@pytest.mark.parametrize("start", ["output-error", "free-form"])
def test_networks_go_on_wherever_they_were(unfinished, at_once, start):
    spec = small.spec(recognition=replace(NETWORKS, start=start))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("revarb.training.fit.checkpoints", lambda fits, resume: [None] * len(fits))
        plain = spec.fit(small.record())
    model, path, content = noted(unfinished, spec)
    assert_same(model, plain)
    for end in seams(content)[::3]:
        for cut in (end, end - 7):
            path.write_bytes(content[:cut])
            assert_same(spec.fit(small.record(), resume=True), model)


@pytest.mark.slow
def test_ctrl_c_during_adam_is_resumed_without_a_word(unfinished, at_once, recwarn):
    """Interrupted, the fit goes straight to its end and notes that as well: nothing that a resumed one asks for."""
    spec = small.spec(recognition=NETWORKS)
    model, path, _ = noted(unfinished, spec)
    real, calls = Journal._answer, itertools.count()

    def pressed(self, name, question, compute):
        if name == "rounds of Adam" and next(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, name, question, compute)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "_answer", pressed)
        assert spec.fit(small.record()).status == "interrupted"
    assert "fit" in names(path.read_bytes())
    assert_same(spec.fit(small.record(), resume=True), model)
    assert not [each for each in recwarn if "unfinished" in str(each.message)]


def test_restarts_that_had_finished_are_replayed(unfinished, at_once):
    spec = small.spec()
    whole = spec.fit(small.record(), restarts=3)
    with evaluations() as seen:
        spec.fit(small.record(), seed=0)
        first = len(seen)
    kill(spec, first + 5, restarts=3)
    assert len([*unfinished.iterdir()]) == 2
    with evaluations() as rest:
        resumed = spec.fit(small.record(), restarts=3, resume=True)
    for ours, theirs in zip(resumed.members, whole.members, strict=True):
        assert_same(ours, theirs)
    with evaluations() as last:
        spec.fit(small.record(), seed=2)
    with evaluations() as second:
        spec.fit(small.record(), seed=1)
    assert len(rest) == len(second) - 4 + len(last)
    assert not [*unfinished.iterdir()]


@pytest.mark.slow
def test_restarts_in_processes_resume_as_well(unfinished, at_once):
    """The processes of the workers are killed, and the pool with them: what they noted is there."""
    long = small.spec(recipe=Recipe(stages=(Stage(R0_FREE, 400),), ftol=0.0, gtol=0.0))
    program = """
import sys; from pathlib import Path
import revarb.optim.journal, small
from revarb import Recipe, Stage
from revarb.config.recipe import R0_FREE
revarb.optim.journal.QUIET_SECONDS, revarb.optim.journal.user_cache_path = 0.0, lambda name: Path(sys.argv[1]) / name
long = small.spec(recipe=Recipe(stages=(Stage(R0_FREE, 400),), ftol=0.0, gtol=0.0))
long.fit(small.record(), restarts=4, jobs=2)
"""
    cache = unfinished.parent.parent
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(cache)], cwd=Path(__file__).parent, start_new_session=True
    )
    until(lambda: unfinished.exists() and len([*unfinished.glob("*.journal")]) >= 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with evaluations() as seen:
        resumed = long.fit(small.record(), restarts=4, resume=True)
    with evaluations() as all_of_them:
        whole = long.fit(small.record(), restarts=4)
    for ours, theirs in zip(resumed.members, whole.members, strict=True):
        assert_same(ours, theirs)
    assert len(seen) < 0.75 * len(all_of_them)


def until(true, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_without_a_checkpoint_functions_stay_as_they_are():
    def function(x):
        return x

    with Journal() as nowhere:
        assert nowhere.objective("a", function) is function and nowhere.stretch("a", function) is function


def test_a_tree_comes_back_in_its_form_and_types(tmp_path):
    def advance(tree):
        calls.append(tree)
        return {"x": tree["x"] * 2.5, "count": (tree["count"] + np.int32(1),)}

    calls, tree = [], {"x": np.array(0.1), "count": (np.array(7, dtype=np.int32),)}
    place = Checkpoint(tmp_path / "one.journal", resume=False, quiet_until=0.0)
    with Journal(place) as first:
        answer = first.stretch("s", advance)(tree)
    with Journal(place._replace(resume=True)) as second:
        again = second.stretch("s", advance)(tree)
    assert len(calls) == 1 and jax.tree.structure(again) == jax.tree.structure(answer)
    assert again["x"] == 0.25 and again["count"][0] == 8 and again["count"][0].dtype == np.int32


LONG = (
    "calibrate = false\nlags = 2\ninput_lags = 2\ninducing = 12\n[recipe]\nftol = 0.0\ngtol = 0.0\n[[recipe.stages]]\n"
)
LONG += "free = ['mu', 'lam', 'zeta', 'w']\niterations = {iterations}\n"
FIT = ("fit", "train.csv", "-u", "u", "-y", "y", "--config", "rgp.toml", "-o", "m.rgp")


@pytest.fixture
def long_command(in_empty_folder):
    record = small.record()
    write_table("train.csv", {"u": record.u[:, 0], "y": record.y[:, 0]})
    (in_empty_folder / "rgp.toml").write_text(LONG.format(iterations=300))
    return in_empty_folder


def killed(cache, evaluation):
    """A command that kills itself at that evaluation of the bound: in a process of its own, by SIGKILL."""
    command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(cache), str(evaluation), *FIT]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def command_line(*arguments):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 0


def test_a_killed_command_resumes_to_the_same_file(long_command, unfinished, capsys):
    cache = unfinished.parent.parent
    command_line(*FIT)
    whole = revarb.load("m.rgp")
    Path("m.rgp").unlink()
    done = killed(cache, 90)
    assert done.returncode == -signal.SIGKILL, done.stderr
    [path] = unfinished.iterdir()
    assert len(seams(path.read_bytes())) == 1 + 89 and not Path("m.rgp").exists()
    command_line(*FIT, "--resume")
    assert_same(revarb.load("m.rgp"), whole)
    assert "warning" not in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.slow
def test_killed_again_and_again_at_any_moment(long_command, unfinished, record_property, rng):
    """From outside, whatever it is doing, until one run gets to the end."""
    (long_command / "rgp.toml").write_text(LONG.format(iterations=2000))
    cache, kills, before = unfinished.parent.parent, 0, 0
    command_line(*FIT)
    whole = revarb.load("m.rgp")
    Path("m.rgp").unlink()
    program = [sys.executable, str(Path(__file__).with_name("killed.py")), str(cache), "-1", *FIT]
    while not Path("m.rgp").exists():
        process = subprocess.Popen([*program, *(["--resume"] if kills else [])], stderr=subprocess.DEVNULL)
        until(lambda before=before, process=process: process.poll() is not None or noted_bytes(unfinished) > before)
        time.sleep(float(rng.uniform(0.0, 0.5)))
        kills += process.poll() is None
        process.kill()
        process.wait()
        before = noted_bytes(unfinished)
    assert_same(revarb.load("m.rgp"), whole)
    record_property("fuzzed", f"killed fits: {kills} kills of one, then the same model file as without")
    assert kills > 3


def noted_bytes(folder):
    return sum(path.stat().st_size for path in folder.glob("*.journal"))


def test_the_journal_stays_until_the_model_is_on_disk(long_command, unfinished, at_once, monkeypatch):
    def killed(self, path):
        raise Killed

    monkeypatch.setattr("revarb.models.fitted_rgp.FittedRGP.save", killed)
    with pytest.raises(Killed):
        cli.main(FIT)
    [_] = unfinished.iterdir()
