"""The rows of the speed table: measured, printed, written."""

import resource
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

from bench import evaluation
from revarb.files import check_target, make_folder
from revarb.results import write_results

SAMPLES = (250, 512, 2000)  # Drive, Actuator, and a record that does not fit into the cache

NOTES = {
    "seconds": "median; one bound with its gradient at the start of a fit, by the function that fit compiles, "
    "compilation not counted",
    "peer_seconds": "median; psi statistics and their gradients of the same layers, nothing else: no Cholesky factors, "
    "no bound, which favours the peer",
    "ratio": "peer_seconds / seconds",
    "floor_seconds": "median; NumPy, float64, per layer: one product [R, 2D+1] x [2D+1, M(M+1)/2], its exponential "
    "(one thread) and two products back, in blocks of rows",
    "peak_mib": "peak resident memory of the process after ours at this size, compilation included: a running maximum "
    "over the sizes; GPy is imported afterwards",
}


def run(threads: int, json: Path | None) -> None:
    """Measure every size, print the table, and write it if a file is named."""
    if json is not None:
        make_folder(json.parent)
        check_target(json)
    rows = _rows(threads)
    _print(rows)
    if json is not None:
        write_results(json, _meta(), rows)


def _rows(threads: int) -> list[dict[str, Any]]:
    problems = [evaluation.problem(samples) for samples in SAMPLES]
    # Ours at all sizes first, and GPy not even imported: its memory must not count as ours.
    ours = [(evaluation.bound_seconds(given), _peak_mib()) for given in problems]
    peers = [_peer_and_floor(given) for given in problems]
    return [
        {
            "name": "bound and gradient",
            "n": samples,
            "inducing": evaluation.SPEC.inducing,
            "threads": threads,
            "device": jax.devices()[0].device_kind,
            "seconds": seconds,
            "peer": "GPy psi statistics and gradients",
            "peer_seconds": peer_seconds,
            "ratio": peer_seconds / seconds,
            "floor_seconds": floor_seconds,
            "peak_mib": peak_mib,
        }
        for samples, (seconds, peak_mib), (peer_seconds, floor_seconds) in zip(SAMPLES, ours, peers, strict=True)
    ]


def _peer_and_floor(given: evaluation.Problem) -> tuple[float, float]:
    from bench.gpy_peer import gpy_seconds

    regressions = evaluation.regressions(given)
    sizes = [x_hat.mean.shape[1] for _, x_hat in regressions]
    floor = evaluation.floor_seconds(len(given.rows.y), sizes, evaluation.SPEC.inducing)
    return gpy_seconds(regressions), floor


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _meta() -> dict[str, Any]:
    return {
        "command": "python -m bench",
        "spec": evaluation.SPEC.to_dict(),
        "seed": evaluation.SEED,
        "repetitions": evaluation.REPETITIONS,
        "gpy": version("GPy"),
        "notes": NOTES,
    }


def _print(rows: list[dict[str, Any]]) -> None:
    first = rows[0]
    table = Table(
        title=f"{first['name']}, M = {first['inducing']}, {first['threads']} thread(s), {first['device']}",
        caption=f"{first['peer']} only: no Cholesky factors, no bound",
    )
    for heading in ("N", "ours, ms", "GPy, ms", "ratio", "floor, ms", "peak, MiB"):
        table.add_column(heading, justify="right")
    for row in rows:
        times = [f"{1e3 * row[key]:.1f}" for key in ("seconds", "peer_seconds", "floor_seconds")]
        table.add_row(str(row["n"]), times[0], times[1], f"{row['ratio']:.2f}", times[2], f"{row['peak_mib']:.0f}")
    Console().print(table)
