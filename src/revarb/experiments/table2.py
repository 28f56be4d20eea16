"""Table 2 of the paper: walking and running, simulated from the position of the left toes."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from revarb import datasets
from revarb.baselines.gp_narx import GPNARX
from revarb.baselines.mean import Mean
from revarb.baselines.mlp_narx import MLPNARX
from revarb.baselines.per_output import PerOutput
from revarb.config.rgp import RGP
from revarb.data.scaling import Standardiser
from revarb.data.trajectory import Trajectory
from revarb.evaluation.comparison.runs import Run, Simulated, Spec, run_all
from revarb.evaluation.scoring import pooled_scores
from revarb.experiments.common import read_settings
from revarb.motion import cmu35

MOTION_PROTOCOL = (
    "free simulation of eight test motions, cold start, scored after L samples, z-scored with the training motions"
)


DRAW_NOTHING = ("Mean", "GP-NARX")


@dataclass(frozen=True)
class Table2:
    """What to run: experiments/table2.toml."""

    title: str
    paper: Mapping[str, float]
    shown: str
    narx: Mapping[str, Any]
    mlp: Mapping[str, Any]
    gp: Mapping[str, Any]
    model: Mapping[str, Any]
    variants: Sequence[Mapping[str, Any]]
    recognition: Mapping[str, Any]

    def models(self) -> dict[str, Spec]:
        """All lines of the table."""
        rivals = {
            "Mean": Mean(),
            "MLP-NARX": MLPNARX(**self.narx, **{**self.mlp, "units": tuple(self.mlp["units"])}),
            "GP-NARX": PerOutput(GPNARX(**self.narx, **self.gp)),
        }
        free = {name_variant(these): RGP.from_dict({**self.model, **these}) for these in self.variants}
        networks = {
            f"{name_variant(these)} + networks": RGP.from_dict({**self.model, **these, "recognition": self.recognition})
            for these in self.variants
        }
        return {**rivals, **free, **networks}

    def groups(self, seeds: int) -> list[tuple[dict[str, Spec], range]]:
        """Models with the seeds that they are fitted with: those that draw nothing need one."""
        fixed = {name: spec for name, spec in self.models().items() if name in DRAW_NOTHING}
        drawing = {name: spec for name, spec in self.models().items() if name not in DRAW_NOTHING}
        return [(fixed, range(1)), (drawing, range(seeds))]


def name_variant(variant: Mapping[str, Any]) -> str:
    """Hidden layers x latent states of each."""
    return f"REVARB {variant['hidden']} x {variant['latent_dim']}"


def load_table2() -> Table2:
    """The experiment as it ships with the package."""
    return Table2(**tomllib.loads(read_settings("table2.toml")))


class MotionRun(NamedTuple):
    """One fit: its rows of the results file, one per method, and its simulations of the test motions.

    `paths` are those of its best method, and `errors` the RMSE of each over all channels.
    """

    model: str
    seed: int
    rows: list[dict[str, Any]]
    paths: tuple[Trajectory, ...] = ()
    errors: tuple[float, ...] = ()


def run_table2(
    table: Table2, seeds: int, jobs: int = 1, report: Callable[[str], None] = lambda text: None
) -> Iterator[MotionRun]:
    """The fits of the table in the order in which they finish. `report` hears of every one."""
    split = datasets.load("cmu35")
    for models, numbers in table.groups(seeds):
        for run in run_all(models, numbers, split.train, split.test, jobs):
            report(f"{run.model}, seed {run.seed}")
            yield _scored(run, split)


def _scored(run: Run, split: datasets.Split) -> MotionRun:
    common = {"dataset": "cmu35", "model": run.model, "start": "cold", "seed": run.seed, "status": run.status,
              "reason": run.reason, "fit_seconds": run.fit_seconds, "skip": split.skip}  # fmt: skip
    if run.reason is not None:
        return MotionRun(run.model, run.seed, [{**common, "method": "", **dict.fromkeys(MOTION_COLUMNS, np.nan)}])
    errors = {method: _errors(simulated, split) for method, simulated in run.simulated.items()}
    rows = [{**common, "method": method, **_scores(run.simulated[method], errors[method], split)} for method in errors]
    best = min(rows, key=lambda row: row["motions_57"])["method"]
    each = tuple(_rms(error) for error in errors[best])
    return MotionRun(run.model, run.seed, rows, run.simulated[best].paths, each)


def _errors(simulated: Simulated, split: datasets.Split) -> list[Float64[np.ndarray, "_ D"]]:
    scaling = Standardiser.from_records(split.train)
    pairs = zip(simulated.paths, split.test, strict=True)
    return [(scaling.outputs(path.mean) - scaling.outputs(record.y))[split.skip :] for path, record in pairs]


def _scores(
    simulated: Simulated, errors: Sequence[Float64[np.ndarray, "_ D"]], split: datasets.Split
) -> dict[str, float]:
    names = split.test[0].output_names
    chosen = {57: np.ones(len(names), dtype=bool), 53: cmu35.is_informative(names)}
    scores = {
        f"{score}_{count}": value
        for count, columns in chosen.items()
        for score, value in score_motions(errors, columns, cmu35.TEST)._asdict().items()
    }
    band = pooled_scores(simulated.paths, [record.y for record in split.test], split.skip)
    return {**scores, "coverage95": band.coverage95, "simulate_seconds": simulated.seconds}


class MotionScores(NamedTuple):
    """RMSE of z-scored values, three ways, and over the walks and the runs apart.

    motions   mean over the motions of each one's RMSE
    pooled    over all rows and channels at once
    channels  mean over the channels of each one's RMSE
    """

    motions: float
    pooled: float
    channels: float
    walks: float
    runs: float


def score_motions(
    errors: Sequence[Float64[np.ndarray, "_ D"]], columns: Bool[np.ndarray, " D"], numbers: Sequence[int]
) -> MotionScores:
    """The scores of z-scored errors, one block per motion, in some of the channels."""
    counted = [error[:, columns] for error in errors]
    per_motion = np.array([_rms(error) for error in counted])
    together = np.concatenate(counted)
    runs = np.array([number in cmu35.RUNS for number in numbers])
    per_channel = [_rms(channel) for channel in together.T]
    return MotionScores(
        motions=float(per_motion.mean()),
        pooled=_rms(together),
        channels=float(np.mean(per_channel)),
        walks=float(per_motion[~runs].mean()),
        runs=float(per_motion[runs].mean()),
    )


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


MOTION_COLUMNS = (
    *(f"{score}_{count}" for count in (57, 53) for score in MotionScores._fields),
    "coverage95",
    "fit_seconds",
    "simulate_seconds",
)
"""What is summarised over seeds. 57: all channels, as in the paper; 53: those that are more than rounding noise."""
