"""Every model on the same footing: the same records, the same cold start, the same rows scored."""

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from revarb.baselines.arx import ARX
from revarb.baselines.gp_narx import GPNARX
from revarb.baselines.lstm import LSTM
from revarb.baselines.mean import Mean
from revarb.baselines.mlp_narx import MLPNARX
from revarb.config.rgp import RGP
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, as_records
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, check_integer, check_seed
from revarb.evaluation.comparison.lines import Line, summarise
from revarb.evaluation.comparison.runs import Run, Spec, lost_run, run_all
from revarb.evaluation.comparison.verdict import Score, state_verdict
from revarb.evaluation.reliability import BandCheck, check_bands
from revarb.evaluation.scoring import Scores, pooled_scores
from revarb.runtime.progress import progress_bar


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

    @property
    def score(self) -> Score:
        """What ranks the models: RMSE, or NRMSE where several outputs may have different units."""
        return "rmse" if len(self.test[0].output_names) == 1 else "nrmse"

    @property
    def verdict(self) -> str:
        """What to make of it, in a sentence or two."""
        return state_verdict(self.lines, self.score)

    def by_model(self) -> dict[str, list[Trajectory]]:
        """The first test record as every model simulates it, by all its methods, the plainest first."""
        models = dict.fromkeys(model for model, _ in self.paths)
        return {model: [paths[0] for (name, _), paths in self.paths.items() if name == model] for model in models}

    def reliability(self) -> dict[tuple[str, str], BandCheck]:
        """How honest the bands are, over all test records, by (model, method), of the simulations that have one."""
        outputs = [record.y for record in self.test]
        banded = {key: paths for key, paths in self.paths.items() if all(path.std is not None for path in paths)}
        with np.errstate(over="ignore", invalid="ignore"):  # a model may have run away
            return {key: check_bands(paths, outputs, self.skip) for key, paths in banded.items()}


def default_models(lags: int = 10, input_lags: int = 10, input_delay: int = 1) -> dict[str, Spec]:
    """REVARB and its rivals, with common lags; ARX chooses its order up to them or, if that is more, up to ten."""
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

    models    by the names of their rows; default: `revarb.comparison.default_models()`, REVARB and its rivals
    seeds     how many (0, 1, …), or which
    jobs      number of processes; the numbers do not depend on it
    skip      rows of every test record that are not scored; default: as many as the slowest model needs to settle
    progress  draws a bar where the output is a terminal

    A model that fails is a row with its reason.
    """
    records = as_records(train)
    Standardiser.from_records(records)  # a constant column is the caller's mistake, not every model's failure
    tests = _checked_test(records, as_records(test))
    chosen, numbers = _checked_models(models), _checked_seeds(seeds)
    jobs, skip = check_integer("jobs", jobs, least=1), _checked_skip(skip, tests)
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
    ordered = [runs.get((name, seed), lost_run(name, seed)) for name in models for seed in seeds]
    for message in dict.fromkeys(f"{run.model}: {text}" for run in ordered for text in run.warnings):
        warnings.warn(message, stacklevel=3)
    return _comparison(ordered, tuple(test), skip)


def _comparison(runs: Sequence[Run], test: tuple[Series, ...], skip: int | None) -> Comparison:
    paths: dict[tuple[str, str], tuple[Trajectory, ...]] = {}
    for run in runs:
        for method, simulated in run.simulated.items():
            paths.setdefault((run.model, method), simulated.paths)
    if skip is None:
        skip = max((path.skip for several in paths.values() for path in several), default=0)
    _checked_skip(skip, test)
    rows = tuple(row for run in runs for row in _rows(run, test, skip))
    return Comparison(rows, paths, test, skip)


def _rows(run: Run, test: Sequence[Series], skip: int) -> list[dict[str, Any]]:
    common = {"model": run.model, "start": "cold", "seed": run.seed, "status": run.status, "reason": run.reason,
              "fit_seconds": run.fit_seconds}  # fmt: skip
    if run.reason is not None:
        nothing = dict.fromkeys((item.name for item in fields(Scores)), float("nan"))
        return [{**common, "method": "", **nothing, "skip": skip, "simulate_seconds": float("nan")}]
    outputs = [record.y for record in test]
    rows = []
    for method, simulated in run.simulated.items():
        result = pooled_scores(simulated.paths, outputs, skip)
        row = {**common, "method": method, **asdict(result), "simulate_seconds": simulated.seconds}
        if not np.isfinite(result.rmse):
            row |= {
                "status": "failed",
                "reason": f"its error is {result.rmse}: the outputs are too large",
            }
        rows.append(row)
    return rows


def _checked_test(train: tuple[Series, ...], test: tuple[Series, ...]) -> tuple[Series, ...]:
    for what in ("input_names", "output_names", "dt"):
        ours, theirs = getattr(train[0], what), getattr(test[0], what)
        if ours != theirs:
            raise InputError(f"train and test must agree in {what}: train has {ours}, test has {theirs}")
    if all(np.isnan(record.y).all() for record in test):
        raise InputError("the test part has no measured output value, so there is nothing to score")
    return test


def _checked_skip(skip: int | None, test: Sequence[Series]) -> int | None:
    if skip is None:
        return None
    skip, shortest = check_integer("skip", skip, least=0), min(len(record) for record in test)
    if skip >= shortest:
        raise InputError(f"a test record has {shortest} rows, but {skip} are left out; use a longer one or fewer lags")
    return skip


def _checked_models(models: Mapping[str, Spec] | None) -> dict[str, Spec]:
    chosen = default_models() if models is None else models
    if not isinstance(chosen, Mapping) or not chosen:
        raise InputError(f"models must name at least one, such as {{'REVARB': revarb.RGP()}}, received {chosen!r}")
    for name, spec in chosen.items():
        if not isinstance(name, str):
            raise InputError(f"a model must be named by a text, received {name!r}")
        if isinstance(spec, type) or not isinstance(spec, Spec):
            raise InputError(f"model {name!r} must be a configuration with fit(train, seed=…), received {spec!r}")
    return dict(chosen)


def _checked_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(seeds, Sequence) and not isinstance(seeds, str):
        numbers = tuple(check_seed(seed) for seed in seeds)
        if not numbers or len(set(numbers)) < len(numbers):
            raise InputError(f"seeds must name at least one seed, each once, received {seeds!r}")
        return numbers
    return tuple(range(check_integer("seeds (how many, or a list of them)", seeds, least=1)))
