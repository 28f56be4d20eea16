"""The family: fits of every kind of record, tables, targets and the picture, from quick models and made-up rows."""

import json
from dataclasses import replace

import numpy as np
import pytest

from revarb.baselines.arx import ARX
from revarb.baselines.state_space.gpssm import GPSSM
from revarb.errors import InputError
from revarb.experiments import load_family
from revarb.experiments.family import Family
from revarb.experiments.family_runs import FamilyFit, Sizes, run_family_fit
from revarb.experiments.family_targets import (
    CHOSEN,
    MARKOV,
    MEAN_FIELD,
    MODELS,
    PRIOR,
    R0,
    REDUCED_RANK,
    list_family_targets,
)
from revarb.experiments.field_runs import RowsFile
from revarb.experiments.known_systems import SYSTEMS
from support import small
from support.small_rivals import Broken

QUICK = GPSSM(states=1, inducing=6, subsequence=10, window=3, batch=2, samples=2, updates=50)
SIZES = Sizes(known_samples=40, long_samples=60, long_noise_std=0.3, cold_skip=5)


def record_row(dataset, model, seed, rmse, start="continue", method="samples", reason=None):
    return {"part": "records", "dataset": dataset, "model": model, "seed": seed, "start": start, "method": method,
            "rmse": rmse, "nrmse": rmse, "coverage95": 0.9, "fit_seconds": 1.0, "reason": reason}  # fmt: skip


def known_row(dataset, model, ratio):
    return {"part": "known states", "dataset": dataset, "model": model, "seed": 0, "reason": None,
            "transition_error": 0.1, "process_std": 0.1 * ratio, "process_ratio": ratio, "output_std": 0.2}  # fmt: skip


@pytest.fixture
def rows():
    table = load_family()
    errors = [
        record_row(record.name, model, seed, 0.9 * record.published.get(model, 1.0), start)
        for record in table.records
        for model in MODELS
        for seed in range(2)
        for start in ("continue", "cold")
    ]
    known = [
        known_row(name, model, ratio)
        for name in SYSTEMS
        for model, ratio in ((PRIOR, 0.5), (MARKOV, 1.1), (MEAN_FIELD, 2.0))
    ]
    curve = {"part": "curve", "dataset": "kink", "model": PRIOR, "seed": 0, "reason": None}
    points = [{**curve, "x": x, "truth": x, "learnt": x, "learnt_std": 0.1} for x in (0.0, 1.0)]
    long = [record_row("narendra_li", model, 0, 0.2, "cold") for model in (REDUCED_RANK, CHOSEN)]
    return [*errors, *known, *points, *long]


def test_the_shipped_table_has_every_model_and_record(monkeypatch):
    monkeypatch.setattr("revarb.experiments.family.datasets.load", lambda name: _Split())  # its lags are asked for
    table = load_family()
    fits = table.list_fits(5)
    assert {fit.model for fit in fits if fit.dataset == "drive"} == set(MODELS)
    assert {fit.model for fit in fits if fit.dataset == "kink"} == {PRIOR, MARKOV, MEAN_FIELD}
    assert {fit.model for fit in fits if fit.dataset == "narendra_li"} >= {REDUCED_RANK}
    assert set(table.models("narendra_li")) == {REDUCED_RANK, CHOSEN}
    assert max(fit.seed for fit in fits if fit.model == CHOSEN) == table.chosen_seeds - 1
    assert table.count_steps(5) == len(fits) == len({fit.key for fit in fits})
    assert table.models("kink")[PRIOR].states == 1


def test_the_lags_of_a_benchmark_are_those_of_its_record(recorded_data):
    assert load_family().models("drive")[R0].lags == 10


def test_some_records_can_be_run_alone():
    table = load_family().only(["drive", "kink"])
    assert table.datasets == ["drive", "kink"]
    with pytest.raises(InputError, match="no record 'river'"):
        load_family().only(["river"])


def test_tables_and_targets(rows):
    table = load_family()
    part = table.summarise(rows)
    titles = [grid.title for grid in part.grids()]
    assert len(titles) == 4 and "continued" in titles[0] and "cold" in titles[1]
    continued = part.grids()[0]
    assert continued.rows[0][1] == "0.622 [0.691]" and continued.rows[-1][0] == "EnVI (published)"
    targets = list_family_targets(rows, table.records, table.limits)
    assert len(targets) == 8 and all(target.met for target in targets)
    assert part.sentences()[0] == "8 of 8 targets are met."


def test_a_failed_seed_is_no_median(rows):
    table = load_family()
    spoilt = [*rows, record_row("drive", PRIOR, 2, None, reason="diverged")]
    part = table.summarise(spoilt)
    assert "–" in part.grids()[0].rows[0][3]
    assert part.sentences()[-1] == "1 run(s) failed: drive, GPSSM, prior: diverged"


def test_the_picture_and_the_page(rows):
    part = load_family().summarise(rows)
    figure = part.figures()["family_transitions"]
    assert len(figure.axes) == 1 and len(figure.axes[0].lines) == 2
    page = load_family().page([part], {"command": "revarb reproduce family"})
    assert "Known states" in page and "<svg" in page
    assert load_family().summarise([row for row in rows if row["part"] != "curve"]).figures() == {}


@pytest.mark.slow
def test_a_known_system_is_judged_in_raw_units():
    rows = run_family_fit(FamilyFit("kink", "m", 0), {"m": QUICK}, SIZES)
    found, points = rows[0], rows[1:]
    assert found["part"] == "known states" and found["true_process_std"] == SYSTEMS["kink"].process_std
    np.testing.assert_allclose(found["process_ratio"], found["process_std"] / found["true_process_std"])
    assert len(points) == 41 and {row["part"] for row in points} == {"curve"}
    json.dumps(rows)


@pytest.mark.parametrize("name", SYSTEMS)
def test_generated_records_follow_their_transition(name):
    system = SYSTEMS[name]
    record, x = system.generate(2000, 0)
    moved = x[1:] - system.transition(x[:-1], record.u[:-1])
    np.testing.assert_allclose(moved.std(), system.process_std, rtol=0.05)
    np.testing.assert_allclose((record.y - x).std(), system.output_std, rtol=0.05)
    assert np.abs(x).max() < 10.0


@pytest.fixture
def table(monkeypatch):
    """The table with records and models that take no time."""
    monkeypatch.setattr("revarb.experiments.family_runs.datasets.load", lambda name: _Split())
    return replace(load_family(), sizes=SIZES, records=load_family().records[:1], generated=())


class _Split:
    train, test, lags = small.record(0), small.record(1), 2


def test_finished_fits_are_kept(table, tmp_path, monkeypatch):
    models = {PRIOR: ARX(lags=2, input_lags=2), MARKOV: Broken()}
    monkeypatch.setattr(Family, "models", lambda self, dataset, jobs=1: models)
    kept, seen = replace(table, finished=RowsFile(tmp_path / "rows.jsonl")), []
    with pytest.raises(RuntimeError, match="no\nluck"):  # not an error of ours: it is raised
        list(kept.run(1, report=seen.append))
    models.pop(MARKOV)
    [part] = kept.run(2, report=seen.append)
    assert seen == ["actuator: GPSSM, prior"] * 2
    assert {(row["seed"], row["start"]) for row in part.rows} == {
        (0, "cold"),
        (0, "continue"),
        (1, "cold"),
        (1, "continue"),
    }
