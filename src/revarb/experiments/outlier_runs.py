"""One fit to a training record with outliers: its scores on the clean test part, and which outliers it found."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool

from revarb.data.series import Series
from revarb.evaluation.comparison.comparison import run_comparison
from revarb.experiments.benchmarks import Benchmark
from revarb.experiments.field_runs import Key
from revarb.experiments.spoiling import Condition, spoil
from revarb.models.base import ModelSpec
from revarb.models.fitted_rgp import FittedRGP

FALSE_ALARMS = 0.05  # share of the good samples below the weight at which an outlier counts as found


class SpoiledFit(NamedTuple):
    """One model with one seed on one record with outliers; the seed draws the outliers and starts the fit."""

    benchmark: Benchmark
    condition: Condition
    model: str
    seed: int

    @property
    def key(self) -> Key:
        """What identifies it in the file of finished fits."""
        return f"{self.benchmark.name}, {self.condition}", self.model, self.seed


class KeptFit:
    """A configuration that keeps the model that it fits: a comparison returns only its simulations."""

    def __init__(self, spec: ModelSpec):
        self.spec, self.model = spec, None

    def fit(self, train: Sequence[Series], seed: int = 0) -> Any:
        """Train it."""
        self.model = self.spec.fit(train, seed=seed)
        return self.model


def run_spoiled(fit: SpoiledFit, models: Callable[[Benchmark, int], Mapping[str, ModelSpec]]) -> list[dict[str, Any]]:
    """Fit and score: a row per method of simulation. `models` gets the benchmark and the lags of its record."""
    split = fit.benchmark.load(fit.seed)
    train, marks = spoil(split.train, fit.condition, fit.seed)
    spec = KeptFit(models(fit.benchmark, split.lags)[fit.model])
    named: dict[str, ModelSpec] = {fit.model: spec}
    with warnings.catch_warnings():
        # True of Actuator's test part, whatever the outliers: once for every fit is too often.
        warnings.filterwarnings("ignore", message=".* leaves its training range")
        rows = run_comparison([train], [split.test], named, [fit.seed], 1, split.skip, lambda run: None).rows
    source = {"dataset": fit.benchmark.name, "record": fit.benchmark.record, **fit.condition._asdict()}
    found = measure_detection(spec.model, marks)
    return [{**source, **row, **found} for row in rows]


def measure_detection(model: Any, marks: Bool[np.ndarray, "N Dy"]) -> dict[str, float]:
    """What a model with Student-t noise says about the outliers; nothing for any other.

    `found` is the share of the outliers with a weight below that of all but 5 % of the good samples. `listed` is the
    share that `model.outliers()` names, `listed_falsely` the share of the good samples that it names. Samples before
    the first full window have no weight and do not count.
    """
    if not isinstance(model, FittedRGP) or model.trained.parameters.noise is None:
        return {}
    weights, first = np.asarray(model.trained.parameters.noise.weights), model.order.first_row
    listed = np.zeros(marks.shape, dtype=bool)
    for outlier in model.outliers():
        listed[outlier.row, model.output_names.index(outlier.output)] = True
    bad, listed = marks[first:], listed[first:]
    threshold = np.quantile(weights[~bad], FALSE_ALARMS)
    return {
        "found": _share(weights[bad] < threshold),
        "listed": _share(listed[bad]),
        "listed_falsely": _share(listed[~bad]),
    }


def _share(hits: np.ndarray) -> float:
    return float(np.mean(hits)) if hits.size else float("nan")
