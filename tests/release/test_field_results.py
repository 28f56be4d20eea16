"""results/field.json, if it has been written: every record, model and seed of the shipped table."""

import pytest

from support.results import FILES, median, read_experiment, read_results, rows_of, values

MODELS = ["Mean", "ARX", "GP-NARX", "LSTM", "REVARB (R0)", "revarb (chosen)"]
ABSENT = not any(path.stem == "field" for path in FILES)

pytestmark = pytest.mark.skipif(ABSENT, reason="results/field.json has not been written: revarb reproduce field")


def records():
    return {record["name"]: record for record in read_experiment("field")["records"]}


def test_it_is_of_the_whole_table():
    meta = read_results("field")["meta"]
    assert meta["table"] == "field" and meta["seeds"] >= 3 and "--only" not in meta["command"]
    assert list(dict.fromkeys(row["dataset"] for row in rows_of("field"))) == list(records())


def test_every_record_has_every_model_with_every_seed():
    """A method may be missing where the chosen model is linear, but no seed."""
    seeds, draws = read_results("field")["meta"]["seeds"], read_experiment("field")["draws"]
    for name, record in records().items():
        own = [row for row in rows_of("field") if row["dataset"] == name]
        assert list(dict.fromkeys(row["model"] for row in own)) == MODELS
        expected = set(range(draws if record.get("drawn") else seeds))
        for model in MODELS:
            found = [(row["seed"], row["method"]) for row in own if row["model"] == model]
            assert {seed for seed, _ in found} == expected and len(found) == len(set(found)), (name, model)


def test_all_models_of_a_record_are_scored_on_the_same_rows():
    for name in records():
        assert len(set(values(rows_of("field"), "skip", dataset=name))) == 1


def test_the_chosen_model_says_what_it_took():
    for row in rows_of("field"):
        assert bool(row.get("taken")) == (row["model"] == "revarb (chosen)" and row["reason"] is None)


def test_the_training_mean_has_the_error_that_was_measured_elsewhere():
    """So units and splits are right. The data's README scores after 2 L samples; z-scored, but for ball-beam."""
    expected = {"robot_arm": 1.00, "heating": 0.78, "thermic": 0.96, "cstr": 1.09, "winding": 1.01, "ballbeam": 0.073}
    for name, error in expected.items():
        assert median(rows_of("field"), "rmse", dataset=name, model="Mean") == pytest.approx(error, rel=0.05)


def test_nothing_of_the_chosen_model_failed():
    assert [row["reason"] for row in rows_of("field") if row["model"] == "revarb (chosen)" and row["reason"]] == []
