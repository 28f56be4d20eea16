"""Settings for long records, on two generated systems: a Wiener–Hammerstein chain and a Duffing oscillator.

What `revarb.fit` does with long records was settled here, because the records of nonlinearbenchmark.org are reported
and not tuned on. Recurrent GPs whose states stay at the outputs (recipe "narx"), fitted to 20,000 samples with a noise
of 0.3 % of the output's standard deviation.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.signal import butter, cheby2, lfilter

import revarb
from studies.records import describe_failure, raise_if_interrupted
from studies.study import Fit, Result, Study
from studies.tables import Grid, Rows, format_range, format_seconds, names_of, over_seeds

TRAIN, TEST, WINDOW = 20_000, 10_000, 50  # samples; a run starts from the last so many before the test part
NOISE = 0.003  # standard deviation of the measurement noise, over that of the output
SETTLE = 500  # samples before the record, while the system settles
DT = 1.0 / 8.0  # step of Euler's method for the oscillator, in samples

DEFAULT = "5 lags"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    DEFAULT: {},
    "20 lags": {"lags": 20},
    "20 lags, 40 input lags": {"lags": 20, "input_lags": 40},
    "5 lags, 50 inducing inputs": {"inducing": 50},
    "5 lags, 100 inducing inputs": {"inducing": 100},
    "5 lags, 5,000 rows": {"rows": 5_000},
    "5 lags, linear part trained along": {"linear_trained": True},
}


def draw_chain(rng: np.random.Generator, samples: int) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
    """Input and output of a Wiener–Hammerstein chain: a filter, a curve that saturates on one side, a filter."""
    u = 1.2 * lfilter(*butter(4, 0.35), rng.standard_normal(samples))
    x = lfilter(*butter(3, 0.16), u)
    curve = np.where(x > 0.3, 0.3 + 0.25 * np.tanh((x - 0.3) / 0.25), x)
    return u, lfilter(*cheby2(3, 35, 0.22), curve)


def draw_oscillator(
    rng: np.random.Generator, samples: int
) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
    """Input and position of a Duffing oscillator, a mass on a spring that becomes stiffer."""
    u, position, speed = lfilter(*butter(3, 0.25), rng.standard_normal(samples)), np.zeros(samples), 0.0
    for k in range(1, samples):
        place = position[k - 1]
        for _ in range(round(1.0 / DT)):
            speed += DT * (0.5 * u[k - 1] - 0.12 * speed - 0.25 * place - 0.6 * place**3)
            place += DT * speed
        position[k] = place
    return u, position


SYSTEMS = {"Wiener–Hammerstein chain": draw_chain, "Duffing oscillator": draw_oscillator}


def draw_records(system: str, seed: int, train: int = TRAIN, test: int = TEST) -> tuple[revarb.Series, revarb.Series]:
    """A training record with noise, and a test record: a noisy window, then outputs without noise."""
    rng = np.random.default_rng(seed)
    u, y = (values[SETTLE:] for values in SYSTEMS[system](rng, SETTLE + train + test))
    noisy = y + NOISE * y.std() * rng.standard_normal(len(y))
    measured = np.concatenate([noisy[train : train + WINDOW], y[train + WINDOW :]])
    return revarb.Series(u[:train], noisy[:train]), revarb.Series(u[train:], measured)


def make_spec(
    lags: int = 5, input_lags: int | None = None, inducing: int = 200, rows: int = 20_000, linear_trained: bool = False
) -> revarb.RGP:
    """A recurrent GP whose states stay at the outputs, with the settings of long records unless others are given."""
    known = revarb.RGP(recipe="narx").recipe
    stages = tuple(
        stage if linear_trained else replace(stage, free=tuple(name for name in stage.free if name != "linear"))
        for stage in known.stages
    )
    recipe = replace(known, stages=stages, max_rows=rows, free_run_weight=2.0)
    return revarb.RGP(
        lags, lags if input_lags is None else input_lags, hidden=1, inducing=inducing, linear=True, recipe=recipe,
        calibrate=False,
    )  # fmt: skip


class LongRecords(Study):
    """Seven settings on two systems."""

    name, title = "long", "Settings for long records"
    protocol = (
        f"{TRAIN} training samples, {TEST} test samples without noise, started from {WINDOW} measured ones; NRMSE of "
        "the mean-only run in percent; cold: whether the moments of a cold run over the training inputs stay finite"
    )
    columns = ("dataset", "model", "seed", "nrmse", "cold", "status", "fit_seconds")
    default_seeds, settings, systems = 1, SETTINGS, tuple(SYSTEMS)

    def list_fits(self) -> list[Fit]:
        """Every system, setting and seed."""
        return [Fit(system, name, seed) for system in self.systems for name in self.settings
                for seed in range(self.seeds)]  # fmt: skip

    def load(self, system: str, seed: int) -> tuple[revarb.Series, revarb.Series]:
        """The records of a system."""
        return draw_records(system, seed)

    def run_fit(self, fit: Fit) -> Result:
        """Fit one setting, and simulate the test part."""
        (train, test), about = self.load(fit.dataset, fit.seed or 0), fit._asdict()
        about.pop("case")
        try:
            begin = time.perf_counter()
            model = raise_if_interrupted(make_spec(**self.settings[fit.model]).fit(train, seed=fit.seed or 0))
            seconds = time.perf_counter() - begin
            start = revarb.Window(test.u[:WINDOW], test.y[:WINDOW])
            path = model.simulate(test.u[WINDOW:], start=start, method="mean")
            nrmse = 100.0 * revarb.scores(path, test.y[WINDOW:], 0).nrmse
        except revarb.RevarbError as error:
            return Result([{**about, **describe_failure(error)}])
        row = {"nrmse": nrmse, "cold": _stays_finite(model, train), "status": str(model.status), "reason": None}
        return Result([{**about, **row, "fit_seconds": seconds}])

    def tables(self, rows: Rows) -> list[Grid]:
        """A row per setting."""
        cells = []
        for name in names_of(rows, "model"):
            errors = [format_range(over_seeds(rows, "nrmse", model=name, dataset=system)) for system in self.systems]
            finite = all(row["cold"] for row in rows if row["model"] == name)
            seconds = format_seconds(over_seeds(rows, "fit_seconds", model=name).median)
            cells.append([name, *errors, "finite" if finite else "diverge", seconds])
        head = ("setting", *(f"{system}: NRMSE, %" for system in self.systems), "moments, cold", "fit s")
        return [Grid(self.title, head, cells)]


def _stays_finite(model: Any, train: revarb.Series) -> bool:
    try:
        path = model.simulate(train.u[:2_000])
    except revarb.ComputationError:
        return False
    return bool(path.std is not None and np.all(path.std < 10.0 * train.y.std()))


STUDY = LongRecords
