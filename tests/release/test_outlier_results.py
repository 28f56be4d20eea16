"""results/outliers.json, if it has been written: every record, condition, model and seed of the shipped table."""

import pytest

from support.results import FILES, read_experiment, read_results, rows_of, values

STUDENT = "REVARB, Student-t"
OURS = ["REVARB, Gaussian", STUDENT]
ABSENT = not any(path.stem == "outliers" for path in FILES)

pytestmark = pytest.mark.skipif(ABSENT, reason="results/outliers.json has not been written: revarb reproduce outliers")


def conditions():
    shares = read_experiment("outliers")["shares"]
    return [("clean", 0.0), *((kind, share) for kind in ("spikes", "stuck") for share in shares)]


def names():
    return [record["name"] for record in read_experiment("outliers")["records"]]


def test_it_is_of_the_whole_table():
    meta = read_results("outliers")["meta"]
    assert meta["table"] == "outliers" and meta["seeds"] >= 5 and "--only" not in meta["command"]
    assert list(dict.fromkeys(row["dataset"] for row in rows_of("outliers"))) == names()


def test_every_record_has_every_condition_model_and_seed_once():
    seeds, rivals = read_results("outliers")["meta"]["seeds"], read_experiment("outliers")["rivals"]
    expected = {
        (name, *condition, model, seed)
        for name in names()
        for condition in conditions()
        for model in (*rivals, *OURS)
        for seed in range(seeds)
    }
    columns = ("dataset", "kind", "share", "model", "seed")
    found = [(*(row[name] for name in columns), row["method"]) for row in rows_of("outliers")]
    assert {each[:-1] for each in found} == expected and len(found) == len(set(found))


def test_all_models_of_a_record_are_scored_on_the_same_rows():
    for name in names():
        assert len(set(values(rows_of("outliers"), "skip", dataset=name))) == 1


def test_no_fit_with_student_t_noise_failed_for_spikes():
    failed = [row for row in rows_of("outliers") if row["model"] == STUDENT and row["reason"]]
    assert {row["kind"] for row in failed} <= {"stuck"}


def test_only_student_t_noise_says_what_it_found():
    for row in rows_of("outliers"):
        assert ("listed_falsely" in row) == (row["model"] == STUDENT)
        if row["model"] == STUDENT:
            assert (row["found"] is None) == (row["kind"] == "clean")
