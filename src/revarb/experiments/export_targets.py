"""What the table of exports must show: the outputs of `simulate` in every format, and a step in C that is fast."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from revarb.experiments.export_runs import C_DOUBLE, C_FLOAT, EXPORTED, JAX
from revarb.experiments.field_targets import Target
from revarb.report.tables import Grid

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ExportLimits:
    """Limits of the targets."""

    double: float  # largest difference to simulate, in standard deviations of the output
    single: float  # of an export in single precision
    faster: float  # time of a compiled JAX step / time of a step in C, double


def list_export_targets(rows: Rows, limits: ExportLimits) -> list[Target]:
    """All targets that the rows can be judged by."""
    names = dict.fromkeys(row["dataset"] for row in rows)
    return [target for name in names for target in _judge(name, rows, limits)]


def export_grid(name: str, rows: Rows) -> Grid:
    """A row per format."""
    columns = ("format", "difference", "kB", "µs per step", "µs per step of a run", "JAX / it")
    return Grid(name, columns, [export_cells(row) for row in rows])


def export_cells(row: Mapping[str, Any]) -> list[str]:
    """Format, difference, size, times, and how many times faster than a JAX step."""
    numbers = (row[name] for name in ("kilobytes", "microseconds", "run_microseconds", "speedup"))
    return [row["format"], f"{row['difference']:.1e}", *("–" if each is None else f"{each:.3g}" for each in numbers)]


def _judge(name: str, rows: Rows, limits: ExportLimits) -> Iterator[Target]:
    own = {row["format"]: row for row in rows if row["dataset"] == name}
    for kind in (kind for kind in EXPORTED if kind in own):
        limit, found = limits.single if kind == C_FLOAT else limits.double, own[kind]["difference"]
        yield Target(f"{name}, {kind}: difference at most {limit:g}", found <= limit, f"{found:.1e}")
    if C_DOUBLE in own and JAX in own:
        ratio, what = own[C_DOUBLE]["speedup"], f"C at least {limits.faster:g} × faster than a JAX step"
        yield Target(f"{name}: {what}", ratio >= limits.faster, f"{ratio:.1f} ×")
