"""Fits of the family of GP state-space models: on benchmarks, on systems with known states, on Narendra and Li's."""

import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb import datasets
from revarb.baselines.state_space.gpssm import FittedGPSSM
from revarb.data.series import Series
from revarb.datasets.artificial import draw_artificial
from revarb.errors import RevarbError
from revarb.evaluation.scoring import SCORE_NAMES, scores
from revarb.experiments.field_runs import Key
from revarb.experiments.known_systems import SYSTEMS, KnownSystem
from revarb.models.base import Fitted, ModelSpec
from revarb.runtime.numerics import with_numerics

COLD, CONTINUED = "cold", "continue"
NARENDRA_LI = "narendra_li"
CURVE_POINTS = 41  # of a drawn transition


class FamilyFit(NamedTuple):
    """One model with one seed on one record of the table."""

    dataset: str
    model: str
    seed: int

    @property
    def key(self) -> Key:
        """What identifies it in the file of finished fits."""
        return self.dataset, self.model, self.seed


class Sizes(NamedTuple):
    """Sizes of generated records, and the rows of a cold run that are not scored."""

    known_samples: int
    long_samples: int
    long_noise_std: float
    cold_skip: int


def run_family_fit(fit: FamilyFit, models: Mapping[str, ModelSpec], sizes: Sizes) -> list[dict[str, Any]]:
    """Fit one model and score it: rows of free runs, or of the transition where the states are known."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* leaves its training range")  # true of Actuator's test part
        if fit.dataset in SYSTEMS:
            return _run_known(fit, models[fit.model], SYSTEMS[fit.dataset], sizes)
        return _run_record(fit, models[fit.model], sizes)


def _run_record(fit: FamilyFit, spec: ModelSpec, sizes: Sizes) -> list[dict[str, Any]]:
    train, test = _load_records(fit, sizes)
    starts = (COLD,) if fit.dataset == NARENDRA_LI else (COLD, CONTINUED)
    started = time.perf_counter()
    try:
        model = spec.fit([train], seed=fit.seed)
    except RevarbError as error:
        return [_fail(fit, start, error) for start in starts]
    about = {"status": model.status.value, "fit_seconds": time.perf_counter() - started, "taken": _name_taken(model)}
    return [row for start in starts for row in _score_runs(fit, model, test, start, sizes.cold_skip, about)]


def _load_records(fit: FamilyFit, sizes: Sizes) -> tuple[Series, Series]:
    if fit.dataset == NARENDRA_LI:
        return draw_artificial(fit.seed, sizes.long_samples, sizes.long_noise_std)
    split = datasets.load(fit.dataset)
    return split.train, split.test


def _score_runs(
    fit: FamilyFit, model: Any, test: Series, start: str, cold_skip: int, about: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    skip = cold_skip if start == COLD else 0
    for method in model.methods:
        started = time.perf_counter()
        try:
            path = model.simulate(test.u, method, start=start)
        except RevarbError as error:
            yield _fail(fit, start, error, method)
            continue
        seconds = time.perf_counter() - started
        found = asdict(scores(path, test.y, skip=skip))
        values = {name: found[name] for name in SCORE_NAMES}
        yield {**_describe(fit, start), "method": method, "skip": skip, **values, "simulate_seconds": seconds, **about}


def _describe(fit: FamilyFit, start: str) -> dict[str, Any]:
    return {"part": "records", "dataset": fit.dataset, "model": fit.model, "seed": fit.seed, "start": start,
            "reason": None}  # fmt: skip


def _fail(fit: FamilyFit, start: str, error: Exception, method: str | None = None) -> dict[str, Any]:
    return {**_describe(fit, start), "method": method, "reason": str(error)}


def _name_taken(model: Fitted) -> str | None:
    return None if model.choice is None else model.choice.taken_candidate.name


def _run_known(fit: FamilyFit, spec: ModelSpec, system: KnownSystem, sizes: Sizes) -> list[dict[str, Any]]:
    record, _ = system.generate(sizes.known_samples, fit.seed)
    about = {"part": "known states", "dataset": fit.dataset, "model": fit.model, "seed": fit.seed, "reason": None}
    started = time.perf_counter()
    try:
        model = spec.fit([record], seed=fit.seed)
    except RevarbError as error:
        return [{**about, "reason": str(error)}]
    seconds = time.perf_counter() - started
    row = {**about, "status": model.status.value, "fit_seconds": seconds, **judge_transition(model, system, fit.seed)}
    return [row, *({**about, "part": "curve", **point} for point in _list_curve(model, system) if fit.seed == 0)]


def judge_transition(model: FittedGPSSM, system: KnownSystem, seed: int) -> dict[str, float]:
    """Error of the learnt transition along a new run of the system, and the noises, in raw units.

    The error is relative to the standard deviation of the next states; of noises over states the root mean square.
    """
    record, x = system.generate(1000, 10_000 + seed)
    learnt, _ = evaluate_transition(model, x[:-1], record.u[:-1])
    truth = system.transition(x[:-1], record.u[:-1])
    stds = np.asarray(model.transition.process_variance) ** 0.5 * model.scaling.y_std
    outputs = np.asarray(model.transition.output_std) * model.scaling.y_std
    return {
        "transition_error": float(np.sqrt(np.mean((learnt - truth) ** 2)) / truth.std()),
        "process_std": float(np.sqrt(np.mean(stds**2))),
        "true_process_std": system.process_std,
        "process_ratio": float(np.sqrt(np.mean(stds**2))) / system.process_std,
        "output_std": float(np.sqrt(np.mean(outputs**2))),
        "true_output_std": system.output_std,
    }


@with_numerics
def evaluate_transition(
    model: FittedGPSSM, x: Float64[np.ndarray, "T Dx"], u: Float64[np.ndarray, "T Du"]
) -> tuple[Float64[np.ndarray, "T Dx"], Float64[np.ndarray, "T Dx"]]:
    """Mean and standard deviation of the learnt f at raw states that are all outputs, and at raw inputs."""
    z, inputs = model.scaling.outputs(x), model.scaling.inputs(u)
    mean, variance = model.transition.marginal(np.concatenate([z, inputs], axis=1))
    return model.scaling.raw_outputs(np.asarray(mean)), model.scaling.raw_std(np.sqrt(np.asarray(variance)))


def _list_curve(model: FittedGPSSM, system: KnownSystem) -> Iterator[dict[str, float]]:
    # The last state's transition as a function of the first state; the other states and the inputs are zero.
    low, high = np.asarray(model.preprocessor.output_range)[:, 0]
    x = np.zeros((CURVE_POINTS, system.states))
    x[:, 0] = np.linspace(low, high, CURVE_POINTS)
    u = np.zeros((CURVE_POINTS, system.inputs))
    mean, std = evaluate_transition(model, x, u)
    truth = system.transition(x, u)
    for at, known, learnt, width in zip(x[:, 0], truth[:, -1], mean[:, -1], std[:, -1], strict=True):
        yield {"x": float(at), "truth": float(known), "learnt": float(learnt), "learnt_std": float(width)}
