"""results/mpc.json, if it has been written: every controller and seed once, and what the table must show."""

import statistics

import pytest

from support.results import FILES, median, read_experiment, read_results, rows_of, values

PLANT, RGP, TIGHTENED, ARX = "plant's own equations", "RGP", "RGP, tightened", "ARX"
ABSENT = not any(path.stem == "mpc" for path in FILES)

pytestmark = pytest.mark.skipif(ABSENT, reason="results/mpc.json has not been written: revarb reproduce mpc")


def test_every_controller_has_every_seed_once():
    meta = read_results("mpc")["meta"]
    assert meta["table"] == "mpc" and meta["seeds"] >= 3
    found = [(row["controller"], row["seed"]) for row in rows_of("mpc")]
    expected = {(name, seed) for name in (PLANT, RGP, TIGHTENED, ARX) for seed in range(meta["seeds"])}
    assert set(found) == expected and len(found) == len(expected)


def test_every_optimisation_converged_over_the_whole_task():
    samples = sum(count for _, count in read_experiment("mpc")["task"]["targets"])
    assert {row["samples"] for row in rows_of("mpc")} == {samples}
    assert [row["not_solved"] for row in rows_of("mpc") if row["not_solved"]] == []


def test_the_learnt_model_tracks_nearly_as_well_as_the_plants_own_equations():
    plant, rgp, arx = (median(rows_of("mpc"), "tracking_rmse", controller=name) for name in (PLANT, RGP, ARX))
    assert plant <= rgp <= arx and rgp <= read_experiment("mpc")["limits"]["of_plant"] * plant


def test_the_tightened_controller_never_exceeds_the_limit():
    assert sum(values(rows_of("mpc"), "violations", controller=TIGHTENED)) == 0


def test_a_solve_is_quick():
    for name in (RGP, TIGHTENED):
        found = statistics.median(values(rows_of("mpc"), "solve_ms", controller=name))
        assert found < read_experiment("mpc")["limits"]["milliseconds"]
