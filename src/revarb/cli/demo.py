"""`revarb demo`: a plant from its records to a simulation with a band, in a minute."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from revarb.cli.application import app, print_written, screen, stop_interrupted
from revarb.runtime.interrupts import exit_on_interrupt

if TYPE_CHECKING:
    from revarb import Scores, Series, Trajectory
    from revarb.models.base import Fitted

EFFORT = "quick"
INTRODUCTION = (
    "Two tanks: the upper one drains into the lower one, and both can overflow. Given are 400 noisy samples of the "
    "pump's voltage and the lower level.\nThe fit takes about a minute the first time, less when it is repeated."
)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the data, the model and the picture.")] = Path(
        "revarb-demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the record and its noise.")] = 0,
) -> None:
    """Learn two tanks from 400 noisy samples, and simulate 400 more.

    The inputs of the second record are new. A table and a picture compare the simulation with ARX; it takes a minute.
    """
    with exit_on_interrupt():
        import revarb
        from revarb.data.table_file import write_table
        from revarb.models.status import Status
        from revarb.runtime.files import make_folder
    split = revarb.datasets.load("two_tanks", seed)
    make_folder(folder)
    written = [
        write_table(folder / name, {"voltage": record.u[:, 0], "level": record.y[:, 0]})
        for name, record in (("train.csv", split.train), ("test.csv", split.test))
    ]
    screen.print(INTRODUCTION, soft_wrap=True)
    started = time.perf_counter()
    model = revarb.fit(split.train, progress=True, effort=EFFORT)
    seconds = time.perf_counter() - started
    assert model.choice is not None
    screen.print(f"fitted in {seconds:.0f} s: {model.choice.taken}", soft_wrap=True)
    others = {"ARX": revarb.ARX(), "training mean": revarb.Mean()}
    paths = {"revarb": model.simulate(split.test.u)}
    paths |= {name: spec.fit(split.train).simulate(split.test.u) for name, spec in others.items()}
    rows = {name: revarb.scores(path, split.test.y, skip=paths["revarb"].skip) for name, path in paths.items()}
    _print_scores(rows)
    print_written(*written, *_write(folder, model, paths, split.test, rows, seed))
    screen.print("the same on your own columns:", style="bold")
    screen.print(f"  revarb fit {folder}/train.csv -u voltage -y level --quick -o m.rgp", soft_wrap=True)
    screen.print(f"  revarb simulate m.rgp {folder}/test.csv -o path.csv", soft_wrap=True)
    if model.status is Status.INTERRUPTED:
        stop_interrupted("the best candidate so far was kept")


def _print_scores(rows: Mapping[str, "Scores"]) -> None:
    from revarb.analysis.tables import Grid, format_percent, terminal_table
    from revarb.datasets.generated import NOISE_STD

    cells = [
        [name, f"{row.rmse:.3f}", f"{row.nrmse:.3f}", format_percent(row.coverage95)] for name, row in rows.items()
    ]
    ours, arx = rows["revarb"], rows["ARX"]
    title = f"simulation of the test record, first {ours.skip} rows left out"
    heads = ["model", "RMSE, cm", "RMSE / std of the level", "in the 95 % band"]
    screen.print(terminal_table(Grid(title, heads, cells)))
    screen.print(
        f"The simulation misses the level by {ours.rmse:.2f} cm, of which the sensor's noise alone is {NOISE_STD:.2f} "
        f"cm; a linear ARX model misses it by {arx.rmse:.2f} cm. The 95 % band holds {cells[0][-1]}.",
        style="bold",
        soft_wrap=True,
    )


def _write(
    folder: Path,
    model: "Fitted",
    paths: Mapping[str, "Trajectory"],
    test: "Series",
    rows: Mapping[str, "Scores"],
    seed: int,
) -> list[Path]:
    from revarb.analysis.tables import write_results
    from revarb.runtime.figure_style import save_figure

    path, choice = paths["revarb"], model.choice
    assert choice is not None
    picture = path.plot(test.y, "Two tanks: simulated from the voltage of the pump alone", {"ARX": paths["ARX"]})
    meta = {"table": "demo", "command": f"revarb demo --out {folder} --seed {seed}", "seed": seed, "effort": EFFORT}
    meta |= {"taken": choice.taken, "sentence": choice.sentence}
    return [
        model.save(folder / "model.rgp"),
        path.to_csv(folder / "simulation.csv"),
        save_figure(folder / "simulation.png", picture),
        write_results(folder / "scores.json", meta, [{"model": name, **row.to_row()} for name, row in rows.items()]),
    ]
