"""The benchmarks: settings, a quick run with stand-ins, and targets that are computed from the rows."""

import dataclasses
from types import SimpleNamespace

import revarb
from studies.benchmarks import CHOSEN, R0, Benchmarks, Outcome, Record, list_outcomes
from studies.records import Benchmark
from studies.study import run_fits
from studies.tables import select
from support.study_rows import score_row

REPORT = ["drive", "actuator", "artificial_recorded"]
SCALED = ["robot_arm", "heating", "thermic", "cstr", "winding"]


class StandIn:
    """Chooses a linear model with even seeds; with odd ones it claims to have two methods."""

    def fit(self, train, seed=0):
        model = revarb.ARX(2, 2).fit(train)
        methods = ("residuals",) if seed % 2 == 0 else ("mean", "moments")

        def simulate(u, method):
            path = model.simulate(u)
            return dataclasses.replace(path, method=method, std=None if method == "mean" else path.std)

        choice = SimpleNamespace(taken="linear" if seed % 2 == 0 else "plain")
        return SimpleNamespace(simulate=simulate, methods=methods, choice=choice, status=model.status)


def quick(*records, models=None):
    study = Benchmarks(seeds=1)
    study.records = records
    study.models = lambda lags: models or {"Mean": revarb.Mean(), "ARX": revarb.ARX(2, 2), R0: revarb.Mean(),
                                           CHOSEN: StandIn()}  # fmt: skip
    return study


def rows_of(dataset, arx, r0, chosen, **others):
    """Rows of a record; the chosen model has two methods of the same error."""
    pairs = (("Mean", 1.0), ("ARX", arx), (R0, r0))
    ours = [score_row(dataset, CHOSEN, chosen, method, **others) for method in ("mean", "moments")]
    return [*(score_row(dataset, model, rmse) for model, rmse in pairs), *ours]


def test_a_quick_study():
    """Drawn records have five fits whatever the seeds."""
    study = quick(Record(Benchmark("drawn", "artificial", drawn=True), "development", aim=9.0))
    rows, drawn = run_fits(study)
    chosen = [(each["seed"], each["method"], each["taken"]) for each in select(rows, model=CHOSEN)]
    assert chosen[:3] == [(0, "residuals", "linear"), (1, "mean", "plain"), (1, "moments", "plain")]
    assert all("taken" not in each for each in select(rows, model="ARX")) and len(select(rows, model="ARX")) == 5
    *_, errors, choice = study.tables(rows)
    assert errors.rows[0][:2] == ["drawn", "raw"] and choice.rows[0][-1] == "linear (3), plain (2)"
    assert set(study.figures(rows, drawn)) == {"drawn_all", "reliability_drawn", "drawn"}
    assert "linear (3), plain (2)" in study.page(rows, drawn, {})


def test_targets_are_computed_from_the_rows():
    records = [
        Record(Benchmark("good"), "development", aim=0.2),
        Record(Benchmark("bad"), "development", aim=0.2, aim_nlpd=-1.0),
        Record(Benchmark("shown"), "report", aim=0.2),
    ]
    rows = [
        *rows_of("good", arx=0.2, r0=0.3, chosen=0.2),
        *rows_of("bad", arx=0.2, r0=0.1, chosen=0.25, coverage95=0.7),
        *rows_of("shown", arx=0.2, r0=0.1, chosen=0.15),
        score_row("shown", "LSTM", 0.1),
    ]
    targets = quick(*records).targets(rows)
    assert len(targets) == 13 and [(each.what, each.found) for each in targets if not each.met] == [
        ("bad: RMSE by mean at most 0.2", "0.250"),
        ("bad: NLPD at most -1", "0.000"),
        ("bad: at most 1.05 × the best baseline", "1.250"),
        ("bad: its 95 % band holds 88% to 99%", "70.0%"),
        ("shown: at most 1.05 × the best baseline", "1.500"),
    ]
    assert Outcome(records[2], select(rows, dataset="shown")).best_rival == (0.1, "LSTM")


def test_a_failed_seed_misses_the_targets_of_its_record():
    failed = score_row("one", CHOSEN, None, "", seed=1, reason="diverged", coverage95=None)
    record = Record(Benchmark("one"), "report", aim=0.2)
    rows = [*rows_of("one", 0.2, 0.2, 0.1), failed]
    assert not any(target.met for target in quick(record).targets(rows))
    assert list_outcomes(rows) == [] and Outcome(record, rows).taken == "–"
