"""Evaluations on a GPU: `python -m bench.accelerator --json FILE`, on a machine that has one."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bench.problems import QUICK_START, count_psi_columns, make_fit_step, make_problem
from bench.timing import time_median
from revarb.analysis.report import write_results
from revarb.data.series import Series
from revarb.datasets import load
from revarb.fitting.objective import MemberBound
from revarb.fitting.problem import Problem, make_plan
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.rgp import RGP
from revarb.runtime.files import check_writable
from revarb.runtime.numerics import with_numerics
from revarb.variational.bound import build_layer_problems
from revarb.variational.parameters import get_form

MEMBERS = 16
MATRIX = 8192

CHOICES = ("drive", "actuator")

NOTES = {
    "seconds": "median; from the flat vector to the bound and its gradient, host to host",
    "together": "a batch of sixteen starts in one call, host to host; times_one: its time over that of one evaluation",
    "fits": "recipe R0 without calibration, from the records to the models, programs compiled before; sixteen "
    "seeds as one program of batched L-BFGS, times_one: over the time of one fit by SciPy's L-BFGS-B. rmse "
    "and its quartiles: test error over the seeds, by the batch and one after another",
    "choosing": "revarb.fit in a fresh interpreter, from before the import to the calibrated model, compilation cache "
    "full; RMSE of a cold mean-only run over the test part",
    "gemm_tflops": f"float64 product of two {MATRIX} x {MATRIX} matrices, measured in the same run",
    "psi2_tflops": "the four products per layer (one forward, three backward) of psi2, over the time of everything",
    "of_gemm": "psi2_tflops / gemm_tflops",
}


@with_numerics
def measure() -> list[dict[str, Any]]:
    """Time one evaluation at Drive's size, a batch of sixteen, one of a long record, and whole fits."""
    drive, long = make_problem(250), make_problem(100_000, QUICK_START)
    one, together = time_median(make_fit_step(drive)), time_median(_make_batch(drive))
    return [
        {"name": "bound and gradient", "n": 250, "seconds": one},
        {"name": f"{MEMBERS} together", "n": 250, "seconds": together, "times_one": together / one},
        _long_row(long, _gemm_tflops()),
        *(row for name in CHOICES for row in _fit_rows(name)),
    ]


def _make_batch(given: Problem):
    vectors = np.stack([make_plan(given).start * (1.0 + 1e-3 * k) for k in range(MEMBERS)])
    member = MemberBound(get_form(given.start), given.layout)
    batch = jax.jit(jax.vmap(member, (0, None, None)))

    def evaluate() -> list[np.ndarray]:
        return [np.asarray(x) for x in batch(vectors, (given.rows, None), 0.0)]

    return evaluate


def _fit_rows(name: str) -> list[dict[str, Any]]:
    # Everything twice: the first time compiles.
    data, spec = load(name), RGP(calibrate=False)
    [*_, one] = [_time_fits(lambda: [spec.fit(data.train)]) for _ in range(2)]
    [*_, batch] = [_time_fits(lambda: spec.fit(data.train, restarts=MEMBERS).members) for _ in range(2)]
    alone = [spec.fit(data.train, seed=seed) for seed in range(MEMBERS)]
    return [
        {"name": f"fit of {name}", "n": len(data.train), "seconds": one[0], **_summarise(alone, data.test)},
        {
            "name": f"{MEMBERS} fits of {name} together",
            "n": len(data.train),
            "seconds": batch[0],
            "times_one": batch[0] / one[0],
            **_summarise(batch[1], data.test),
        },
    ]


def _time_fits(fit: Callable[[], Sequence[FittedRGP]]) -> tuple[float, Sequence[FittedRGP]]:
    begin = time.perf_counter()
    models = fit()
    return time.perf_counter() - begin, models


def _summarise(models: Sequence[FittedRGP], test: Series) -> dict[str, float]:
    errors = [(model.simulate(test.u, "mean").mean - test.y)[model.skip :] for model in models]
    low, middle, high = np.percentile([np.sqrt(np.mean(error**2)) for error in errors], [25, 50, 75]).tolist()
    return {"rmse": middle, "rmse_low": low, "rmse_high": high}


CHOOSE = """
import sys, json, numpy as np, revarb
data = revarb.datasets.load(sys.argv[1])
model = revarb.fit(data.train)
error = (model.simulate(data.test.u, "mean").mean - data.test.y)[model.skip:]
print(json.dumps({"taken": model.choice.taken, "rmse": float(np.sqrt(np.mean(error**2)))}))
"""


def measure_choices() -> list[dict[str, Any]]:
    """Time the choice of a model in fresh interpreters; the first one fills the cache of compiled programs."""
    rows = []
    for name in CHOICES:
        for _ in range(2):
            begin = time.perf_counter()
            done = subprocess.run([sys.executable, "-c", CHOOSE, name], stdout=subprocess.PIPE, text=True, check=True)
            seconds = time.perf_counter() - begin
        found = json.loads(done.stdout.splitlines()[-1])
        rows.append({"name": f"choosing on {name}", "n": len(load(name).train), "seconds": seconds, **found})
    return rows


def _long_row(given: Problem, gemm_tflops: float) -> dict[str, Any]:
    seconds = time_median(make_fit_step(given))
    rate = _psi2_operations(given) / seconds / 1e12
    shares = {"psi2_tflops": rate, "gemm_tflops": gemm_tflops, "of_gemm": rate / gemm_tflops}
    return {"name": "long record", "n": 100_000, "seconds": seconds, **shares}


def _psi2_operations(given: Problem) -> float:
    count, inducing = len(given.rows.y), given.spec.inducing
    problems = build_layer_problems(given.start, given.start.states, given.rows, given.layout)
    return sum(4 * 2.0 * count * count_psi_columns(x_hat) * inducing * (inducing // 2 + 1) for _, x_hat, _ in problems)


def _gemm_tflops() -> float:
    matrix = jax.random.normal(jax.random.key(0), (MATRIX, MATRIX))
    product = jax.jit(lambda a: a @ a)
    return 2.0 * MATRIX**3 / time_median(lambda: product(matrix).block_until_ready()) / 1e12


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.accelerator")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE")
    target = check_writable(parser.parse_args().json)
    if jax.default_backend() == "cpu":
        parser.error("JAX has no accelerator here")
    found = []
    for part in (measure_choices, measure):  # other interpreters first: later this one holds the device's memory
        for row in part():
            print(row, flush=True)
            found.append(row)
    meta = {"command": "python -m bench.accelerator", "device": jax.devices()[0].device_kind, "notes": NOTES}
    write_results(target, meta, found)
