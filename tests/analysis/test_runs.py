"""Finished fits of an unfinished comparison, on disk."""

from functools import wraps

import numpy as np
import pytest

from revarb.analysis import runs
from revarb.analysis.comparison import ComparisonInterrupted, compare
from revarb.analysis.runs import FinishedFit, FitStore
from revarb.baselines import ARX, Mean
from revarb.data.trajectory import Trajectory
from revarb.runtime.unfinished import keep_journals
from revarb.selection.choose import Chosen
from support import small
from support.small_rivals import Zero

MODELS = {"Mean": Mean(), "ARX": ARX(2, 2), "REVARB": small.spec()}
pytestmark = pytest.mark.filterwarnings("ignore:there is no unfinished comparison")


def open_store(models=MODELS, seeds=(0, 1), train=0, resume=True):
    return FitStore.open(models, seeds, [small.record(train)], resume)


@pytest.fixture(scope="module")
def finished():
    """The fit of every model with the first seed."""
    return {name: FinishedFit(spec.fit([small.record()]), 1.5, ("once",)) for name, spec in MODELS.items()}


def list_known(store):
    return [name for name, seed in store.digests if store.read(name, seed) is not None]


def test_what_is_written_is_read(finished):
    store, u = open_store(), small.record(1).u
    for name, fit in finished.items():
        store.write(name, 0, fit)
        again = store.read(name, 0)
        assert again[1:] == fit[1:] and type(again.model) is type(fit.model)
        np.testing.assert_array_equal(again.model.simulate(u).mean, fit.model.simulate(u).mean)
    assert list_known(store) == list(MODELS)


def test_a_fit_belongs_to_its_configuration_seed_and_records(finished):
    open_store().write("ARX", 0, finished["ARX"])
    assert list_known(open_store()) == ["ARX"]
    assert list_known(open_store({"other name": ARX(2, 2)})) == ["other name"]
    for other in (open_store({"ARX": ARX(3, 2)}), open_store(seeds=(1, 2)), open_store(train=2)):
        assert not list_known(other)


def test_the_number_of_processes_of_a_choice_does_not_matter():
    several, one = (open_store({"chosen": Chosen(jobs=jobs)}).digests for jobs in (None, 1))
    assert several == one and several != open_store({"chosen": Chosen(members=2)}).digests


def test_models_of_the_user_are_not_kept(finished, unfinished):
    open_store({**MODELS, "Zero": Zero()}).write("Zero", 0, finished["Mean"])
    assert not unfinished.exists()


@pytest.mark.parametrize("ending", ["rgp", "json"])
@pytest.mark.parametrize("where", [0, 0.5, 0.9])
def test_a_damaged_file_is_not_read(finished, unfinished, ending, where):
    store = open_store()
    store.write("ARX", 0, finished["ARX"])
    [file] = unfinished.glob(f"*.{ending}")
    file.write_bytes(file.read_bytes()[: int(where * file.stat().st_size)])
    assert not list_known(store)


@pytest.mark.filterwarnings("default")
def test_without_resume_old_fits_are_removed(finished, unfinished):
    with pytest.warns(UserWarning, match="there is no unfinished comparison like this one to resume"):
        open_store().write("ARX", 0, finished["ARX"])
    with pytest.warns(UserWarning, match=r"an unfinished comparison like this one exists; resume=True \(--resume\)"):
        store = open_store(resume=False)
    assert not list_known(store) and not list(unfinished.iterdir())


def interrupt(monkeypatch, model):
    """Press Ctrl-C when the fit of this model begins; return the list of all fits."""
    real, seen = runs._fit, []

    def counted(task, caught):
        seen.append(task.name)
        if task.name == model and seen.count(model) == 1:
            raise KeyboardInterrupt
        return real(task, caught)

    monkeypatch.setattr(runs, "_fit", counted)
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
        assert len(list(unfinished.glob("*.rgp"))) == len(MODELS) * 2
    assert not list(unfinished.iterdir())
    assert fitted == ["Mean", "Mean", "ARX", "ARX", "REVARB", "REVARB", "REVARB"]
    scores = [[{name: row[name] for name in ("model", "seed", "rmse", "nlpd")} for row in each.rows]
              for each in (whole, resumed)]  # fmt: skip
    np.testing.assert_equal(*scores)
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
    real = type(small.spec()).fit

    @wraps(real)
    def note(spec, *arguments, **options):
        given.append(options.get("resume"))
        return real(spec, *arguments, **options)

    monkeypatch.setattr(type(small.spec()), "fit", note)
    for resume in (True, False):
        compare(small.record(), small.record(1), {"REVARB": small.spec()}, seeds=1, resume=resume)
    assert given == [True, None] and all("unfinished comparison" in str(each.message) for each in recwarn.list)
