"""`python -m bench [--only PART …] [--json FILE]`: run the parts and print one table (Linux only: affinity, memory)."""

import argparse
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.notes import NOTES
from revarb.analysis.report import write_results
from revarb.runtime.files import check_writable, make_folder

USABLE = len(os.sched_getaffinity(0))
PARTS = (
    *(("evaluation", threads) for threads in sorted({1, USABLE})),
    ("simulation", USABLE),
    *(("long_records", USABLE, samples) for samples in ("1000", "10000", "100000")),
    ("long_fits", USABLE, "100000"),
    ("observer", 1),
    ("frames", 1),
    ("fits", USABLE),
    ("refits", USABLE),
    ("choosing", USABLE),
)
"""Modules with their numbers of cores and arguments."""


def main() -> None:
    options = _options()
    if options.json is not None:
        make_folder(options.json.parent)
        check_writable(options.json)
    load = os.getloadavg()[0]  # before the benchmark adds its own load
    parts = [part for part in PARTS if not options.only or part[0] in options.only]
    rows = [row for part in parts for row in _run_part(*part)]
    screen, missed = Console(width=None if sys.stdout.isatty() else 130), _find_missed(rows)
    screen.print(_table(rows))
    for sentence in missed:
        screen.print(f"missed: {sentence}")
    if options.json is not None:
        only = "".join(f" {name}" for name in ("--only", *options.only)) if options.only else ""
        meta = {
            "command": f"python -m bench{only}",
            "gpy": version("GPy"),
            "load_before": load,
            "notes": NOTES,
            "missed": missed,
        }
        write_results(options.json, meta, rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Speed and memory of revarb.")
    parser.add_argument("--only", nargs="+", choices=sorted({name for name, *_ in PARTS}), metavar="PART", default=[])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    return parser.parse_args()


def _run_part(name: str, threads: int, *arguments: str) -> list[dict[str, Any]]:
    # The affinity limits XLA's thread pool; BLAS follows these variables, which the user may have set.
    cores = sorted(os.sched_getaffinity(0))[:threads]
    counts = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", *arguments],
        stdout=subprocess.PIPE, text=True, env={**os.environ, **counts}, check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    return [{"part": name, "threads": threads, **row} for row in found]


def _find_missed(rows: list[dict[str, Any]]) -> list[str]:
    # What must hold in any run on an idle machine.
    slower = [f"{row['name']}: {row['ratio']:.2f} of GPy's speed" for row in rows if row.get("ratio", 1.0) < 1.0]
    steps = {"observer": 2e-3, "frames": 1e-2}  # seconds of a step on one core
    late = [
        f"{row['name']}: {_time(row['seconds'])}, at most {_time(steps[row['part']])}"
        for row in rows
        if row["seconds"] >= steps.get(row["part"], float("inf"))
    ]
    refits = [f"{row['name']}: {row['of_fit']:.2f} of a fit" for row in rows if row.get("of_fit", 0.0) > 1.0]
    mixtures = [
        f"{row['name']}: {row['times_member']:.2f} times one" for row in rows if row.get("times_member", 0.0) >= 3.0
    ]
    return [*slower, *late, *refits, *mixtures]


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="speed", caption="GPy computes less than revarb (see the notes in the JSON file)")
    headings = ("what", "N", "cores", "ours", "GPy", "ratio", "floor", "of floor", "peak, MiB", "steps/s", "of one")
    for heading in (*headings, "NRMSE"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for row in rows:
        table.add_row(
            row["name"], str(row["n"]), str(row["threads"]), _time(row["seconds"]), _time(row.get("peer_seconds")),
            _number(row.get("ratio"), ".2f"), _time(row.get("floor_seconds")), _number(row.get("of_floor"), ".2f"),
            _number(row.get("peak_mib"), ".0f"), _number(row.get("steps_per_second"), ",.0f"),
            _number(row.get("times_member"), ".2f"), _number(row.get("nrmse"), ".4f"),
        )  # fmt: skip
    return table


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{1e3 * seconds:.1f} ms" if seconds < 1.0 else f"{seconds:.1f} s"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


if __name__ == "__main__":
    main()
