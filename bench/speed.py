"""The rows of the speed table: measured, printed, written."""

import os
import resource
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

from bench import evaluation
from revarb.files import check_target, make_folder
from revarb.numerics import with_numerics
from revarb.results import write_results

SAMPLES = (250, 512, 2000)  # Drive, Actuator, and a record that does not fit into the cache

NOTES = {
    "seconds": "median; one bound with its gradient at the start of a fit, by the function that fit compiles, "
    "compilation not counted",
    "peer_seconds": "median; psi statistics and their gradients of the same layers, nothing else: no Cholesky factors, "
    "no bound, which favours the peer",
    "ratio": "peer_seconds / seconds",
    "floor_seconds": "median; NumPy, float64, per layer: one product [R, 2D] x [2D, M(M+1)/2], its exponential "
    "(one thread) and two products back, in blocks of rows",
    "peak_mib": "peak resident memory of the process after ours at this size, compilation included: a running maximum "
    "over the sizes; GPy is imported afterwards",
    "load_before": "load average of the minute before; well above 0, other work ran: discard the times",
}


def run(threads: int, json: Path | None) -> None:
    """Measure every size, print the table, and write it if a file is named."""
    if json is not None:
        make_folder(json.parent)
        check_target(json)
    meta = _meta()  # before the work, which is a load itself
    rows = _rows(threads)
    _print(rows)
    if json is not None:
        write_results(json, meta, rows)


def _rows(threads: int) -> list[dict[str, Any]]:
    problems = [evaluation.problem(samples) for samples in SAMPLES]
    # Memory of ours at all sizes first, and GPy not even imported: its memory must not count as ours.
    peaks = [_peak_mib_after(evaluation.fit_step(given)) for given in problems]
    return [_row(*row, threads) for row in zip(SAMPLES, problems, peaks, strict=True)]


def _row(samples: int, given: evaluation.Problem, peak_mib: float, threads: int) -> dict[str, Any]:
    from bench.gpy_peer import statistics_and_gradients

    inducing = evaluation.SPEC.inducing
    regressions = evaluation.regressions(given)
    sizes = [x_hat.mean.shape[1] for _, x_hat in regressions]
    # One after the other, so that a change of the machine's load between sizes does not favour either.
    # `fit` enters `with_numerics` once (2 ms), not at every step; GPy and the floor keep BLAS on all threads.
    seconds = with_numerics(evaluation.median_seconds)(evaluation.fit_step(given))
    peer_seconds = evaluation.median_seconds(statistics_and_gradients(regressions))
    floor_seconds = evaluation.median_seconds(evaluation.floor(len(given.rows.y), sizes, inducing))
    return {
        "name": "bound and gradient",
        "n": samples,
        "inducing": inducing,
        "threads": threads,
        "device": jax.devices()[0].device_kind,
        "seconds": seconds,
        "peer": "GPy psi statistics and gradients",
        "peer_seconds": peer_seconds,
        "ratio": peer_seconds / seconds,
        "floor_seconds": floor_seconds,
        "peak_mib": peak_mib,
    }


@with_numerics
def _peak_mib_after(evaluate: Callable[[], object]) -> float:
    evaluation.warm_up(evaluate)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _meta() -> dict[str, Any]:
    return {
        "command": "python -m bench",
        "spec": evaluation.SPEC.to_dict(),
        "seed": evaluation.SEED,
        "repetitions": evaluation.REPETITIONS,
        "gpy": version("GPy"),
        "load_before": os.getloadavg()[0],
        "notes": NOTES,
    }


def _print(rows: list[dict[str, Any]]) -> None:
    first = rows[0]
    table = Table(
        title=f"{first['name']}, M = {first['inducing']}, {first['threads']} thread(s), {first['device']}",
        caption="GPy: psi statistics and gradients only",
    )
    for heading in ("N", "ours, ms", "GPy, ms", "ratio", "floor, ms", "peak, MiB"):
        table.add_column(heading, justify="right")
    for row in rows:
        times = [f"{1e3 * row[key]:.1f}" for key in ("seconds", "peer_seconds", "floor_seconds")]
        table.add_row(str(row["n"]), times[0], times[1], f"{row['ratio']:.2f}", times[2], f"{row['peak_mib']:.0f}")
    Console().print(table)
