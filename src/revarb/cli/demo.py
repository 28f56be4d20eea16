"""`revarb demo`: the Artificial benchmark end to end."""

import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from revarb import datasets
from revarb.baselines.training_mean import Mean
from revarb.cli.application import app, print_written, screen
from revarb.config.rgp import RGP
from revarb.data.tables.writing import write_table
from revarb.evaluation.results_file import write_results
from revarb.evaluation.scoring import scores
from revarb.experiments.common import read_settings
from revarb.report.tables import score_table
from revarb.runtime.figure_style import save_figure
from revarb.runtime.files import make_folder, write_atomic

DEMO_RECORD = 3  # experiments/demo.toml says why


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the data, the model and the pictures.")] = Path(
        "revarb-demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the start of the fit.")] = 0,
) -> None:
    """The Artificial benchmark end to end: 300 noisy samples in, 300 simulated samples with bands out."""
    make_folder(folder)
    split = datasets.load("artificial", seed=DEMO_RECORD)
    for name, record in (("train.csv", split.train), ("test.csv", split.test)):
        write_table(folder / name, {"u": record.u[:, 0], "y": record.y[:, 0]})
    settings = read_settings("demo.toml")
    write_atomic(folder / "rgp.toml", settings.encode())
    screen.print(
        f"fitting record {DEMO_RECORD} of the Artificial benchmark (Narendra & Li 1996), 300 noisy samples: one that "
        "goes well; rgp.toml says how others go",
        soft_wrap=True,
    )
    model = RGP.from_dict(tomllib.loads(settings)).fit(split.train, seed=seed, progress=True)
    model.save(folder / "model.rgp")
    save_figure(folder / "fit.png", model.plot_fit(split.train))
    paths = {method: model.simulate(split.test.u, method=method) for method in ("moments", "mean")}
    rows = {f"revarb, {name}": scores(path, split.test.y) for name, path in paths.items()}
    rows["training mean"] = scores(Mean().fit(split.train).simulate(split.test.u), split.test.y, skip=split.skip)
    screen.print(score_table(rows, "free simulation, cold start"))
    meta = {"table": "demo", "command": f"revarb demo --out {folder}", "record": DEMO_RECORD, "seed": seed}
    write_results(folder / "scores.json", meta, [{"model": name, **asdict(row)} for name, row in rows.items()])
    title = "Artificial: free simulation of unseen inputs"
    save_figure(folder / "simulation.png", paths["moments"].plot(split.test.y, title))
    paths["moments"].to_csv(folder / "simulation.csv")
    print_written(*sorted(folder.iterdir()))
    screen.print("the same by hand, on your own columns:", style="bold")
    screen.print(f"  revarb fit {folder}/train.csv -u u -y y --config {folder}/rgp.toml -o m.rgp", soft_wrap=True)
    screen.print(f"  revarb simulate m.rgp {folder}/test.csv -o path.csv", soft_wrap=True)
