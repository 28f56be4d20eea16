"""Choose a model of the Artificial benchmark, simulate its test part, and write the scores and pictures."""

from pathlib import Path
from typing import cast

from revarb import datasets
from revarb.baselines.training_mean import Mean
from revarb.cli.application import print_written, screen
from revarb.cli.work.fit import Trained
from revarb.data.tables.writing import write_table
from revarb.data.trajectory import Trajectory
from revarb.datasets import Split
from revarb.evaluation.results_file import write_results
from revarb.evaluation.scoring import Scores, scores
from revarb.models.base import Fitted
from revarb.report.tables import score_table
from revarb.runtime.figure_style import save_figure
from revarb.runtime.files import make_folder
from revarb.training.choose import fit as choose_model

DEMO_RECORD = 0  # the first seed: it was not selected


def run_demo(folder: Path, seed: int) -> None:
    """`revarb demo` with its options."""
    make_folder(folder)
    split = datasets.load("artificial", seed=DEMO_RECORD)
    for name, record in (("train.csv", split.train), ("test.csv", split.test)):
        write_table(folder / name, {"u": record.u[:, 0], "y": record.y[:, 0]})
    screen.print(
        f"300 noisy samples of the Artificial benchmark (Narendra & Li 1996), drawn with seed {DEMO_RECORD}, which was "
        "not selected; choosing a model takes some minutes",
        soft_wrap=True,
    )
    model = cast("Trained", choose_model(split.train, seed=seed, progress=True))
    _write_model(model, split, folder)
    paths = _simulate(model, split)
    _write_scores(_score(paths, split), model, folder, seed)
    _write_path(next(iter(paths.values())), split, folder)
    print_written(*sorted(folder.iterdir()))
    screen.print("the same by hand, on your own columns:", style="bold")
    screen.print(f"  revarb fit {folder}/train.csv -u u -y y -o m.rgp", soft_wrap=True)
    screen.print(f"  revarb simulate m.rgp {folder}/test.csv -o path.csv", soft_wrap=True)


def _write_model(model: Trained, split: Split, folder: Path) -> None:
    assert model.choice is not None
    screen.print(model.choice.summary())
    model.save(folder / "model.rgp")
    save_figure(folder / "fit.png", model.plot_fit(split.train))
    save_figure(folder / "choice.png", model.choice.plot())


def _simulate(model: Fitted, split: Split) -> dict[str, Trajectory]:
    # By every method that the model has, the one with the best band first.
    return {method: model.simulate(split.test.u, method) for method in reversed(model.methods)}


def _score(paths: dict[str, Trajectory], split: Split) -> dict[str, Scores]:
    rows = {f"revarb, {name}": scores(path, split.test.y) for name, path in paths.items()}
    skip = next(iter(paths.values())).skip  # the same rows as the model
    rows["training mean"] = scores(Mean().fit(split.train).simulate(split.test.u), split.test.y, skip=skip)
    return rows


def _write_scores(rows: dict[str, Scores], model: Trained, folder: Path, seed: int) -> None:
    screen.print(score_table(rows, "free simulation, cold start"))
    assert model.choice is not None
    chosen = {"taken": model.choice.taken, "sentence": model.choice.sentence}
    meta = {"table": "demo", "command": f"revarb demo --out {folder}", "record": DEMO_RECORD, "seed": seed, **chosen}
    write_results(folder / "scores.json", meta, [{"model": name, **row.to_row()} for name, row in rows.items()])


def _write_path(path: Trajectory, split: Split, folder: Path) -> None:
    title = "Artificial: free simulation of unseen inputs"
    save_figure(folder / "simulation.png", path.plot(split.test.y, title))
    path.to_csv(folder / "simulation.csv")
