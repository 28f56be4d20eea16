"""Finished runs of an unfinished comparison, on disk."""

from dataclasses import replace
from functools import wraps

import numpy as np
import pytest

from revarb.baselines.arx import ARX
from revarb.baselines.training_mean import Mean
from revarb.data.trajectory import Trajectory
from revarb.evaluation.comparison import comparison, runs
from revarb.evaluation.comparison.comparison import ComparisonInterrupted, compare
from revarb.evaluation.comparison.run_store import RunStore
from revarb.optim.journal import keep_journals
from revarb.training.choose import Chosen
from support import small
from support.small_rivals import Zero

MODELS = {"Mean": Mean(), "ARX": ARX(2, 2), "REVARB": small.spec()}


def open_store(models=MODELS, seeds=(0, 1), test=1, resume=True):
    return RunStore.open(models, seeds, [small.record()], [small.record(test)], seeds[:1], resume)


@pytest.fixture(scope="module")
def finished():
    """The run of every model with the first seed, with its residuals."""
    return list(runs.run_all(MODELS, [0], [small.record()], [small.record(1)], 1, analysed=[0]))


def assert_equal(one, other):
    """To the last bit, at any depth."""
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif hasattr(one, "__dataclass_fields__"):
        assert type(one) is type(other)
        assert_equal(vars(one), vars(other))
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            assert_equal(one[name], other[name])
    elif isinstance(one, tuple):
        assert type(one) is type(other) and len(one) == len(other)
        for ours, theirs in zip(one, other, strict=True):
            assert_equal(ours, theirs)
    else:
        assert one == other or (one != one and other != other)


@pytest.mark.filterwarnings("ignore:there is no unfinished comparison")
def test_what_is_written_is_read(finished):
    assert finished[1].residuals is not None and len(finished[2].simulated) == 2
    store = open_store()
    for run in finished:
        run = replace(run, warnings=("once",), taken="RGP, small")
        store.write(run)
        assert_equal(store.read()[-1], run)
    assert [(run.model, run.seed) for run in store.read()] == [(name, 0) for name in MODELS]


@pytest.mark.filterwarnings("ignore:there is no unfinished comparison")
def test_a_run_belongs_to_its_model_seed_and_records(finished):
    open_store().write(finished[1])
    assert len(open_store().read()) == 1
    assert [run.model for run in open_store({"other name": ARX(2, 2)}).read()] == ["other name"]
    for other in (open_store({"ARX": ARX(3, 2)}), open_store(seeds=(1, 2)), open_store(test=2)):
        assert other.read() == []


@pytest.mark.filterwarnings("ignore:there is no unfinished comparison")
def test_the_number_of_processes_of_a_choice_does_not_matter():
    several, one = (open_store({"chosen": Chosen(jobs=jobs)}).files for jobs in (None, 1))
    assert several == one and several != open_store({"chosen": Chosen(members=2)}).files


@pytest.mark.filterwarnings("ignore:there is no unfinished comparison")
def test_failures_and_models_of_the_user_are_not_kept(finished, unfinished):
    store = open_store({**MODELS, "Zero": Zero()})
    store.write(runs.lost_run("ARX", 0))
    store.write(replace(finished[0], model="Zero"))
    assert not unfinished.exists()


@pytest.mark.filterwarnings("ignore:there is no unfinished comparison")
@pytest.mark.parametrize("where", [0, 0.1, 0.5, 0.9])
def test_a_damaged_file_is_not_read(finished, unfinished, where):
    store = open_store()
    store.write(finished[1])
    [file] = unfinished.iterdir()
    content = bytearray(file.read_bytes())
    content[int(where * len(content))] ^= 1
    file.write_bytes(content)
    assert store.read() == []
    file.write_bytes(content[:100])
    assert store.read() == []


def test_without_resume_old_runs_are_removed(finished, unfinished):
    with pytest.warns(UserWarning, match="there is no unfinished comparison like this one to resume"):
        open_store().write(finished[0])
    with pytest.warns(UserWarning, match=r"an unfinished comparison like this one exists; resume=True \(--resume\)"):
        store = open_store(resume=False)
    assert store.read() == [] and not list(unfinished.iterdir())


def interrupt(monkeypatch, model):
    """Press Ctrl-C when the fit of this model begins; return the list of all fits."""
    real, seen = runs._fit_and_simulate, []

    def counted(name, *arguments):
        seen.append(name)
        if name == model and seen.count(name) == 1:
            raise KeyboardInterrupt
        return real(name, *arguments)

    monkeypatch.setattr(runs, "_fit_and_simulate", counted)
    return seen


def test_an_interrupted_comparison_is_resumed(monkeypatch, unfinished):
    whole = compare(small.record(), small.record(1), MODELS, seeds=2)
    fitted = interrupt(monkeypatch, "REVARB")
    with pytest.raises(ComparisonInterrupted) as stopped:
        compare(small.record(), small.record(1), MODELS, seeds=2)
    part = stopped.value.comparison
    assert [row["model"] for row in part.rows] == ["Mean", "Mean", "ARX", "ARX"]
    assert part.missing == (("REVARB", 0), ("REVARB", 1))
    assert part.incomplete.endswith("it was stopped by Ctrl-C before REVARB (2 seed(s)).") and whole.incomplete is None

    with keep_journals():
        resumed = compare(small.record(), small.record(1), MODELS, seeds=2, resume=True)
        assert len(list(unfinished.glob("*.run"))) == len(MODELS) * 2
    assert not list(unfinished.glob("*.run"))
    assert fitted == ["Mean", "Mean", "ARX", "ARX", "REVARB", "REVARB", "REVARB"]
    scores = [{name: row[name] for name in ("model", "seed", "rmse", "nlpd")} for row in resumed.rows]
    np.testing.assert_equal(
        scores, [{name: row[name] for name in each} for row, each in zip(whole.rows, scores, strict=True)]
    )
    assert resumed.residuals.keys() == whole.residuals.keys() and resumed.incomplete is None
    assert all(isinstance(path, Trajectory) for paths in resumed.paths.values() for path in paths)


def test_ctrl_c_before_any_model_is_done_is_ctrl_c(monkeypatch):
    interrupt(monkeypatch, "Mean")
    with pytest.raises(KeyboardInterrupt) as stopped:
        compare(small.record(), small.record(1), MODELS, seeds=1)
    assert not isinstance(stopped.value, ComparisonInterrupted)


def test_fits_that_were_begun_are_continued(monkeypatch, recwarn):
    """`resume` is passed on to models that have it; that there is nothing to resume is no warning of a model."""
    given = []
    monkeypatch.setattr(comparison, "RunStore", NothingKept)
    real = type(small.spec()).fit

    @wraps(real)
    def note(spec, *arguments, **options):
        given.append(options.get("resume"))
        return real(spec, *arguments, **options)

    monkeypatch.setattr(type(small.spec()), "fit", note)
    models = {"Mean": Mean(), "REVARB": small.spec()}
    for resume in (True, False):
        compare(small.record(), small.record(1), models, seeds=1, resume=resume)
    assert given == [True, None] and not recwarn.list


class NothingKept(RunStore):
    """A store that has nothing, and says nothing about it."""

    @classmethod
    def open(cls, *arguments):
        return cls({}, arguments[-1])
