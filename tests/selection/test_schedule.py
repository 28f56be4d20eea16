"""Jobs, their progress, and finished fits that are stored and read again."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from fuzz import samples
from revarb.data.windows import Order
from revarb.fitting.weight_path import ALL, WeightPath
from revarb.runtime.unfinished import UnfinishedParts
from revarb.selection import schedule
from revarb.selection.candidates import CandidatePath
from revarb.selection.records import hold_out_blocks
from revarb.selection.schedule import FitJob, Progress, Scheduler, fit_once, read_path, write_path
from support import small

SPEC = small.spec(hidden=1, recipe=replace(small.QUICK, free_run_weight=2.0))
RECORD = small.record(samples=140)
HELD_OUT = hold_out_blocks([RECORD], Order(2, 2, 1))


@pytest.fixture
def path():
    return WeightPath((samples.model(0), samples.model(1)), 2.5)


def make_scheduler(folder, resume=True, pressed=()):
    store = UnfinishedParts(folder, ["abc.*"], resume)
    return Scheduler(
        [RECORD], HELD_OUT.records, HELD_OUT.blocks, 0, 1, store, "abc", Progress(lambda *report: None, pressed)
    )


def test_what_is_written_is_read(path, tmp_path):
    file = tmp_path / "abc.key.0.json"
    write_path(path, file)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["abc.key.0.0.rgp", "abc.key.0.1.rgp", file.name]
    read = read_path(file)
    assert read.seconds == 2.5 and len(read.models) == 2
    for ours, theirs in zip(read.models, path.models, strict=True):
        assert ours.bound == theirs.bound
        np.testing.assert_array_equal(ours.simulate(samples.U).mean, theirs.simulate(samples.U).mean)


ENTRIES = ["", "{", "[]", "3", '{"models": 2}', '{"models": "2", "seconds": 1}', '{"models": 2, "seconds": []}',
           '{"models": 3, "seconds": 1}', '{"seconds": 1}', "null", '{"models": null, "seconds": 1}']  # fmt: skip


def test_a_damaged_or_missing_entry_is_ignored(path, tmp_path):
    file, model = tmp_path / "abc.0.json", tmp_path / "abc.0.1.rgp"
    write_path(path, file)
    store, written = UnfinishedParts(tmp_path, ["abc.*"], resume=True), file.read_text()
    for content in ENTRIES:
        file.write_text(content)
        assert store.read(file.name, read_path) is None, content
    file.write_text(written)
    assert store.read(file.name, read_path) is not None
    model.write_bytes(model.read_bytes()[:-7])
    assert store.read(file.name, read_path) is None
    model.unlink()
    assert store.read(file.name, read_path) is None


def test_stored_jobs_are_not_run_again(path, tmp_path, monkeypatch):
    """Nor are they read without `resume`; a configuration with another iteration count is another job."""
    calls = []
    monkeypatch.setattr(schedule, "fit_whole_path", lambda spec, *rest: calls.append(spec) or path)
    one, other = CandidatePath(SPEC, "one"), CandidatePath(replace(SPEC, inducing=5), "other")
    jobs = [FitJob(one, 0), FitJob(one, 1), FitJob(other, 0)]
    assert [job for job, _ in make_scheduler(tmp_path).run(jobs[:1])] == jobs[:1] and len(calls) == 1
    found = dict(make_scheduler(tmp_path).run([FitJob(replace(one, name="renamed"), 0), *jobs[1:]]))
    assert set(found) == set(jobs) and calls[1:] == [SPEC, replace(SPEC, inducing=5)]
    assert found[jobs[0]].seconds == 2.5
    assert len(list(make_scheduler(tmp_path, resume=False).run(jobs))) == 3 and len(calls) == 6


def test_nothing_is_started_and_no_model_left_after_ctrl_c(tmp_path):
    def stop(steps, text):
        raise KeyboardInterrupt

    assert list(make_scheduler(tmp_path, pressed=[2]).run([FitJob(CandidatePath(SPEC, "a"), 0)])) == []
    assert fit_once(revarb.Mean(), [RECORD], 0, stop).models == ()  # of another kind
    [model] = fit_once(revarb.Mean(), [RECORD], 3, lambda steps, text: None).models
    assert model.seed == 3


def test_progress_counts_finished_fits_and_keeps_lines():
    """Those that were resumed, and those that failed, too."""
    seen = []
    progress = Progress(lambda done, text: seen.append((done, text)), [])
    jobs = [FitJob(CandidatePath(SPEC, "a"), fold) for fold in (0, 1)]
    report = progress.make_report(jobs)
    for number, steps in ((0, 5), (1, 2), (0, 7)):
        report(number, steps, "")
    assert [done for done, _ in seen] == [0, 0, 0] and seen[0][1] == "a, 2 lags, fold 1"
    progress.count()
    progress.count(2)
    progress.say("a is finished")
    assert seen[3:] == [(1, "a, 2 lags, fold 1"), (3, "a, 2 lags, fold 1"), (3, "a is finished\n")]
    assert FitJob(CandidatePath(revarb.Mean(), "b"), ALL).label == "b, all records"


@pytest.mark.parametrize("whole", [True, False])
def test_fits_without_a_fold_see_the_parts_and_the_last_ones_all_records(path, tmp_path, monkeypatch, whole):
    calls = []
    monkeypatch.setattr(schedule, "fit_whole_path", lambda *task: calls.append(task) or path)
    records = [RECORD] if whole else [RECORD, small.record(3)]
    scheduler = replace(make_scheduler(tmp_path), records=records)
    assert scheduler.uses_all_records is whole
    assert scheduler.batch == ([0, 1, 2, 3, ALL] if whole else [0, 1, 2, 3])
    dict(scheduler.run([FitJob(CandidatePath(SPEC, "a"), fold) for fold in (2, ALL)]))
    assert [(task[1], task[2], task[3]) for task in calls] == [
        (HELD_OUT.records, HELD_OUT.blocks, 2),
        (records, (), ALL),
    ]
