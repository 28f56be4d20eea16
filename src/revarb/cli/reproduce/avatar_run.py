"""Train the paper's avatar, measure its motions under new speeds, and write them."""

from pathlib import Path

from revarb.cli.application import print_written, screen
from revarb.cli.reproduce.runner import Targets, write_figures, write_rows
from revarb.config.rgp import RGP
from revarb.experiments.avatar import draw_signals, export_step, measure_signals, tabulate_signals
from revarb.motion.avatar.model import load_avatar_records
from revarb.motion.gaits import Gaits
from revarb.report.tables import terminal_table


def run_avatar(spec: RGP, out: Path, seed: int, json_file: Path | None) -> None:
    """Train an avatar, measure its motions, and write the model, strips, exports and the results file."""
    Targets(json_file, pictures=out).check()
    records = load_avatar_records()
    gaits = Gaits.from_records(records)
    model = spec.fit(records, seed=seed, progress=True)
    print_written(model.save(out / "avatar.rgp"))
    rows = measure_signals(model, gaits)
    screen.print(terminal_table(tabulate_signals(rows)))
    write_figures(out, draw_signals(model, gaits))
    print_written(*export_step(model, gaits, out))
    if json_file is not None:
        write_rows(json_file, {"experiment": "avatar", "seed": seed, "bound": model.bound}, rows)
