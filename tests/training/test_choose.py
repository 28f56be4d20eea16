"""`revarb.fit` from end to end, with two small structures in place of its own."""

import os
import signal
import warnings
from dataclasses import replace

import jax
import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster, get_task_stream

import revarb
from revarb.config.recipe import RECIPES, Recipe, Stage
from revarb.data.series import Series
from revarb.errors import ComputationError, InputError
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.journal import keep_journals
from revarb.optim.lbfgs import Optimum
from revarb.optim.status import Status, Step
from revarb.training import (
    choice_calibration,
    choose,
    final_fit,
    fold_paths,
    linear_trial,
    parts,
    trials,
)
from revarb.training.candidates import Structure
from revarb.training.fold_paths import FoldPath
from revarb.training.trials import Unit
from revarb.variational.parameters import flatten
from support import small

ITERATIONS = (8, 7)
STAGES = tuple(Stage(("mu", "lam", "zeta", "w"), iterations) for iterations in ITERATIONS)
FIRST = small.spec(hidden=1, inducing=8, recipe=Recipe(stages=STAGES, free_run_weight=2.0, free_run_iterations=8))
SECOND = replace(FIRST, recipe=replace(FIRST.recipe, latent_variance=0.4))  # the same compiled program
SAMPLES = 140


def use_structures(patch, *specs):
    """Try these configurations, and linear models of few orders and one delay."""
    structures = [Structure(f"number {number}", spec) for number, spec in enumerate(specs)]
    patch.setattr(choose, "list_structures", lambda records, delay: structures)
    patch.setattr(choose, "list_variants", lambda best, records: [])
    patch.setattr(linear_trial, "DELAYS", (1,))
    patch.setattr(choice_calibration, "HORIZONS", 2)  # each is compiled
    for module in (choose, linear_trial):
        patch.setattr(module, "MORE_LAGS", 3)


@pytest.fixture(autouse=True)
def one_structure(monkeypatch):
    use_structures(monkeypatch, FIRST)


def linear_record(seed=0, samples=SAMPLES, noise=0.05):
    rng = np.random.default_rng(seed)
    u, y = rng.normal(size=samples), np.zeros(samples)
    for k in range(1, samples):
        y[k] = 0.6 * y[k - 1] + u[k - 1] + noise * rng.normal()
    return Series(u, y)


RECORD = small.record(samples=SAMPLES)


@pytest.mark.slow
def test_a_quick_choice_tries_linear_parts_only(monkeypatch):
    linear = replace(FIRST, linear=True, recipe=replace(FIRST.recipe, free_run_weight=1.0))
    use_structures(monkeypatch, linear, FIRST)
    model = revarb.fit(RECORD, jobs=1, effort="quick")
    tried = [candidate.name for candidate in model.choice.candidates]
    assert any("number 0" in name for name in tried) and not any("number 1" in name for name in tried)
    assert model.choice.sentence.endswith(choose.QUICK)


@pytest.mark.parametrize("effort", ["slow", None, 1])
def test_an_unknown_effort_is_refused(effort):
    with pytest.raises(revarb.InputError, match="effort must be 'normal' or 'quick', received"):
        revarb.fit(RECORD, effort=effort)


@pytest.fixture(scope="module")
def chosen():
    """The choice on a nonlinear record."""
    with pytest.MonkeyPatch.context() as patch:
        use_structures(patch, FIRST)
        return revarb.fit(RECORD, jobs=1)


def assert_same(model, other):
    """The same model and the same choice, but for the seconds."""
    for ours, theirs in zip(jax.tree.leaves(model.trained), jax.tree.leaves(other.trained), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (model.bound, model.status, model.calibration) == (other.bound, other.status, other.calibration)
    ours, theirs = (
        [replace(candidate, seconds=0.0) for candidate in each.choice.candidates] for each in (model, other)
    )
    assert ours == theirs
    assert (model.choice.taken, model.choice.sentence) == (other.choice.taken, other.choice.sentence)


def press_ctrl_c(patch, module, name, call):
    """Send Ctrl-C when this call of a function begins, counted from 1; return the list of its calls."""
    real, seen = getattr(module, name), []

    def counted(*args, **kwargs):
        seen.append(args)
        if len(seen) == call:
            os.kill(os.getpid(), signal.SIGINT)
        return real(*args, **kwargs)

    patch.setattr(module, name, counted)
    return seen


# What is chosen ------------------------------------------------------------------------------------------------------


def test_a_linear_record_gives_a_linear_model(tmp_path):
    model = revarb.fit(linear_record(), jobs=1)
    assert isinstance(model, FittedARX) and model.status is Status.CONVERGED
    assert model.choice.sentence.startswith("A linear model is enough") and model.choice.taken_candidate.note == "taken"
    assert model.choice.taken.startswith("linear, ") and len(model.choice.candidates) == 3  # linear, w = 0, w = 2
    test = linear_record(1)
    path = model.simulate(test.u)
    low, high = path.interval(0.95)
    inside = ((low <= test.y) & (test.y <= high))[path.skip :].mean()
    assert 0.85 < inside < 1.0 and len(model.horizon_std) > 0
    assert revarb.load(model.save(tmp_path / "m.rgp")).choice == model.choice


def test_a_nonlinear_record_gives_a_calibrated_rgp(chosen, tmp_path):
    assert isinstance(chosen, FittedRGP) and chosen.calibration is not None and chosen.choice.taken.startswith("RGP, ")
    assert chosen.choice.taken_candidate.error < chosen.choice.candidates[0].error  # the linear one
    weight = chosen.spec.recipe.free_run_weight
    assert chosen.choice.taken.endswith(f"w = {weight:g}")
    again = revarb.load(chosen.save(tmp_path / "m.rgp"))
    assert_same(again, chosen)
    u = small.record(5).u
    np.testing.assert_array_equal(again.simulate(u).interval()[0], chosen.simulate(u).interval()[0])
    assert "candidates, by cold runs" in str(chosen.summary())


def test_the_same_seed_gives_the_same_model(chosen, unfinished):
    assert_same(revarb.fit(RECORD, seed=0, jobs=1), chosen)
    assert not unfinished.exists() or list(unfinished.iterdir()) == []
    other = revarb.Chosen(jobs=1).fit([RECORD], seed=1)
    assert other.seed == 1 and other.bound != chosen.bound


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(chosen):
    assert_same(revarb.fit(RECORD, jobs=2), chosen)


@pytest.mark.slow
def test_a_last_fit_that_begins_early_is_the_same(monkeypatch):
    """With two processes an only structure is fitted to all records beside its folds, the best one beside variants."""
    monkeypatch.setattr(choose, "list_variants", lambda best, records: [Structure("variant", SECOND)])
    early, real = [], trials.Trials.run

    def run(self, fits):
        early.extend(structure.name for structure, fold in fits if fold == fold_paths.ALL)
        real(self, fits)

    monkeypatch.setattr(trials.Trials, "run", run)
    alone = revarb.fit(RECORD, jobs=1)
    assert not early
    assert_same(revarb.fit(RECORD, jobs=2), alone)
    assert set(early) == {"number 0"}


@pytest.mark.slow
def test_a_dask_cluster_takes_the_fits_and_changes_nothing(chosen):
    """Two real worker processes, through joblib's own backend."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        with get_task_stream(client) as stream, joblib.parallel_config(backend="dask"):
            far = revarb.fit(RECORD)
        assert len({task["worker"] for task in stream.data}) == 2
    assert_same(far, chosen)


def test_a_mixture_of_the_best(monkeypatch, tmp_path):
    use_structures(monkeypatch, FIRST, SECOND)
    model = revarb.fit(RECORD, jobs=1, members=2)
    assert isinstance(model, Ensemble) and len(model) == 2 and model.mixed and model.choice is not None
    assert all(member.calibration is not None for member in model.members)
    again = revarb.load(model.save(tmp_path / "e.rgp"))
    assert again.choice == model.choice and again.bounds == model.bounds
    np.testing.assert_array_equal(again.simulate(RECORD.u).std, model.simulate(RECORD.u).std)


def test_weak_structures_are_dropped_after_the_first_fold(monkeypatch):
    poor = replace(FIRST, recipe=replace(FIRST.recipe, hidden_noise=5.0, latent_variance=2.0))
    use_structures(monkeypatch, FIRST, poor)
    calls = press_ctrl_c(monkeypatch, trials, "fit_path", 0)
    model = revarb.fit(RECORD, jobs=1)
    folds = {number: [args[3] for args in calls if args[0] == spec] for number, spec in enumerate((FIRST, poor))}
    assert folds == {0: [0, 1, 2, 3], 1: [0]}
    notes = {candidate.name.split(",")[1]: candidate.note for candidate in model.choice.candidates[1:]}
    assert notes[" number 1"] == "dropped"


def test_a_structure_that_fails_is_listed(monkeypatch):
    def fail(spec, *args):
        raise ComputationError("the bound is not finite")

    monkeypatch.setattr(trials, "fit_path", fail)
    model = revarb.fit(RECORD, jobs=1)
    assert isinstance(model, FittedARX) and model.choice.candidates[-1].note == "failed"
    monkeypatch.setattr(choose, "try_linear", lambda held_out: [])
    with pytest.raises(ComputationError, match="no candidate could be fitted: the bound is not finite"):
        revarb.fit(RECORD, jobs=1)


def fail_in_the_end(patch, calls):
    """Let this many of the last fits fail; return the list of all of them."""
    real, seen = final_fit.trace_path, []

    def trace(*args):
        seen.append(args[0])
        if len(seen) <= calls:
            raise ComputationError("the bound is not finite")
        return real(*args)

    patch.setattr(final_fit, "trace_path", trace)
    return seen


def test_where_the_last_fit_fails_the_next_candidate_is_taken(monkeypatch):
    use_structures(monkeypatch, FIRST, SECOND)
    seen = fail_in_the_end(monkeypatch, 1)
    with pytest.warns(UserWarning, match="could not be fitted to all records, and the next best candidate is taken: "):
        model = revarb.fit(RECORD, jobs=1)
    assert isinstance(model, FittedRGP) and model.calibration is not None and {FIRST, SECOND} == set(seen)
    assert model.spec.recipe.latent_variance == seen[1].recipe.latent_variance


@pytest.mark.filterwarnings("ignore:.* could not be fitted to all records")
def test_where_all_last_fits_fail(monkeypatch):
    fail_in_the_end(monkeypatch, 2)
    with pytest.raises(ComputationError, match="no candidate could be fitted to all records; use RGP"):
        revarb.fit(RECORD, jobs=1)


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["at the start", "fitted"])
def any_record(request, monkeypatch):
    """Candidates at their start values, because every record has a program of its own to compile; fitted if slow."""

    def start(spec, records, stretches, fold, seed, *rest):
        problem = fold_paths.initialise_fold(spec, records, stretches, fold, seed)
        optimum = Optimum(np.array(flatten(problem.start)), -1.0, Status.ITERATION_LIMIT, (Step(1, 1, -1.0),))
        return tuple(fold_paths.build_at(problem, optimum, weight) for weight in (0.0, 2.0))

    if not request.param:
        monkeypatch.setattr(trials, "fit_path", lambda *args: FoldPath(start(*args), 0.5))
        monkeypatch.setattr(final_fit, "trace_path", start)


# Records -------------------------------------------------------------------------------------------------------------


def measure_errors(model, records):
    """Check that it simulates its records with finite bands; return the errors relative to the standard deviations."""
    assert model.choice is not None and model.status is not Status.INTERRUPTED
    errors, measured = [], []
    for record in records:
        path = model.simulate(record.u) if record.u.shape[1] else model.simulate(steps=len(record))
        assert np.isfinite(path.mean).all() and np.isfinite(path.std).all()
        errors.append((path.mean - record.y)[path.skip :])
        measured.append(record.y)
    scale = np.nanstd(np.concatenate(measured), axis=0)
    return np.sqrt(np.nanmean(np.concatenate(errors) ** 2, axis=0)) / scale


def test_records_of_very_different_lengths(any_record):
    records = [small.record(0, SAMPLES), small.record(1, 30), small.record(2, 9)]
    with pytest.warns(UserWarning, match="2 of 3 records have fewer than [0-9]+ samples and are left out"):
        model = revarb.fit(records, jobs=1)
    assert len(model.final_states) == 1
    assert measure_errors(model, records) < 0.6


@pytest.mark.slow
def test_one_output_is_linear_and_one_is_not(any_record):
    line, curve = linear_record(), small.record(samples=SAMPLES)
    record = Series(np.column_stack([line.u, curve.u]), np.column_stack([line.y, curve.y]))
    errors = measure_errors(revarb.fit(record, jobs=1), [record])
    assert errors.shape == (2,) and errors.max() < 0.8


@pytest.mark.slow
def test_missing_outputs(any_record):
    record = small.with_gaps(small.record(samples=SAMPLES, outputs=2), (slice(30, 40), 0), slice(70, 75), 100)
    measure_errors(revarb.fit(record, jobs=1), [record])


def test_all_stretches_of_the_first_fold_are_missing(any_record):
    """Four folds take turns: without any output in the stretches of one of them, the others decide."""
    stretches = choose._hold_out([RECORD]).stretches
    record = small.with_gaps(RECORD, *(stretch.rows for stretch in stretches if stretch.fold == 0))
    model = revarb.fit(record, jobs=1)
    measure_errors(model, [record])
    assert all(candidate.stretches > 0 for candidate in model.choice.candidates)


@pytest.mark.slow
def test_a_system_without_inputs(any_record):
    y = np.sin(0.3 * np.arange(SAMPLES)) + 0.05 * np.random.default_rng(0).normal(size=SAMPLES)
    model = revarb.fit(Series(None, y), jobs=1)
    assert model.input_names == () and np.isfinite(model.simulate(steps=50).mean).all()


def test_a_stretch_where_nothing_moves(any_record):
    y = np.array(RECORD.y)
    y[60:95] = y[60]
    measure_errors(revarb.fit(Series(RECORD.u, y), jobs=1), [RECORD])


def test_long_records_are_chosen_on_parts_and_fitted_whole(any_record, monkeypatch):
    monkeypatch.setattr(parts, "MAX_ROWS", 300)
    monkeypatch.setattr(parts, "PART_ROWS", 140)
    record = linear_record(samples=700)
    model = revarb.fit(record, jobs=1)
    assert model.scaling.y_mean == pytest.approx(record.y.mean())
    assert measure_errors(model, [record]) < 0.2


def move_once():
    """The second output moves in one stretch only: without it there is nothing to fit."""
    y = np.column_stack([RECORD.y[:, 0], np.zeros(SAMPLES)])
    y[64:67, 1] = [1.0, 2.0, 1.0]
    return Series(RECORD.u, y)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(small.record(samples=40), id="short", marks=pytest.mark.slow),
        pytest.param(
            small.with_gaps(RECORD, slice(0, 62), slice(70, None)), id="measured in one stretch", marks=pytest.mark.slow
        ),
        pytest.param(move_once(), id="moves in one stretch", marks=pytest.mark.slow),
    ],
)
def test_records_that_leave_nothing_to_hold_out(record, monkeypatch, tmp_path):
    quick = replace(RECIPES["linear"], stages=(Stage(("mu", "zeta", "w", "linear"), 3),), free_run_iterations=3)
    monkeypatch.setitem(final_fit.RECIPES, "linear", quick)
    message = "too short, or too little of them is measured, to hold anything out: a default model is fitted, and its"
    with pytest.warns(UserWarning, match=message):
        model = revarb.fit(record, jobs=1)
    assert isinstance(model, FittedRGP) and model.calibration is None and model.spec.linear
    assert "to hold anything out: this is the default" in model.choice.sentence and model.choice.scored_by == "nothing"
    measure_errors(model, [record])
    assert revarb.load(model.save(tmp_path / "m.rgp")).choice == model.choice


# Refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 0}, r"jobs \(or -1 for one per core\) must be a whole number of at least 1, received 0"),
        ({"jobs": -2}, "jobs .* received -2"),
        ({"members": 0}, "members must be a whole number of at least 1, received 0"),
        ({"seed": -1}, "seed must be a whole number from 0 to"),
        ({"train": Series(np.ones(SAMPLES), RECORD.y)}, r"input column 'u' is constant \(1.0\) in the training data"),
        ({"train": Series(RECORD.u, np.ones(SAMPLES))}, "output column 'y' is constant"),
        ({"train": Series(RECORD.u, np.full(SAMPLES, np.nan))}, "record 0 has no measured output value"),
        ({"train": small.record(samples=2)}, "record 0 has 2 samples, but lags=1, .* need at least 3"),
        ({"train": []}, "record"),
        ({"train": [RECORD, small.record(samples=SAMPLES, inputs=2)]}, "record 1"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        revarb.fit(**{"train": RECORD, "jobs": 1, **arguments})
    assert "\n" not in str(caught.value)


# Ctrl-C --------------------------------------------------------------------------------------------------------------


def test_ctrl_c_returns_the_linear_model_and_resume_goes_on(chosen, monkeypatch, unfinished):
    with pytest.MonkeyPatch.context() as patch:
        press_ctrl_c(patch, trials, "fit_path", 3)
        partial = revarb.fit(RECORD, jobs=1)
    assert isinstance(partial, FittedARX) and partial.status is Status.INTERRUPTED
    assert partial.choice.sentence.startswith(f"Interrupted: {partial.choice.taken} is the best of the candidates")
    assert {candidate.note for candidate in partial.choice.candidates} == {"taken", "unfinished"}
    assert sum(path.suffix == ".json" for path in unfinished.iterdir()) == 2  # of four folds
    calls = press_ctrl_c(monkeypatch, trials, "fit_path", 0)
    assert_same(revarb.fit(RECORD, jobs=1, resume=True), chosen)
    assert [args[3] for args in calls] == [2, 3]
    assert list(unfinished.iterdir()) == []


def test_an_interrupted_second_call_keeps_its_fits(chosen, monkeypatch, unfinished):
    """Inside of `keep_journals`, as in an experiment: what the first call has left goes at once, not in the end."""
    with keep_journals():
        for call in (2, 3):
            with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
                warnings.filterwarnings("ignore", "an unfinished choice like this one exists")
                press_ctrl_c(patch, trials, "fit_path", call)
                revarb.fit(RECORD, jobs=1)
    assert sum(path.suffix == ".json" for path in unfinished.iterdir()) == 2
    calls = press_ctrl_c(monkeypatch, trials, "fit_path", 0)
    assert_same(revarb.fit(RECORD, jobs=1, resume=True), chosen)
    assert [args[3] for args in calls] == [2, 3]


def test_ctrl_c_before_anything_is_finished(monkeypatch):
    monkeypatch.setattr(choose, "try_linear", lambda held_out: [])
    press_ctrl_c(monkeypatch, trials, "fit_path", 1)
    with pytest.raises(KeyboardInterrupt):
        revarb.fit(RECORD, jobs=1)


def test_ctrl_c_keeps_a_candidate_that_is_complete(monkeypatch, tmp_path):
    use_structures(monkeypatch, FIRST, SECOND)
    press_ctrl_c(monkeypatch, trials, "fit_path", 8)  # the last fold of the second one
    model = revarb.fit(RECORD, jobs=1)
    assert isinstance(model, FittedRGP) and model.status is Status.INTERRUPTED and model.calibration is None
    assert model.choice.sentence.endswith("It was fitted to a part of the records, and its bands are not calibrated.")
    assert revarb.load(model.save(tmp_path / "m.rgp")).choice == model.choice


def test_ctrl_c_in_the_last_fit(chosen, monkeypatch):
    with pytest.MonkeyPatch.context() as patch:
        press_ctrl_c(patch, final_fit, "trace_path", 1)
        model = revarb.fit(RECORD, jobs=1)
    assert isinstance(model, FittedRGP) and model.status is Status.INTERRUPTED and model.calibration is None
    assert model.choice.taken == chosen.choice.taken
    calls = press_ctrl_c(monkeypatch, trials, "fit_path", 0)
    assert_same(revarb.fit(RECORD, jobs=1, resume=True), chosen)
    assert calls == []


@pytest.mark.parametrize("fit", [1, 2])
def test_ctrl_c_in_the_last_fits_of_a_mixture(monkeypatch, fit):
    use_structures(monkeypatch, FIRST, SECOND)
    press_ctrl_c(monkeypatch, final_fit, "trace_path", fit)
    model = revarb.fit(RECORD, jobs=1, members=2)
    assert isinstance(model, Ensemble) and model.status is Status.INTERRUPTED and len(model) == 1
    assert np.isfinite(model.simulate(RECORD.u).std).all()


def test_progress_ends_at_the_number_of_steps(monkeypatch):
    """Steps of units that were resumed, dropped or ended early are counted."""
    seen = []
    held_out = choose._hold_out([RECORD])
    progress = trials.Progress(lambda done, text: seen.append((done, text)), [])
    units = [Unit(Structure("a", FIRST), fold) for fold in (0, 1)]
    report = progress.make_report(units)
    report(0, 5, "")
    report(1, 2, "")
    report(0, 7, "")
    assert [done for done, _ in seen] == [5, 7, 9] and seen[0][1] == "a, 2 lags, fold 1"
    progress.skip(units[:1])
    progress.make_final_report("a")(1, "")
    assert seen[-1] == (9 + sum(FIRST.recipe.iterations) + 1, "fitting a")
    assert choose._count_steps(held_out, "normal") == 5 * sum(FIRST.recipe.iterations)
