"""The models of a comparison and their fits with every seed, in parallel where asked: simulations, times and scores.

Finished fits of an unfinished comparison are kept as model files in the user's cache folder, and resumed from there.
"""

import hashlib
import json
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from inspect import signature
from pathlib import Path
from pickle import PicklingError
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from joblib import hash as hash_values

from revarb.analysis.scores import SCORE_NAMES, pooled_scores
from revarb.baselines import ARX, GPNARX, GPSSM, LSTM, MLPNARX, Mean, ReducedRankGPSSM
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, RevarbError
from revarb.models.base import ModelSpec
from revarb.models.model_file import load, save_model
from revarb.models.prediction import Predictor
from revarb.models.recipe import Status
from revarb.models.residuals import Residuals
from revarb.models.rgp import RGP
from revarb.runtime.files import write_atomic
from revarb.runtime.interrupts import ignore_interrupts
from revarb.runtime.machine import collect_versions
from revarb.runtime.unfinished import UnfinishedParts
from revarb.selection.choose import Chosen


def default_models(spec: RGP | None = None, jobs: int = 1) -> dict[str, ModelSpec]:
    """REVARB as configured, the baselines with its lags, and the model that `revarb.fit` chooses.

    ARX chooses its order up to these lags, or up to ten if more. `jobs` is that of `compare`.
    """
    spec = spec or RGP()
    lags, input_lags, input_delay = spec.lags, spec.input_lags, spec.input_delay
    return {
        "Mean": Mean(),
        "ARX": ARX(max(lags, 10), max(input_lags, 10), input_delay),
        "MLP-NARX": MLPNARX(lags, input_lags, input_delay),
        "LSTM": LSTM(input_delay=input_delay),
        "GP-NARX": GPNARX(lags, input_lags, input_delay),
        "REVARB": spec,
        "revarb (chosen)": Chosen(jobs=None if jobs == 1 else 1),  # processes do not start processes of their own
    }


def family_models(input_delay: int = 1, outputs: int = 1) -> dict[str, ModelSpec]:
    """GP state-space models: the three structures of `GPSSM`, and reduced rank; at least one state per output."""
    structured = GPSSM(states=max(GPSSM.states, outputs), input_delay=input_delay)
    reduced = ReducedRankGPSSM(states=max(ReducedRankGPSSM.states, outputs), input_delay=input_delay)
    return {
        "GPSSM, prior": structured,
        "GPSSM, markov": replace(structured, structure="markov"),
        "GPSSM, mean-field": replace(structured, structure="mean-field"),
        "reduced-rank GPSSM": reduced,
    }


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

    def score(self, test: Sequence[Series], skip: int) -> list[dict[str, Any]]:
        """Rows of the results, one per method; a single one without scores where the fit failed."""
        common = {"model": self.model, "start": "cold", "seed": self.seed, "status": self.status,
                  "reason": self.reason, "fit_seconds": self.fit_seconds}  # fmt: skip
        if self.taken is not None:
            common["taken"] = self.taken
        if self.reason is not None:
            nothing = dict.fromkeys((*SCORE_NAMES, "simulate_seconds"), float("nan"))
            return [{**common, "method": "", **nothing, "skip": skip}]
        rows = []
        for method, simulated in self.simulated.items():
            result = pooled_scores(simulated.paths, [record.y for record in test], skip)
            row = {**common, "method": method, **result.to_row(), "simulate_seconds": simulated.seconds}
            if not np.isfinite(result.rmse):
                row |= {"status": "failed", "reason": f"its error is {result.rmse}: the outputs are too large"}
            rows.append(row)
        return rows


class FinishedFit(NamedTuple):
    """A trained model, the seconds that its training took, and the warnings that it gave."""

    model: Any
    seconds: float
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class FitStore:
    """Keeps every finished fit under a digest of its configuration, seed, training records and versions.

    A user's own model is fitted again: what its fit depends on is unknown.
    """

    digests: Mapping[tuple[str, int], str]  # by the name of the model and the seed
    parts: UnfinishedParts

    @classmethod
    def open(
        cls, models: Mapping[str, ModelSpec], seeds: Sequence[int], train: Sequence[Series], resume: bool
    ) -> "FitStore":
        """Open the store of this comparison; without `resume` it is emptied, and the user is told."""
        data = _digest_records(train)
        digests = {
            (name, seed): _digest_fit(spec, seed, data)
            for name, spec in models.items()
            for seed in seeds
            if type(spec).__module__.startswith("revarb.") and is_dataclass(spec)
        }
        patterns = [f"{digest}.*" for digest in dict.fromkeys(digests.values())]
        return cls(digests, UnfinishedParts.open("comparison", patterns, resume))

    def read(self, name: str, seed: int) -> FinishedFit | None:
        """The fit that an earlier call finished; None where it did not, and without `resume`."""
        digest = self.digests.get((name, seed))
        return None if digest is None else self.parts.read(f"{digest}.json", _read_fit)

    def write(self, name: str, seed: int, fit: FinishedFit) -> None:
        """Keep a finished fit; it is complete when the second of its files is."""
        digest = self.digests.get((name, seed))
        if digest is not None:
            self.parts.write(f"{digest}.json", lambda path: _write_fit(path, fit))


def _read_fit(path: Path) -> FinishedFit:
    entry = json.loads(path.read_text())
    return FinishedFit(load(path.with_suffix(".rgp")), float(entry["seconds"]), tuple(entry["warnings"]))


def _write_fit(path: Path, fit: FinishedFit) -> None:
    save_model(fit.model, path.with_suffix(".rgp"))
    write_atomic(path, json.dumps({"seconds": fit.seconds, "warnings": fit.warnings}).encode())


def _digest_records(train: Sequence[Series]) -> str:
    first = train[0]
    return str(hash_values([first.input_names, first.output_names, first.dt, [(each.u, each.y) for each in train]]))


def _digest_fit(spec: Any, seed: int, data: str) -> str:
    settings = {name: value for name, value in asdict(spec).items() if name != "jobs"}  # the result is the same
    about = [type(spec).__qualname__, settings, seed, data, collect_versions()]
    return hashlib.sha256(json.dumps(about, default=repr).encode()).hexdigest()


class _Task(NamedTuple):
    """What a run takes."""

    name: str
    spec: ModelSpec
    seed: int
    train: Sequence[Series]
    test: Sequence[Series]
    analysed: bool
    store: FitStore


def run_all(
    models: Mapping[str, ModelSpec],
    seeds: Sequence[int],
    train: Sequence[Series],
    test: Sequence[Series],
    jobs: int,
    store: FitStore,
) -> Iterator[Run]:
    """Every model with every seed, in the order in which they finish; with `jobs` > 1 in as many processes.

    Runs of the first seed have residuals: a prediction along the record takes as long as a simulation. Finished fits
    are kept in `store`; where it resumes, they are read from it, and fits that were begun are continued.
    """
    tasks = [
        delayed(_run)(_Task(name, spec, seed, train, test, seed == seeds[0], store), in_worker=jobs > 1)
        for name, spec in models.items()
        for seed in seeds
    ]
    try:
        with ignore_interrupts():  # of the workers that are started here: this process ends them
            runs = Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)
        yield from runs  # pyright: ignore[reportReturnType]
    except PicklingError as error:
        raise InputError(f"a model cannot be sent to another process ({error}); use jobs=1") from None
    except BrokenProcessPool:
        return  # a worker was killed, and the runs that had not finished have no result


def _run(task: _Task, in_worker: bool) -> Run:
    # A terminal sends SIGINT to all processes: the parent ends a worker.
    with ignore_interrupts() if in_worker else nullcontext(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "there is no unfinished")  # most fits of a resumed comparison were not begun
        try:
            fit = task.store.read(task.name, task.seed) or _fit(task, caught)
            run = _simulate_all(task, fit)
        except Exception as error:  # a model that fails is a row of the table, not the end of it
            reason = " ".join(str(error).split()) or type(error).__name__
            return Run(task.name, task.seed, "failed", reason=reason)
    return replace(run, warnings=tuple(dict.fromkeys([*fit.warnings, *_list_messages(caught)])))


def _list_messages(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    # A `QualityWarning` is another category: `compare` has issued it before all fits.
    return tuple(str(warning.message) for warning in caught if warning.category is UserWarning)


def _fit(task: _Task, caught: Sequence[warnings.WarningMessage]) -> FinishedFit:
    started = time.perf_counter()
    resume = task.store.parts.resume and "resume" in signature(task.spec.fit).parameters
    model = task.spec.fit(task.train, seed=task.seed, **({"resume": True} if resume else {}))
    fit = FinishedFit(model, time.perf_counter() - started, _list_messages(caught))
    if getattr(model, "status", None) is Status.INTERRUPTED:
        raise KeyboardInterrupt  # Ctrl-C ends the whole comparison, not one fit
    task.store.write(task.name, task.seed, fit)
    return fit


def _simulate_all(task: _Task, fit: FinishedFit) -> Run:
    model, simulated = fit.model, {}
    for method in getattr(model, "methods", (None,)):  # a user's own model may have neither methods nor a status
        started = time.perf_counter()
        paths = tuple(_simulate(model, method, record) for record in task.test)
        simulated[paths[0].method] = Simulated(paths, time.perf_counter() - started)
    status = str(getattr(model, "status", "fitted"))
    taken = getattr(getattr(model, "choice", None), "taken", None)  # only a chosen model has a choice
    residuals = _analyse(model, task.test[0]) if task.analysed else None
    return Run(task.name, task.seed, status, fit.seconds, simulated, taken=taken, residuals=residuals)


def _analyse(model: Any, record: Series) -> Residuals | None:
    # Most models only simulate. A record that is too short, or a prediction that diverges, fails no simulation.
    try:
        return model.residuals(record) if isinstance(model, Predictor) else None
    except RevarbError:
        return None


def _simulate(model: Any, method: str | None, record: Series) -> Trajectory:
    chosen = {} if method is None else {"method": method}
    length = {} if record.input_names else {"steps": len(record)}
    path = model.simulate(record.u if record.input_names else None, **chosen, **length)
    if not isinstance(path, Trajectory):
        raise TypeError(f"its simulate returned a {type(path).__name__}, not a revarb.Trajectory")
    if path.mean.shape != record.y.shape:
        raise ValueError(f"its simulation has shape {path.mean.shape}, the record {record.y.shape}")
    if not np.isfinite(path.mean).all():
        raise ArithmeticError(f"its simulation (method {path.method!r}) diverged")
    if path.std is not None and not np.isfinite(path.std).all():
        raise ArithmeticError(f"its band (method {path.method!r}) is not finite")
    return path
