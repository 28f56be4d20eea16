"""Table 1 of the paper: REVARB and the baselines on system identification records, with several seeds.

Cold start, scored after L + L_u samples, RMSE in raw units. REVARB: H = 2, M = 100, recipe R0 (the defaults). The
baselines have the lags of the data set; ARX chooses its order up to ten.
"""

from typing import Any

import revarb
from studies.comparisons import NOTES, ComparisonStudy
from studies.records import Benchmark, baseline_models
from studies.study import no_failures
from studies.tables import (
    Grid,
    Rows,
    Target,
    at_most,
    between,
    by_record,
    default_lines,
    is_linear_enough,
    mean_only_lines,
    rank_models,
    score_grid,
)

MODEL = {"hidden": 2, "inducing": 100, "calibrate": False}  # as in the paper; `calibration` is the other table

# A baseline of ours that is better or worse than the paper's by a quarter needs a remark here (a target checks it).
BENCHMARKS = (
    Benchmark(
        "artificial_recorded",  # the record of the paper; artificial_drawn below has newly drawn ones
        paper={"MLP-NARX": 1.6334, "LSTM": 2.2438, "GP-NARX": 1.9245, "REVARB": 0.4513},
        remarks={
            "LSTM": "LSTM: better than the paper's 2.2438 only because early stopping keeps it near the training mean, "
            "where every baseline ends on this record; the paper's LSTM is worse than predicting the mean."
        },
    ),
    Benchmark(
        "drive",
        paper={"MLP-NARX": 0.4403, "LSTM": 0.4329, "GP-NARX": 0.4128, "REVARB": 0.2491},
        remarks={
            "MLP-NARX": "MLP-NARX: worse than the paper's 0.4403. The paper names neither the units nor the training "
            "rule of its MATLAB toolbox, nor how they were chosen; ours are chosen by cross-validation inside the "
            "training part, and 250 samples with ten lags are few for that."
        },
    ),
    Benchmark(
        "actuator",
        paper={"MLP-NARX": 0.4621, "LSTM": 0.5170, "GP-NARX": 1.5488, "REVARB": 0.3680},
        remarks={
            "LSTM": "LSTM: worse than the paper's 0.5170. The paper tried up to three layers of 2048 cells and does "
            "not say on what they were chosen; ours has 32 cells per layer, and its depth and number of steps are "
            "chosen on the last quarter of the training part. It varies strongly between seeds.",
            "GP-NARX": "GP-NARX: better than the paper's 1.5488 by the mean-only run. With its uncertainty propagated "
            "(moments) ours comes near that number; the paper does not say which of the two it simulated.",
        },
    ),
    # Not in the paper.
    Benchmark("dryer"),
    Benchmark("gas_furnace"),
    # The same system with newly drawn inputs and noise: seed k is the seed of the record and of the fit.
    Benchmark("artificial_drawn", "artificial", drawn=True),
)
LINEAR = ("dryer", "gas_furnace")  # where a linear model is enough

# What the table must show, beside errors within 5 % of the paper's by the mean-only run: RMSE and NLPD by moments.
MOMENTS = {"drive": (0.28, 0.20), "actuator": (0.37, 0.55)}
NEAR_PAPER, FAR = 1.05, (0.8, 1.25)
BAND = (0.90, 0.99)


class Table1(ComparisonStudy):
    """The paper's Table 1, and three records more."""

    name, title = "table1", "Table 1: free simulation, test RMSE"
    notes = (*NOTES, *(f"{each.name}, {remark}" for each in BENCHMARKS for remark in each.remarks.values()))
    benchmarks, shown = BENCHMARKS, "REVARB"

    def models(self, lags: int) -> dict[str, Any]:
        """The baselines and REVARB."""
        return {**baseline_models(lags), "REVARB": revarb.RGP(lags, lags, **MODEL)}

    def tables(self, rows: Rows) -> list[Grid]:
        """Every record with all models."""
        return [score_grid(_name(each), own, each.paper) for each, own in self._pair(rows)]

    def targets(self, rows: Rows) -> list[Target]:
        """The paper's numbers, bands that cover, and records on which a linear model is enough."""
        judged = [target for each, own in self._pair(rows) for target in judge_record(each, own)]
        return [no_failures(rows), *judged]

    def _pair(self, rows: Rows) -> list[tuple[Benchmark, Rows]]:
        # Every benchmark that has rows, with these.
        found = by_record(rows)
        return [(each, found[each.name]) for each in self.benchmarks if each.name in found]

    def headline(self, rows: Rows) -> str:
        """How often REVARB is first, and where a linear model is enough, by the mean-only runs."""
        found = self._pair(rows)
        sets = {each.name: next(iter(rank_models(own)), None) for each, own in found if each.paper}
        won = [name for name, first in sets.items() if first == "REVARB"]
        linear = [each.name for each, own in found if is_linear_enough(own)]
        enough = f" A linear model does as well on {' and '.join(linear)}." if linear else ""
        first_on = f"REVARB is first on {len(won)} of the paper's {len(sets)} sets ({', '.join(won) or 'none'})"
        return f"{first_on}, by the mean-only runs.{enough}"


def _name(benchmark: Benchmark) -> str:
    return benchmark.name if benchmark.paper else f"{benchmark.name} (not in the paper)"


def judge_record(benchmark: Benchmark, rows: Rows) -> list[Target]:
    """The targets of one record."""
    name, errors, targets = benchmark.name, rank_models(rows), []
    if benchmark.paper:
        paper = benchmark.paper["REVARB"]
        targets.append(at_most(f"{name}: RMSE of REVARB / {paper:g}", _error(rows) / paper, NEAR_PAPER))
        first = next(iter(errors), "none")
        targets.append(Target(f"{name}: REVARB has the smallest error", first == "REVARB", first))
        ratios = {model: errors.get(model, float("nan")) / number for model, number in benchmark.paper.items()}
        far = {model for model, ratio in ratios.items() if not FAR[0] <= ratio <= FAR[1]}
        what = f"{name}: a remark on every baseline that is a quarter better or worse than the paper's, and no other"
        targets.append(Target(what, far == set(benchmark.remarks), ", ".join(sorted(far)) or "none"))
    if name in MOMENTS:
        (rmse, nlpd), banded = MOMENTS[name], default_lines(rows)["REVARB"]
        targets.append(at_most(f"{name}: RMSE by moments", banded.range("rmse").median, rmse))
        targets.append(at_most(f"{name}: NLPD", banded.range("nlpd").median, nlpd))
        targets.append(between(f"{name}: share in the 95 % band", banded.range("coverage95").median, *BAND))
    if name in LINEAR:
        targets.append(Target(f"{name}: a linear model is enough", is_linear_enough(rows), f"{errors.get('ARX')}"))
    return targets


def _error(rows: Rows) -> float:
    return mean_only_lines(rows)["REVARB"].range("rmse").median


STUDY = Table1
