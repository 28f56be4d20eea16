"""`revarb.fit` from end to end, with small candidates."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

import revarb
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import ComputationError, InputError
from revarb.fitting import weight_path
from revarb.fitting.held_out import LAST
from revarb.fitting.lbfgs import Optimum
from revarb.fitting.weight_path import ALL, WeightPath
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.recipe import RECIPES, Recognition, Stage, Status, Step
from revarb.runtime.unfinished import keep_journals
from revarb.selection import choose, final_fit, records, schedule, search
from revarb.selection.candidates import read_candidates
from revarb.selection.records import ASIDE_BLOCKS, LONG_ROWS, hold_out_blocks, set_aside
from revarb.selection.search import Duration
from revarb.variational.parameters import flatten
from support import small
from support.journals import assert_same
from support.linear_systems import arx_record
from support.small_choice import ALSO_CLOSE, CLOSE, SAMPLES, press_ctrl_c, use_defaults

FIRST, SECOND = CLOSE, ALSO_CLOSE
LINEAR = revarb.ARX(3, 3)
QUICK_KNOWN = (Stage(("zeta", "w", "variance", "sigma2"), 20),)
RECORD = small.record(samples=SAMPLES)
LINE = arx_record(0, SAMPLES, noise=0.05)


def choose_from(train, *specs, **options):
    """Choose among these and small linear models, in this process."""
    return revarb.fit(train, **{"jobs": 1, "candidates": [LINEAR, *(specs or (FIRST,))], **options})


@pytest.fixture(scope="module")
def chosen():
    """The choice on a nonlinear record, of one structure."""
    return choose_from(RECORD)


@pytest.fixture(scope="module")
def mixed():
    """The choice on a nonlinear record, of two structures."""
    return choose_from(RECORD, FIRST, SECOND)


def list_members(model):
    return getattr(model, "members", (model,))


def assert_same_choice(model, other):
    """The same members and the same choice, but for the seconds."""
    for ours, theirs in zip(list_members(model), list_members(other), strict=True):
        np.testing.assert_array_equal(ours.simulate(RECORD.u).std, theirs.simulate(RECORD.u).std)
        if isinstance(ours, FittedRGP):
            assert_same(replace(ours, history=()), replace(theirs, history=()))
            assert ours.calibration == theirs.calibration
    ours, theirs = ([replace(row, seconds=0.0) for row in each.choice.candidates] for each in (model, other))
    assert ours == theirs
    assert (model.choice.taken, model.choice.sentence) == (other.choice.taken, other.choice.sentence)


def test_a_linear_record_gives_a_linear_model(tmp_path):
    model = choose_from(LINE)
    assert isinstance(model, FittedARX) and model.status is Status.CONVERGED
    assert model.choice.sentence.startswith("A linear model is enough") and model.choice.taken_candidate.note == "taken"
    assert model.choice.taken.startswith("linear, ") and len(model.choice.candidates) == 3  # linear, w = 0, w = 1
    test = arx_record(1, SAMPLES, noise=0.05)
    result = revarb.scores(model.simulate(test.u), test.y)
    assert 0.85 < result.coverage95 < 1.0 and len(model.horizon_std) > 0
    assert revarb.load(model.save(tmp_path / "m.rgp")).choice == model.choice


def test_a_nonlinear_record_gives_a_calibrated_mixture(mixed, tmp_path):
    """Of the best weight of both structures, without the linear model, which is not close."""
    assert isinstance(mixed, Ensemble) and mixed.choice.taken == "mixture of 2" and mixed.mixed
    assert {member.spec.recipe.latent_variance for member in mixed.members} == {0.45, 0.5}
    assert all(member.calibration is not None for member in mixed.members)
    linear, *tried, mixture = mixed.choice.candidates
    assert linear.name.startswith("linear") and (linear.note, linear.weight) == ("", 0.0) and mixture.note == "taken"
    [best_row, other] = mixed.choice.members
    assert (best_row, other) == (min(tried[:2], key=get_error), min(tried[2:], key=get_error))
    assert all((row.note, row.weight) == ("member", 0.5) for row in (best_row, other))
    # The held-out error is one number: in the table, the calibrations, the sentence, and the verdict.
    assert [member.calibration.error for member in mixed.members] == [best_row.error, other.error]
    assert f"its held-out error is {mixture.error:.3g} of" in mixed.choice.sentence
    assert f"held-out error {mixture.error:.3g} of" in mixed.verdict
    assert other.error <= 1.5 * best_row.error < linear.error
    assert mixed.best is mixed.members[0]
    assert best_row.name.endswith(f"w = {mixed.best.spec.recipe.free_run_weight:g}")
    test = small.record(5, samples=300)
    assert 0.85 < revarb.scores(mixed.simulate(test.u), test.y).coverage95 <= 1.0
    assert "held-out errors of cold runs" in str(mixed.summary())
    again = revarb.load(mixed.save(tmp_path / "m.rgp"))
    assert_same_choice(again, mixed)
    np.testing.assert_array_equal(again.simulate(test.u).interval()[0], mixed.simulate(test.u).interval()[0])


def get_error(row):
    return row.error


def test_one_member_is_a_model_alone(mixed):
    model = choose_from(RECORD, FIRST, SECOND, members=1)
    assert isinstance(model, FittedRGP) and model.choice.sentence.endswith("; it is the best.")
    assert_same(replace(model, history=()), replace(mixed.members[0], history=()))
    assert model.calibration.error == model.choice.taken_candidate.error
    assert [row.note for row in model.choice.candidates].count("taken") == 1


def test_the_same_seed_gives_the_same_model(chosen, unfinished):
    assert_same_choice(choose_from(RECORD, seed=0), chosen)
    assert not unfinished.exists() or list(unfinished.iterdir()) == []
    other = revarb.Chosen(jobs=1, candidates=(LINEAR, FIRST)).fit([RECORD], seed=1)
    assert other.seed == 1 and other.bound != chosen.bound


@pytest.mark.slow
def test_two_processes_change_nothing(chosen):
    assert_same_choice(choose_from(RECORD, jobs=2), chosen)


@pytest.mark.slow
def test_a_choice_on_an_accelerator(chosen, monkeypatch):
    """Its way through the candidates, on a CPU: the same candidates with nearly the same errors.

    The weight that is best may differ: padded fits stop elsewhere, and a few percent decide.
    """
    monkeypatch.setattr(schedule.Scheduler, "batched", True)
    monkeypatch.setattr(schedule, "fit_whole_path", None)  # not called
    batched = choose_from(RECORD)
    for each, same in zip(batched.choice.candidates[:3], chosen.choice.candidates[:3], strict=True):
        assert each.name == same.name and each.error == pytest.approx(same.error, rel=0.1)
    assert batched.choice.taken_candidate.error == pytest.approx(chosen.choice.taken_candidate.error, rel=0.1)
    names = ({row.name.rpartition(", w")[0] for row in each.choice.members} for each in (batched, chosen))
    assert next(names) == next(names)
    assert all(member.calibration is not None for member in list_members(batched))


def fail(*args):
    raise ComputationError("the bound is not finite")


def test_a_candidate_that_fails_is_listed(monkeypatch):
    monkeypatch.setattr(schedule, "fit_whole_path", fail)
    with pytest.warns(UserWarning, match="^RGP could not be fitted and is left out: the bound is not finite"):
        model = choose_from(RECORD)
    assert isinstance(model, FittedARX) and model.choice.candidates[-1].note == "failed"
    message = "no candidate could be fitted: the bound is not finite"
    with pytest.warns(UserWarning, match="is left out"), pytest.raises(ComputationError, match=message):
        revarb.fit(RECORD, jobs=1, candidates=[FIRST])


def test_a_member_whose_last_fit_fails_is_left_out(monkeypatch):
    real, last = schedule.fit_whole_path, []

    def fail_first(*task):
        last.extend([task[0]] if task[3] == ALL else [])
        return fail() if task[3] == ALL and task[0] == FIRST else real(*task)

    monkeypatch.setattr(schedule, "fit_whole_path", fail_first)
    with pytest.warns(UserWarning, match="could not be fitted to all records and is left out: the bound is not finite"):
        model = choose_from(RECORD, FIRST, SECOND)
    # Once for both members of its path; nothing is fitted in their place, and one member is left.
    assert (
        {*last} == {FIRST, SECOND}
        and len(last) == 2
        and isinstance(model, FittedRGP)
        and model.status is not Status.INTERRUPTED
    )
    assert (model.spec.recipe.latent_variance, model.spec.recipe.free_run_weight) == (0.5, 1.0)
    assert "Not fitted to all records: " in model.choice.sentence and model.calibration is not None
    assert model.choice.taken_candidate.error == model.calibration.error


@dataclass(frozen=True)
class Own:
    """A user's own configuration, y[k] = gain · u[k−1], of a model that has nothing but `simulate`."""

    gain: float
    rows: list = field(default_factory=list, compare=False, repr=False)  # of every fit

    def fit(self, train, seed=0):
        self.rows.append(sum(len(record) for record in train))
        return SimpleNamespace(simulate=self.simulate)

    def simulate(self, u):
        return SimpleNamespace(mean=self.gain * np.concatenate([[0.0], u[:-1, 0]]))


def test_models_of_any_kind_are_candidates():
    y = 0.5 * np.roll(LINE.u, 1) + 0.01 * np.random.default_rng(1).normal(size=LINE.u.shape)
    good = Own(0.5)
    candidates = {"good": good, "bad": Own(0.1), "mean": revarb.Mean()}
    model = revarb.fit(Series(LINE.u, y), jobs=1, candidates=candidates)
    assert model.simulate == good.simulate and model.choice.taken == "good" and model.choice.linear_error is None
    assert len(good.rows) == 5 and max(good.rows[:4]) < good.rows[-1] == SAMPLES  # without each fold, then everything
    table = {row.name: row for row in model.choice.candidates}
    assert table["bad"].note == "" and table["good"].error < 0.1 < table["bad"].error


@pytest.mark.slow
def test_an_rgp_without_a_path_of_weights():
    """With a recognition model: one candidate, with bands from held-out blocks."""
    networks = Recognition(hidden=(4,), starts=1, start_steps=3, rounds=(3,))
    model = revarb.fit(RECORD, jobs=1, candidates={"own": replace(FIRST, recognition=networks)})
    [row] = model.choice.candidates
    assert isinstance(model, FittedRGP) and row.name.startswith("own, ") and row.note == "taken"
    assert model.calibration.error == row.error and len(model.calibration.factors) > 0


def test_several_linear_models_alone():
    model = revarb.fit(LINE, candidates={"short": revarb.ARX(2, 2), "late": revarb.ARX(2, 2, 3)})
    assert model.choice.taken == "short" and [row.name for row in model.choice.candidates] == ["short", "late"]


def start_path(spec, records, blocks, fold, seed, *rest):
    """A path at its start values."""
    problem = weight_path.initialise_fold(spec, records, blocks, fold, seed)
    optimum = Optimum(np.array(flatten(problem.start)), -1.0, Status.ITERATION_LIMIT, (Step(1, 1, -1.0),))
    return tuple(weight_path.build_at(problem, optimum, weight) for weight in (0.0, 1.0))


@pytest.fixture
def at_the_start(monkeypatch):
    """Candidates at their start values, because every record has a program of its own to compile."""
    use_defaults(monkeypatch, FIRST)
    monkeypatch.setattr(schedule, "fit_whole_path", lambda *args: WeightPath(start_path(*args), 0.5))
    monkeypatch.setattr(search, "measure_durations", lambda _, paths: dict.fromkeys(paths, Duration(0.0, 0.0)))


@pytest.mark.usefixtures("at_the_start")
def test_a_quick_choice_says_so():
    assert revarb.fit(RECORD, jobs=1, effort="quick").choice.sentence.endswith(choose.QUICK)


def measure_errors(model, *records):
    """Check that it simulates its records with finite bands; return the errors relative to the standard deviations."""
    assert model.status is not Status.INTERRUPTED
    assert model.choice.scored_by == "nothing" or all(row.stretches > 0 for row in model.choice.candidates)
    errors = []
    for record in records:
        path = model.simulate(record.u) if record.u.shape[1] else model.simulate(steps=len(record))
        assert np.isfinite(path.mean).all() and np.isfinite(path.std).all()
        errors.append((path.mean - record.y)[path.skip :])
    scale = np.nanstd(np.concatenate([record.y for record in records]), axis=0)
    return np.sqrt(np.nanmean(np.concatenate(errors) ** 2, axis=0)) / scale


@pytest.mark.usefixtures("at_the_start")
def test_records_of_very_different_lengths():
    records = [small.record(0, SAMPLES), small.record(1, 30), small.record(2, 9)]
    with pytest.warns(UserWarning, match="2 of 3 records have fewer than [0-9]+ samples and are left out"):
        model = revarb.fit(records, jobs=1)
    assert len(model.final_states) == 1
    assert measure_errors(model, *records) < 0.6


def lose_first_fold():
    """Four folds take turns: without any output in the blocks of one of them, the others decide."""
    blocks = hold_out_blocks([RECORD], choose.DefaultCandidates().find_largest_order([RECORD])).blocks
    return small.with_gaps(RECORD, *(block.rows for block in blocks if block.fold == 0))


def make_wave():
    return Series(None, np.sin(0.3 * np.arange(SAMPLES)) + 0.05 * np.random.default_rng(0).normal(size=SAMPLES))


GAPS = small.with_gaps(small.record(samples=SAMPLES, outputs=2), (slice(30, 40), 0), slice(70, 75), 100)


@pytest.mark.usefixtures("at_the_start")
@pytest.mark.parametrize(
    "record",
    [
        pytest.param(lose_first_fold(), id="a fold that is not measured"),
        pytest.param(GAPS, id="missing outputs", marks=pytest.mark.slow),
        pytest.param(make_wave(), id="no inputs", marks=pytest.mark.slow),
    ],
)
def test_a_choice_on_other_records(record):
    errors = measure_errors(revarb.fit(record, jobs=1), record)
    assert errors.shape == (record.y.shape[1],) and errors.max() < 2.0


@pytest.mark.usefixtures("at_the_start")
def test_long_records_are_chosen_on_parts_and_fitted_whole(monkeypatch):
    monkeypatch.setattr(records, "MAX_ROWS", 300)
    monkeypatch.setattr(records, "PART_ROWS", 140)
    record = arx_record(0, 700, noise=0.05)
    model = revarb.fit(record, jobs=1)
    assert model.scaling.y_mean == pytest.approx(record.y.mean())
    assert measure_errors(model, record) < 0.2


def test_the_bands_of_long_records_are_set_on_blocks_that_no_fit_sees():
    """Members that are clearly worse there are left out."""
    record, test = small.record(samples=LONG_ROWS + 100), small.record(1, samples=500)
    good = replace(FIRST, recipe=replace(RECIPES["narx"], stages=QUICK_KNOWN, free_run_weight=0.0), linear=True)
    model = revarb.fit(record, jobs=1, candidates={"known": good, "worse": replace(good, lags=1, inducing=2)})
    assert model.choice.taken.startswith("known") and model.calibration.stretches == ASIDE_BLOCKS
    assert f"On {ASIDE_BLOCKS} blocks that no fit has seen the best of the fits" in model.choice.sentence
    hidden = set_aside([record], Order(2, 2, 1))[0][0]
    assert model.scaling.y_mean == np.nanmean(hidden.y)  # not that of all outputs
    found = revarb.scores(model.simulate(test.u), test.y, 20)
    assert found.nrmse < 0.3 and 0.88 < found.coverage95 < 1.0
    assert model.plot_fit(record).axes  # the record is known to be its own


@pytest.mark.slow
def test_a_record_that_leaves_nothing_to_hold_out(monkeypatch, tmp_path):
    record = small.record(samples=40)
    quick = replace(RECIPES["linear"], stages=(Stage(("mu", "zeta", "w", "linear"), 3),), free_run_iterations=3)
    monkeypatch.setitem(final_fit.RECIPES, "linear", quick)
    message = "too short, or too little of them is measured, to hold anything out: a default model is fitted, and its"
    with pytest.warns(UserWarning, match=message):
        model = revarb.fit(record, jobs=1)
    assert isinstance(model, FittedRGP) and model.calibration is None and model.spec.linear
    assert "to hold anything out: this is the default" in model.choice.sentence and model.choice.scored_by == "nothing"
    measure_errors(model, record)
    assert revarb.load(model.save(tmp_path / "m.rgp")).choice == model.choice


def assert_resumed(monkeypatch, chosen, fits):
    """With `resume` the rest is fitted, and the model is that of an uninterrupted choice."""
    fitted = press_ctrl_c(monkeypatch, 0)
    assert_same_choice(choose_from(RECORD, resume=True), chosen)
    assert fitted() == fits


def test_ctrl_c_returns_the_linear_model_and_resume_continues(chosen, monkeypatch, unfinished):
    with pytest.MonkeyPatch.context() as patch:
        press_ctrl_c(patch, 3)
        partial = choose_from(RECORD)
    assert isinstance(partial, FittedARX) and partial.status is Status.INTERRUPTED
    assert partial.choice.sentence.startswith(f"Interrupted: {partial.choice.taken} is the best of the candidates")
    assert {candidate.note for candidate in partial.choice.candidates} == {"taken", "unfinished"}
    assert sum(path.suffix == ".json" for path in unfinished.iterdir()) == 2  # of four folds
    assert_resumed(monkeypatch, chosen, [2, 3, ALL, LAST])
    assert list(unfinished.iterdir()) == []


@pytest.mark.filterwarnings("ignore:an unfinished choice like this one exists")
def test_an_interrupted_second_call_keeps_its_fits(chosen, monkeypatch, unfinished):
    """Inside of `keep_journals`, as in a study: what the first call has left goes at once, not in the end."""
    with keep_journals():
        for call in (2, 3):
            with pytest.MonkeyPatch.context() as patch:
                press_ctrl_c(patch, call)
                choose_from(RECORD)
    assert sum(path.suffix == ".json" for path in unfinished.iterdir()) == 2
    assert_resumed(monkeypatch, chosen, [2, 3, ALL, LAST])


PART = "It was fitted to a part of the records, and its bands are not calibrated."


def test_ctrl_c_in_the_only_last_fit(chosen, monkeypatch, tmp_path):
    """The best candidate without a fold."""
    with pytest.MonkeyPatch.context() as patch:
        press_ctrl_c(patch, 5)
        model = choose_from(RECORD)
    assert isinstance(model, FittedRGP) and model.status is Status.INTERRUPTED and model.calibration is None
    assert model.choice.sentence.startswith("Interrupted: ") and model.choice.sentence.endswith(PART)
    assert model.choice.taken == min(chosen.choice.members, key=lambda row: row.error).name
    assert revarb.load(model.save(tmp_path / "m.rgp")).choice == model.choice
    assert_resumed(monkeypatch, chosen, [ALL, LAST])


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still but for the fits, of 10 s per fold; they are at their start values."""
    now = [1000.0]
    for module in (choose, search):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def fit(*task):
        now[0] += 10.0
        return WeightPath(start_path(*task[:5]), 10.0)

    monkeypatch.setattr(schedule, "fit_whole_path", fit)
    monkeypatch.setattr(search, "measure_durations", lambda _, paths: dict.fromkeys(paths, Duration(40.0, 20.0)))
    return now


THREE = {"one": FIRST, "two": SECOND, "three": replace(FIRST, recipe=replace(FIRST.recipe, latent_variance=0.3))}


@pytest.mark.parametrize(
    ("limit", "members", "untried"),
    [
        (None, 5, []),
        (180.0, 5, []),  # 3 × 40 s without a fold, 3 × 20 s in the end
        (179.0, 5, ["three"]),
        (140.0, 1, []),  # one of them is fitted to all records
        (100.0, 1, ["three"]),
        (100.0, 5, ["two", "three"]),
        (59.0, 5, ["one", "two", "three"]),
    ],
)
def test_no_path_is_started_that_would_not_finish(clock, limit, members, untried):
    fits = {"line": LINEAR, **THREE}
    model = revarb.fit(RECORD, jobs=1, candidates=fits, members=members, time_limit=limit)
    tried = {row.name.split(",")[0] for row in model.choice.candidates} - {"mixture of"}
    assert {"line", *THREE} - set(untried) == {name for name in tried if not name.startswith("mixture")}
    said = f"The time limit left untried: {'; '.join(f'{name}, 2 lags' for name in untried)}."
    assert (said in model.choice.sentence) == bool(untried) == ("time limit" in model.choice.sentence)


def test_a_limit_that_leaves_no_time_for_anything_is_refused(clock):
    with pytest.raises(InputError, match="time_limit is too short for any of the candidates; use a longer one"):
        revarb.fit(RECORD, jobs=1, candidates=THREE, time_limit=59.0)


def test_on_an_accelerator_a_path_begins_if_there_is_any_time_left(clock, monkeypatch):
    """All of its fits are one batch, the one to all records too."""

    def fit(fits, parts, blocks, seed, report):
        clock[0] += 50.0
        assert [fold for _, fold in fits] in ([0, 1, 2, 3, ALL], [LAST])
        return ((number, WeightPath(start_path(spec, parts, blocks, fold, seed), 10.0))
                for number, (spec, fold) in enumerate(fits))  # fmt: skip

    monkeypatch.setattr(schedule.Scheduler, "batched", True)
    monkeypatch.setattr(schedule, "fit_paths_batched", fit)
    model = revarb.fit(RECORD, jobs=1, candidates=THREE, time_limit=60.0)
    assert model.choice.sentence.endswith("The time limit left untried: three, 2 lags.")


def test_every_path_is_said_with_its_error_and_the_estimate_before(clock, capsys):
    model = revarb.fit(RECORD, jobs=1, progress=True, candidates={"line": LINEAR, "one": FIRST}, members=1)
    said = capsys.readouterr().err.splitlines()
    error = min(row.error for row in model.choice.candidates if row.name.startswith("one"))
    assert said[:2] == [
        "about 60 s for 1 structures with 4 folds each",
        f"one, 2 lags: held-out error {error:.3g}, 40.0 s of fits",
    ]
    assert said[2:] in ([], ["one, 2 lags, all records: 10.0 s"])  # a linear model that is best needs none


@pytest.mark.parametrize(("members", "last"), [(1, 2), (5, 4)])
def test_all_fits_are_counted(members, last):
    """Members of one path share their last fits: to all records, and to their first two thirds."""
    given = read_candidates([FIRST, SECOND, LINEAR])
    held_out = hold_out_blocks([RECORD], given.find_largest_order([RECORD]))
    assert choose._count_fits(held_out, given, members, None) == 2 * 4 + last
