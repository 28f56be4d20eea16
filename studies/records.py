"""Records of a study, and what one model with one seed gives on them: rows with scores, and simulations."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

import revarb
from revarb import datasets

Paths = tuple[revarb.Trajectory, ...]
Score = Callable[[Paths, str], Mapping[str, Any]]


@dataclass(frozen=True)
class Benchmark:
    """A record of a table, the paper's numbers by model, and remarks on ours.

    With `z_scored` its outputs are scaled by the mean and standard deviation of the training part, so that errors of
    outputs with different units can be pooled.
    """

    name: str
    record: str = ""  # if not its name
    drawn: bool = False  # a new record for every seed
    z_scored: bool = False
    paper: Mapping[str, float] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)

    @property
    def source(self) -> dict[str, str]:
        """The columns of its rows that name it."""
        return {"dataset": self.name, "record": self.record or self.name}

    def load(self, seed: int) -> datasets.Split:
        """Load the record, or draw the one of this seed."""
        split = datasets.load(self.record or self.name, seed=seed if self.drawn else 0)
        return z_score_outputs(split) if self.z_scored else split


def z_score_outputs(split: datasets.Split) -> datasets.Split:
    """Scale the outputs by the training part. Models do so themselves, so only the units of the scores change."""
    mean, std = np.nanmean(split.train.y, axis=0), np.nanstd(split.train.y, axis=0)
    train, test = (
        revarb.Series(each.u, (each.y - mean) / std, each.dt, each.input_names, each.output_names)
        for each in (split.train, split.test)
    )
    return replace(split, train=train, test=test)


def baseline_models(lags: int) -> dict[str, Any]:
    """The baselines with common lags; ARX chooses its order up to these lags, or up to ten if more."""
    return {
        "Mean": revarb.Mean(),
        "ARX": revarb.ARX(max(lags, 10), max(lags, 10)),
        "MLP-NARX": revarb.MLPNARX(lags, lags),
        "LSTM": revarb.LSTM(),
        "GP-NARX": revarb.GPNARX(lags, lags),
    }


class Run(NamedTuple):
    """One fit: its rows, the simulations by start and method, and the model; None where it failed."""

    rows: list[dict[str, Any]]
    paths: Mapping[tuple[str, str], Paths]
    model: Any = None


def score_record(test: revarb.Series, skip: int | Mapping[str, int]) -> Score:
    """Scores of a run over one record; the first `skip` rows, which may depend on the start, are not scored."""

    def score(paths: Paths, start: str) -> dict[str, Any]:
        found = revarb.scores(paths[0], test.y, skip if isinstance(skip, int) else skip[start]).to_row()
        if not np.isfinite(found["rmse"]):
            raise ArithmeticError(f"its error is {found['rmse']}: the outputs are too large")
        return {name: value for name, value in found.items() if name != "outputs"}

    return score


def score_path(
    split: datasets.Split,
    model: str,
    path: revarb.Trajectory,
    seed: int | None,
    status: str,
    y: np.ndarray | None = None,
    skip: int | None = None,
) -> dict[str, Any]:
    """A row of one simulation of the test part, or of the outputs `y`, without the first `skip` rows."""
    found = revarb.scores(path, split.test.y if y is None else y, split.skip if skip is None else skip)
    return {"dataset": split.name, "model": model, "method": path.method, "start": path.start, "seed": seed,
            "status": str(status), "reason": None, **found.to_row()}  # fmt: skip


def run_model(
    name: str, spec: Any, seed: int, train: Any, test: Sequence[revarb.Series], score: Score, starts=("cold",)
) -> Run:
    """Fit a model, simulate the test records by all its methods from all starts, and score that.

    A model that fails is a row with its reason.
    """
    common = {"model": name, "seed": seed, "reason": None}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* leaves its training range")  # true of Actuator's test part
        try:
            begin = time.perf_counter()
            model = raise_if_interrupted(spec.fit(train, seed=seed))
            about = {"status": str(model.status), "fit_seconds": time.perf_counter() - begin}
        except Exception as error:
            return Run([{**common, "start": start, "method": "", **describe_failure(error)} for start in starts], {})
        if getattr(model, "choice", None) is not None:
            about["taken"] = model.choice.taken
        rows, paths = [], {}
        for start in starts:
            for method in model.methods:
                row = {**common, **about, "start": start, "method": method}
                try:
                    begin = time.perf_counter()
                    simulated = tuple(_simulate(model, each, method, start) for each in test)
                    row["simulate_seconds"] = time.perf_counter() - begin
                    rows.append({**row, **score(simulated, start)})
                    paths[start, method] = simulated
                except Exception as error:
                    rows.append({**row, **describe_failure(error)})
    return Run(rows, paths, model)


def raise_if_interrupted(model: Any) -> Any:
    """Return the model; raise KeyboardInterrupt where its fit was interrupted: Ctrl-C ends the whole study."""
    if model.status == "interrupted":
        raise KeyboardInterrupt
    return model


def _simulate(model: Any, record: revarb.Series, method: str, start: str) -> revarb.Trajectory:
    options = {} if start == "cold" else {"start": start}
    if record.input_names:
        path = model.simulate(record.u, method=method, **options)
    else:
        path = model.simulate(None, method=method, steps=len(record), **options)
    if not np.isfinite(path.mean).all() or (path.std is not None and not np.isfinite(path.std).all()):
        raise ArithmeticError(f"its simulation (method {method!r}) diverged")
    return path


def describe_failure(error: Exception) -> dict[str, Any]:
    """The columns of a row that failed."""
    return {"status": "failed", "reason": " ".join(str(error).split()) or type(error).__name__}
