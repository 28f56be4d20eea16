"""Fit a generated plant, simulate its test record, and compare with ARX in a table and a picture."""

import time
from collections.abc import Mapping
from pathlib import Path

from revarb import datasets
from revarb.baselines.arx import ARX
from revarb.baselines.training_mean import Mean
from revarb.cli.application import print_written, screen, stop_interrupted
from revarb.data.series import Series
from revarb.data.tables.writing import write_table
from revarb.data.trajectory import Trajectory
from revarb.datasets import Split
from revarb.datasets.two_tanks import NOISE_STD
from revarb.evaluation.results_file import write_results
from revarb.evaluation.scoring import Scores, scores
from revarb.models.base import Fitted
from revarb.optim.status import Status
from revarb.report.tables import Grid, format_percent, terminal_table
from revarb.runtime.figure_style import save_figure
from revarb.runtime.files import make_folder
from revarb.training.choose import fit as choose_model

EFFORT = "quick"


def run_demo(folder: Path, seed: int) -> None:
    """`revarb demo` with its options."""
    split = datasets.load("two_tanks", seed)
    make_folder(folder)
    written = [_write_record(folder / "train.csv", split.train), _write_record(folder / "test.csv", split.test)]
    screen.print(
        "Two tanks: the upper one drains into the lower one, and both can overflow. Given are 400 noisy samples of the "
        "pump's voltage and the lower level.\nThe fit takes about a minute the first time, less when it is repeated.",
        soft_wrap=True,
    )
    started = time.perf_counter()
    model = choose_model(split.train, progress=True, effort=EFFORT)
    seconds = time.perf_counter() - started
    assert model.choice is not None
    screen.print(f"fitted in {seconds:.0f} s: {model.choice.taken}", soft_wrap=True)
    paths = {"revarb": model.simulate(split.test.u), "ARX": ARX().fit(split.train).simulate(split.test.u)}
    paths["training mean"] = Mean().fit(split.train).simulate(split.test.u)
    rows = {name: scores(path, split.test.y, skip=paths["revarb"].skip) for name, path in paths.items()}
    screen.print(terminal_table(_make_grid(rows)))
    screen.print(describe(rows), style="bold", soft_wrap=True)
    written += _write(folder, model, paths, split, rows, seed)
    print_written(*written)
    screen.print("the same on your own columns:", style="bold")
    screen.print(f"  revarb fit {folder}/train.csv -u voltage -y level --quick -o m.rgp", soft_wrap=True)
    screen.print(f"  revarb simulate m.rgp {folder}/test.csv -o path.csv", soft_wrap=True)
    if model.status is Status.INTERRUPTED:
        stop_interrupted("the best candidate so far was kept")


def describe(rows: Mapping[str, Scores]) -> str:
    """What the scores show, in a sentence."""
    ours, arx = rows["revarb"], rows["ARX"]
    return (
        f"The simulation misses the level by {ours.rmse:.2f} cm, of which the sensor's noise alone is {NOISE_STD:.2f} "
        f"cm; a linear ARX model misses it by {arx.rmse:.2f} cm. The 95 % band holds {format_percent(ours.coverage95)}."
    )


def _write_record(path: Path, record: Series) -> Path:
    return write_table(path, {record.input_names[0]: record.u[:, 0], record.output_names[0]: record.y[:, 0]})


def _make_grid(rows: Mapping[str, Scores]) -> Grid:
    skip = rows["revarb"].skip
    cells = [
        [name, f"{row.rmse:.3f}", f"{row.nrmse:.3f}", format_percent(row.coverage95)] for name, row in rows.items()
    ]
    title = f"simulation of the test record, first {skip} rows left out"
    return Grid(title, ["model", "RMSE, cm", "RMSE / std of the level", "in the 95 % band"], cells)


def _write(
    folder: Path, model: Fitted, paths: Mapping[str, Trajectory], split: Split, rows: Mapping[str, Scores], seed: int
) -> list[Path]:
    path, choice = paths["revarb"], model.choice
    assert choice is not None
    picture = path.plot(split.test.y, "Two tanks: simulated from the voltage of the pump alone", {"ARX": paths["ARX"]})
    meta = {"table": "demo", "command": f"revarb demo --out {folder} --seed {seed}", "seed": seed, "effort": EFFORT}
    meta |= {"taken": choice.taken, "sentence": choice.sentence}
    return [
        model.save(folder / "model.rgp"),
        path.to_csv(folder / "simulation.csv"),
        save_figure(folder / "simulation.png", picture),
        write_results(folder / "scores.json", meta, [{"model": name, **row.to_row()} for name, row in rows.items()]),
    ]
