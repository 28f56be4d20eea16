"""Every model on the same footing: the same records, the same cold start, the same rows scored."""

import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from revarb.baselines import ARX, GPNARX, LSTM, MLPNARX, Mean
from revarb.comparison.runs import Run, Spec, run_all
from revarb.errors import InputError, check_seed, check_whole
from revarb.progress import progress_bar
from revarb.rgp import RGP
from revarb.scores import Scores, pooled_scores
from revarb.series import Series, as_records
from revarb.trajectory import Trajectory

SCORES = ("rmse", "nrmse", "nlpd", "coverage95", "fit_seconds", "simulate_seconds")
"""What is summarised over seeds."""


class Spread(NamedTuple):
    """Smallest, middle and largest value over the seeds that worked."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Line:
    """One model by one method, over all seeds. `failures` are the reasons of the seeds that did not work."""

    model: str
    method: str
    spread: Mapping[str, Spread]
    seeds: int
    failures: tuple[str, ...] = ()

    @property
    def worked(self) -> bool:
        """Whether at least one seed did."""
        return len(self.failures) < self.seeds

    @property
    def rmse(self) -> float:
        """Median RMSE; infinite where no seed worked."""
        return self.spread["rmse"].median if self.worked else float("inf")

    @property
    def reasons(self) -> list[str]:
        """Why seeds failed, each reason once, with their number."""
        counts = Counter(self.failures)
        return [f"{count} of {self.seeds} seed(s) failed: {reason}" for reason, count in counts.items()]


@dataclass(frozen=True, eq=False)
class Comparison:
    """What every model made of the test part.

    rows    one per model, method and seed: scores, seconds, status, and the reason where it failed
    paths   simulations of the first seed that worked, by (model, method): one trajectory per test record
    test    the records that were simulated
    skip    rows of every record that were not scored
    """

    rows: tuple[Mapping[str, Any], ...]
    paths: Mapping[tuple[str, str], tuple[Trajectory, ...]]
    test: tuple[Series, ...]
    skip: int

    @property
    def lines(self) -> list[Line]:
        """The rows over seeds: one line per model and method, in the order of the models."""
        return summarise(self.rows)

    def by_model(self) -> dict[str, list[Trajectory]]:
        """The first test record as every model simulates it, by all its methods, the plainest first."""
        models = dict.fromkeys(model for model, _ in self.paths)
        return {model: [paths[0] for (name, _), paths in self.paths.items() if name == model] for model in models}


def default_models(lags: int = 10, input_lags: int = 10, input_delay: int = 1) -> dict[str, Spec]:
    """REVARB and its rivals, with common lags; ARX chooses its order up to them or up to ten."""
    return {
        "Mean": Mean(),
        "ARX": ARX(max(lags, 10), max(input_lags, 10), input_delay),
        "MLP-NARX": MLPNARX(lags, input_lags, input_delay),
        "LSTM": LSTM(input_delay=input_delay),
        "GP-NARX": GPNARX(lags, input_lags, input_delay),
        "REVARB": RGP(lags, input_lags, input_delay),
    }


def compare(
    train: Series | Sequence[Series],
    test: Series | Sequence[Series],
    models: Mapping[str, Spec] | None = None,
    seeds: int | Sequence[int] = 3,
    *,
    jobs: int = 1,
    skip: int | None = None,
    progress: bool = False,
) -> Comparison:
    """Fit every model to `train` with every seed and score its free simulation of `test`.

    models    by the names of their rows; default: `default_models()`, REVARB and its rivals
    seeds     how many (0, 1, …), or which
    jobs      number of processes; on a CPU the numbers do not depend on it
    skip      rows of every test record that are not scored; default: as many as the slowest model needs to settle
    progress  draws a bar where the output is a terminal

    A model that fails is a row with its reason.
    """
    records, tests = as_records(train), _checked_test(as_records(train), as_records(test))
    chosen, numbers = _checked_models(models), _checked_seeds(seeds)
    jobs = check_whole("jobs", jobs, least=1)
    with progress_bar("comparing", len(chosen) * len(numbers), progress) as update:
        finished = itertools.count(1)
        return run_comparison(
            records, tests, chosen, numbers, jobs, skip, lambda run: update(next(finished), f"{run.model} done")
        )


def run_comparison(
    train: Sequence[Series],
    test: Sequence[Series],
    models: Mapping[str, Spec],
    seeds: Sequence[int],
    jobs: int,
    skip: int | None,
    report: Callable[[Run], None],
) -> Comparison:
    """`compare` with its arguments checked; `report` hears of every run that is done."""
    runs: dict[tuple[str, int], Run] = {}
    for run in run_all(models, seeds, train, test, jobs):
        runs[run.model, run.seed] = run
        report(run)
    ordered = [runs[name, seed] for name in models for seed in seeds]
    for message in dict.fromkeys(f"{run.model}: {text}" for run in ordered for text in run.warnings):
        warnings.warn(message, stacklevel=3)
    return _comparison(ordered, tuple(test), skip)


def summarise(rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Smallest, median and largest over seeds; a failed seed counts among the reasons, not in the numbers."""
    lines = []
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        reasons = tuple(row["reason"] for row in own if row["reason"] is not None)
        seeds = len({row["seed"] for row in own})
        for method in dict.fromkeys(row["method"] for row in own if row["reason"] is None) or ("",):
            good = [row for row in own if row["method"] == method and row["reason"] is None]
            spread = {score: _spread([row[score] for row in good]) for score in SCORES}
            lines.append(Line(model, method, spread, seeds, reasons))
    return lines


def _comparison(runs: Sequence[Run], test: tuple[Series, ...], skip: int | None) -> Comparison:
    paths: dict[tuple[str, str], tuple[Trajectory, ...]] = {}
    for run in runs:
        for method, simulated in run.simulated.items():
            paths.setdefault((run.model, method), simulated.paths)
    if skip is None:
        skip = max((path.skip for several in paths.values() for path in several), default=0)
    shortest = min(len(record) for record in test)
    if skip >= shortest:
        raise InputError(f"a test record has {shortest} rows, but {skip} are left out; use a longer one or fewer lags")
    rows = tuple(row for run in runs for row in _rows(run, test, skip))
    return Comparison(rows, paths, test, skip)


def _rows(run: Run, test: Sequence[Series], skip: int) -> list[dict[str, Any]]:
    common = {"model": run.model, "start": "cold", "seed": run.seed, "status": run.status, "reason": run.reason,
              "fit_seconds": run.fit_seconds}  # fmt: skip
    if run.reason is not None:
        nothing = dict.fromkeys((item.name for item in fields(Scores)), float("nan"))
        return [{**common, "method": "", **nothing, "skip": skip, "simulate_seconds": float("nan")}]
    outputs = [record.y for record in test]
    return [
        {**common, "method": method, **asdict(pooled_scores(simulated.paths, outputs, skip)),
         "simulate_seconds": simulated.seconds}
        for method, simulated in run.simulated.items()
    ]  # fmt: skip


def _spread(values: Sequence[float | None]) -> Spread:
    numbers = np.array([np.nan if value is None else value for value in values] or [np.nan], dtype=float)
    return Spread(float(numbers.min()), float(np.median(numbers)), float(numbers.max()))


def _checked_test(train: tuple[Series, ...], test: tuple[Series, ...]) -> tuple[Series, ...]:
    for what in ("input_names", "output_names", "dt"):
        ours, theirs = getattr(train[0], what), getattr(test[0], what)
        if ours != theirs:
            raise InputError(f"train and test must agree in {what}: train has {ours}, test has {theirs}")
    return test


def _checked_models(models: Mapping[str, Spec] | None) -> dict[str, Spec]:
    chosen = dict(default_models() if models is None else models)
    if not chosen:
        raise InputError("models is empty: name at least one, such as {'REVARB': revarb.RGP()}")
    for name, spec in chosen.items():
        if not isinstance(spec, Spec):
            raise InputError(f"model {name!r} is a {type(spec).__name__}, which has no fit(train, seed=…)")
    return chosen


def _checked_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(seeds, Sequence) and not isinstance(seeds, str):
        numbers = tuple(check_seed(seed) for seed in seeds)
        if not numbers or len(set(numbers)) < len(numbers):
            raise InputError(f"seeds must name at least one seed, each once, received {seeds!r}")
        return numbers
    return tuple(range(check_whole("seeds (how many, or a list of them)", seeds, least=1)))
