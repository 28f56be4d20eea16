"""results/family.json, if it has been written: every fit of the shipped table once, and what it must show."""

import pytest

from revarb.experiments.family import load_family
from revarb.experiments.family_targets import MARKOV, MEAN_FIELD, PRIOR, default_rows, over_seeds
from revarb.experiments.known_systems import SYSTEMS
from support.results import FILES, read_results, rows_of

ABSENT = not any(path.stem == "family" for path in FILES)

pytestmark = pytest.mark.skipif(ABSENT, reason="results/family.json has not been written: revarb reproduce family")


def test_every_fit_of_the_table_is_there_once(recorded_data):
    meta = read_results("family")["meta"]
    assert meta["table"] == "family" and meta["seeds"] >= 5 and "--only" not in meta["command"]
    expected = [fit.key for fit in load_family().list_fits(meta["seeds"])]
    found = dict.fromkeys((row["dataset"], row["model"], row["seed"]) for row in rows_of("family"))
    assert sorted(found) == sorted(expected)
    runs = [
        (row["dataset"], row["model"], row["seed"], row["start"], row["method"])
        for row in rows_of("family")
        if row["part"] == "records"
    ]
    assert len(runs) == len(set(runs))


def test_no_run_failed():
    assert [row["reason"] for row in rows_of("family") if row["reason"] is not None] == []


def test_structures_reach_the_published_errors_of_their_methods_on_four_of_five_records():
    table = load_family()
    for model in (PRIOR, MARKOV):
        reached = [
            over_seeds(default_rows(rows_of("family")), "rmse", dataset=each.name, model=model, start="continue").median
            <= table.limits.of_published * each.published[model]
            for each in table.records
        ]
        assert sum(reached) >= table.limits.records, model


def test_the_mean_field_structure_estimates_the_largest_process_noise():
    for name in SYSTEMS:
        ratios = {
            model: over_seeds(rows_of("family"), "process_ratio", dataset=name, model=model).median
            for model in (PRIOR, MARKOV, MEAN_FIELD)
        }
        assert ratios[MEAN_FIELD] > ratios[MARKOV] and ratios[MEAN_FIELD] > ratios[PRIOR], name
