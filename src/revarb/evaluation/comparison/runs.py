"""Fits of every model with every seed, in parallel where asked: simulations of the test records and their times."""

import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from inspect import signature
from pickle import PicklingError
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike

from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, RevarbError
from revarb.models.base import ModelSpec
from revarb.models.prediction import Predictor
from revarb.models.residuals import Residuals
from revarb.optim.status import Status
from revarb.runtime.interrupts import ignore_interrupts


@runtime_checkable
class Simulator(Protocol):
    """A trained model: a `Fitted`, or a user's own."""

    def simulate(self, u: ArrayLike | None) -> Trajectory:
        """Free simulation; a system without inputs has `u` None and `steps`."""
        ...


class Simulated(NamedTuple):
    """The test records simulated by one method."""

    paths: tuple[Trajectory, ...]
    seconds: float


@dataclass(frozen=True, eq=False)
class Run:
    """The outcome of one fit; `reason` says why it failed, and then nothing was simulated.

    `taken` names the candidate that a model which chooses among candidates took. `residuals` are those of the first
    test record, where they were asked for and the model predicts.
    """

    model: str
    seed: int
    status: str
    fit_seconds: float = float("nan")
    simulated: Mapping[str, Simulated] = field(default_factory=dict)
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    taken: str | None = None
    residuals: Residuals | None = None


def run_all(
    models: Mapping[str, ModelSpec],
    seeds: Sequence[int],
    train: Sequence[Series],
    test: Sequence[Series],
    jobs: int,
    analysed: Sequence[int] = (),
    done: Collection[tuple[str, int]] = (),
    resume: bool = False,
) -> Iterator[Run]:
    """Every model with every seed, in the order in which they finish; with `jobs` > 1 in as many processes.

    The residuals are those of the seeds in `analysed`: a prediction along the record takes as long as a simulation.
    Models and seeds in `done` are left out; with `resume` fits that were killed or interrupted are continued.
    """
    run = _run if jobs == 1 else _run_in_worker
    tasks = [
        delayed(run)(name, spec, seed, train, test, seed in analysed, resume)
        for name, spec in models.items()
        for seed in seeds
        if (name, seed) not in done
    ]
    try:
        with ignore_interrupts():  # of the workers that are started here: this process ends them
            runs = Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)
        yield from runs  # pyright: ignore[reportReturnType]
    except PicklingError as error:
        raise InputError(f"a model cannot be sent to another process ({error}); use jobs=1") from None
    except BrokenProcessPool:
        return  # a worker was killed; runs without a result become `lost_run`


def lost_run(name: str, seed: int) -> Run:
    """A run that had not finished when a worker process died."""
    return Run(name, seed, "failed", reason="a worker process died (out of memory?); use fewer jobs")


def _run_in_worker(
    name: str, spec: ModelSpec, seed: int, train: Sequence[Series], test: Sequence[Series], analysed: bool, resume: bool
) -> Run:
    with ignore_interrupts():  # a terminal sends SIGINT to all processes; the parent ends this one
        return _run(name, spec, seed, train, test, analysed, resume)


def _run(
    name: str, spec: ModelSpec, seed: int, train: Sequence[Series], test: Sequence[Series], analysed: bool, resume: bool
) -> Run:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "there is no unfinished")  # most fits of a resumed comparison were not begun
        try:
            run = _fit_and_simulate(name, spec, seed, train, test, analysed, resume)
        except Exception as error:  # a model that fails is a row of the table, not the end of it
            reason = " ".join(str(error).split()) or type(error).__name__
            return Run(name, seed, "failed", reason=reason)
    # A `QualityWarning` is another category: `compare` has issued it before all fits.
    messages = dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning)
    return Run(**{**vars(run), "warnings": tuple(messages)})


def _fit_and_simulate(
    name: str, spec: ModelSpec, seed: int, train: Sequence[Series], test: Sequence[Series], analysed: bool, resume: bool
) -> Run:
    started = time.perf_counter()
    options = {"resume": True} if resume and "resume" in signature(spec.fit).parameters else {}
    model = spec.fit(train, seed=seed, **options)
    fit_seconds = time.perf_counter() - started
    status = getattr(model, "status", "fitted")  # a user's own model may have neither a status nor several methods
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # Ctrl-C ends the whole comparison, not one fit
    simulated = {}
    for method in getattr(model, "methods", (None,)):
        started = time.perf_counter()
        paths = tuple(_simulate(model, method, record) for record in test)
        simulated[paths[0].method] = Simulated(paths, time.perf_counter() - started)
    taken = getattr(getattr(model, "choice", None), "taken", None)  # only a chosen model has a choice
    residuals = _analyse(model, test[0]) if analysed else None
    return Run(name, seed, str(status), fit_seconds, simulated, taken=taken, residuals=residuals)


def _analyse(model: Simulator, record: Series) -> Residuals | None:
    # Most models only simulate. A record that is too short, or a prediction that diverges, fails no simulation.
    try:
        return model.residuals(record) if isinstance(model, Predictor) else None
    except RevarbError:
        return None


def _simulate(model: Simulator, method: str | None, record: Series) -> Trajectory:
    chosen = {} if method is None else {"method": method}
    length = {} if record.input_names else {"steps": len(record)}
    path = model.simulate(record.u if record.input_names else None, **chosen, **length)
    _check_path(path, record)
    return path


def _check_path(path: Trajectory, record: Series) -> None:
    if not isinstance(path, Trajectory):
        raise TypeError(f"its simulate returned a {type(path).__name__}, not a revarb.Trajectory")
    if path.mean.shape != record.y.shape:
        raise ValueError(f"its simulation has shape {path.mean.shape}, the record {record.y.shape}")
    if not np.isfinite(path.mean).all():
        raise ArithmeticError(f"its simulation (method {path.method!r}) diverged")
    if path.std is not None and not np.isfinite(path.std).all():
        raise ArithmeticError(f"its band (method {path.method!r}) is not finite")
