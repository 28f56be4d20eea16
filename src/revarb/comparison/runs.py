"""One model, one seed: fit, simulate the test part by every method, and note what it took. In parallel, if asked."""

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from joblib import Parallel, delayed

from revarb.frame import Fitted
from revarb.optimise import Status
from revarb.series import Series
from revarb.trajectory import Trajectory


@runtime_checkable
class Spec(Protocol):
    """A model before it has seen data: `revarb.RGP`, a rival, or one of your own."""

    def fit(self, train: Sequence[Series], seed: int = ..., progress: bool = ...) -> Fitted:
        """Train it."""
        ...


class Simulated(NamedTuple):
    """The test records simulated by one method."""

    paths: tuple[Trajectory, ...]
    seconds: float


@dataclass(frozen=True, eq=False)
class Run:
    """What became of one fit. `reason` says why it failed, where it did, and then nothing was simulated."""

    model: str
    seed: int
    status: str
    fit_seconds: float = float("nan")
    simulated: Mapping[str, Simulated] = field(default_factory=dict)
    reason: str | None = None
    warnings: tuple[str, ...] = ()


def run_all(
    models: Mapping[str, Spec], seeds: Sequence[int], train: Sequence[Series], test: Sequence[Series], jobs: int
) -> Iterator[Run]:
    """Every model with every seed, in the order in which they finish; with `jobs` > 1 in as many processes."""
    threads = max(1, len(_cores()) // jobs)
    tasks = [delayed(_run)(name, spec, seed, train, test, threads) for name, spec in models.items() for seed in seeds]
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)  # pyright: ignore[reportReturnType]


def _run(name: str, spec: Spec, seed: int, train: Sequence[Series], test: Sequence[Series], threads: int) -> Run:
    # In a fresh process XLA counts its threads when it first computes, which is after this line.
    os.environ.setdefault("NPROC", str(threads))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run = _fit_and_simulate(name, spec, seed, train, test)
        except Exception as error:  # whatever goes wrong in one model is a row of the table, not its end
            reason = " ".join(str(error).split()) or type(error).__name__
            return Run(name, seed, "failed", reason=reason)
    messages = dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning)
    return Run(**{**vars(run), "warnings": tuple(messages)})


def _fit_and_simulate(name: str, spec: Spec, seed: int, train: Sequence[Series], test: Sequence[Series]) -> Run:
    begun = time.perf_counter()
    model = spec.fit(train, seed=seed)
    fit_seconds = time.perf_counter() - begun
    if model.status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # Ctrl-C means the whole comparison, not one fit of it
    simulated = {}
    for method in model.compared:
        begun = time.perf_counter()
        paths = tuple(_simulate(model, method, record) for record in test)
        simulated[method] = Simulated(paths, time.perf_counter() - begun)
        if not all(np.isfinite(path.mean).all() for path in paths):
            raise ArithmeticError(f"its simulation (method {method!r}) ran away to infinity")
    return Run(name, seed, model.status.value, fit_seconds, simulated)


def _simulate(model: Fitted, method: str, record: Series) -> Trajectory:
    if record.input_names:
        return model.simulate(record.u, method)
    return model.simulate(None, method, steps=len(record))


def _cores() -> range:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return range(usable)
