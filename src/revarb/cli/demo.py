"""`revarb demo`: a plant from its records to a simulation with a band. `revarb datasets`: the benchmark records."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from revarb.cli.application import app, print_written, say, screen, stop_interrupted
from revarb.runtime.interrupts import exit_on_interrupt

if TYPE_CHECKING:
    from revarb import Scores

EFFORT = "quick"
INTRODUCTION = (
    "Two tanks: the upper one drains into the lower one, and both can overflow. Given are 400 noisy samples of the "
    "pump's voltage and the lower level.\nThe fit takes about a minute the first time, less when it is repeated."
)
LABELS = {"voltage": "voltage (V)", "level": "level (cm)", "error": "error (cm)"}
PICTURE_TITLE = "Two tanks: simulated from the voltage of the pump alone"

datasets_app = typer.Typer(help="Benchmark data: list it, fetch it.")
app.add_typer(datasets_app, name="datasets")


@app.command()
def demo(
    folder: Annotated[Path, Option("--out", help="Folder for the data, the model and the picture.")] = Path(
        "revarb-demo"
    ),
    seed: Annotated[int, Option(help="Seed of the record and its noise.")] = 0,
) -> None:
    """Learn two tanks from 400 noisy samples, and simulate 400 more.

    The inputs of the second record are new. A table and a picture compare the simulation with ARX; it takes a minute.
    """
    with exit_on_interrupt():
        import revarb
        from revarb.analysis.report import write_results
        from revarb.data.table_file import write_table
        from revarb.models.recipe import Status
        from revarb.runtime.figure_style import label_axes, save_figure
        from revarb.runtime.files import make_folder
    split = revarb.datasets.load("two_tanks", seed)
    train, test = split.train, split.test
    make_folder(folder)
    written = [
        write_table(folder / name, {"voltage": record.u[:, 0], "level": record.y[:, 0]})
        for name, record in (("train.csv", train), ("test.csv", test))
    ]
    say(INTRODUCTION)
    started = time.perf_counter()
    model = revarb.fit(train, progress=True, effort=EFFORT)
    choice = model.choice
    assert choice is not None
    say(f"fitted in {time.perf_counter() - started:.0f} s: {choice.taken}")
    models = {"revarb": model, "ARX": revarb.ARX().fit(train), "training mean": revarb.Mean().fit(train)}
    paths = {name: each.simulate(test.u) for name, each in models.items()}
    path = paths["revarb"]
    picture = label_axes(path.plot(test.y, PICTURE_TITLE, {"ARX": paths["ARX"]}), LABELS)
    rows = {name: revarb.scores(each, test.y, path.skip) for name, each in paths.items()}
    _print_scores(rows)
    meta = {"table": "demo", "command": f"revarb demo --out {folder} --seed {seed}", "seed": seed, "effort": EFFORT}
    meta |= {"taken": choice.taken, "sentence": choice.sentence}
    print_written(
        *written,
        model.save(folder / "model.rgp"),
        path.to_csv(folder / "simulation.csv"),
        save_figure(folder / "simulation.png", picture),
        write_results(folder / "scores.json", meta, [{"model": name, **row.to_row()} for name, row in rows.items()]),
    )
    say("the same on your own columns:", bold=True)
    say(f"  revarb fit {folder}/train.csv -u voltage -y level --quick -o m.rgp")
    say(f"  revarb simulate m.rgp {folder}/test.csv -o path.csv")
    if model.status is Status.INTERRUPTED:
        stop_interrupted("the best candidate so far was kept")


def _print_scores(rows: Mapping[str, "Scores"]) -> None:
    from revarb.analysis.report import Grid, format_percent
    from revarb.cli.tables import terminal_table
    from revarb.datasets.benchmarks import NOISE_STD

    cells = [
        [name, f"{row.rmse:.3f}", f"{row.nrmse:.3f}", format_percent(row.coverage95)] for name, row in rows.items()
    ]
    ours, arx = rows["revarb"], rows["ARX"]
    title = f"simulation of the test record, first {ours.skip} rows left out"
    heads = ["model", "RMSE, cm", "RMSE / std of the level", "in the 95 % band"]
    screen.print(terminal_table(Grid(title, heads, cells)))
    say(
        f"The simulation misses the level by {ours.rmse:.2f} cm, of which the sensor's noise alone is {NOISE_STD:.2f} "
        f"cm; a linear ARX model misses it by {arx.rmse:.2f} cm. The 95 % band holds {cells[0][-1]}.",
        bold=True,
    )


@datasets_app.command("list")
def list_datasets() -> None:
    """Name every benchmark."""
    with exit_on_interrupt():
        from rich.table import Table

        from revarb import datasets
    table = Table("name", "what it is")
    for name in datasets.names():
        table.add_row(name, datasets.about(name))
    screen.print(table)


@datasets_app.command("fetch")
def fetch_datasets(
    names: Annotated[list[str] | None, Argument(help="Names; default: all that are recorded.")] = None,
) -> None:
    """Download benchmark files to the user's cache folder.

    They are checked; says where each is.
    """
    with exit_on_interrupt():
        from revarb import datasets
        from revarb.datasets.benchmarks import GENERATED
    for name in names or [name for name in datasets.names() if name not in GENERATED]:
        say(f"{name}: {datasets.fetch(name)}")
