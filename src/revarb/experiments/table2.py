"""Table 2 of the paper: walking and running, simulated from the position of the left toes."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float64
from matplotlib.figure import Figure

from revarb import datasets
from revarb.baselines.gp_narx import GPNARX
from revarb.baselines.mlp_narx import MLPNARX
from revarb.baselines.per_output import PerOutput
from revarb.baselines.training_mean import Mean
from revarb.config.rgp import RGP
from revarb.data.scaling import Standardiser
from revarb.data.trajectory import Trajectory
from revarb.evaluation.comparison.lines import Line, summarise
from revarb.evaluation.comparison.runs import Run, Simulated, run_all
from revarb.evaluation.scoring import pooled_scores
from revarb.experiments.common import read_settings
from revarb.experiments.experiment import Experiment, Part, Report
from revarb.experiments.motion_scores import MOTION_COLUMNS, root_mean_square, score_motions
from revarb.models.base import ModelSpec
from revarb.motion import cmu35
from revarb.motion.motion_tables import NOTES, tabulate_motions
from revarb.motion.player_page import Clip, make_motion_page
from revarb.motion.strip import draw_strip
from revarb.report.tables import Grid, list_failures

DETERMINISTIC = ("Mean", "GP-NARX")
DRAWN = (cmu35.TEST[0], next(number for number in cmu35.TEST if number in cmu35.RUNS))  # a walk and a run


class MotionRun(NamedTuple):
    """One fit: its rows of the results file, one per method, and its simulations of the test motions.

    `paths` are those of its best method, `errors` the RMSE of each motion over all channels; empty where it failed.
    """

    model: str
    seed: int
    rows: list[dict[str, Any]]
    paths: tuple[Trajectory, ...] = ()
    errors: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class MotionPart(Part):
    """Results of all fits, in the order of the models."""

    rows: list[dict[str, Any]]
    runs: Sequence[MotionRun]
    paper: Mapping[str, float]
    shown: str

    @property
    def lines(self) -> list[Line]:
        """The rows summarised over seeds."""
        return summarise(self.rows, MOTION_COLUMNS)

    def grids(self) -> list[Grid]:
        """Errors over 57 and over 53 channels."""
        return tabulate_motions(self.lines, self.paper)

    def sentences(self) -> list[str]:
        """Reasons of failures."""
        return list_failures(self.lines)

    def figures(self) -> dict[str, Figure]:
        """Strips of a walk and a run, measured and simulated by the model that is shown."""
        drawn = [clip for number, clip in self.clips().items() if number in DRAWN]
        return {f"motion_{clip.name.replace(' ', '_')}": self._strip(clip) for clip in drawn}

    def clips(self) -> dict[int, Clip]:
        """Test motions by number, measured and simulated by the model that is shown; empty where it failed."""
        run = next((run for run in self.runs if run.model == self.shown and run.paths), None)
        if run is None:
            return {}
        clips, skip = {}, run.rows[0]["skip"]
        for number, path, rmse in zip(cmu35.TEST, run.paths, run.errors, strict=True):
            measured = cmu35.load_motion(number)
            # The models do not predict the root's position: both skeletons move along the measured path.
            simulated = cmu35.to_motion(path.mean, path.output_names, measured.root)
            kind = "run" if number in cmu35.RUNS else "walk"
            note = f"{self.shown}: RMSE {rmse:.3f} (z-scored, after {skip} frames)"
            clips[number] = Clip(f"35_{number:02d} {kind}", measured.joints(), simulated.joints(), path.dt, skip, note)
        return clips

    def _strip(self, clip: Clip) -> Figure:
        strips = {"measured": clip.measured, f"simulated: {self.shown}": clip.simulated}
        return draw_strip(strips, cmu35.load_skeleton(), f"{clip.name}, a test motion", clip.dt, clip.scored_from)

    def state_best(self) -> str:
        """The best model and its error, in a sentence."""
        best: dict[str, float] = {}
        for line in self.lines:
            if line.worked:
                error = line.ranges["motions_57"].median
                best[line.model] = min(error, best.get(line.model, error))
        first = min(best, key=best.__getitem__)
        return f"{first} is best: RMSE {best[first]:.3f}, mean over test motions, median over seeds."


@dataclass(frozen=True)
class Table2(Experiment[MotionPart]):
    """The experiment with the settings of table2.toml."""

    name: ClassVar[str] = "table2"
    protocol: ClassVar[str] = (
        "free simulation of eight test motions, cold start, scored after L samples, z-scored with the training motions"
    )

    title: str
    paper: Mapping[str, float]
    shown: str
    narx: Mapping[str, Any]
    mlp: Mapping[str, Any]
    gp: Mapping[str, Any]
    model: Mapping[str, Any]
    variants: Sequence[Mapping[str, Any]]
    recognition: Mapping[str, Any]

    def models(self) -> dict[str, ModelSpec]:
        """All models of the table."""
        baselines = {
            "Mean": Mean(),
            "MLP-NARX": MLPNARX(**self.narx, **{**self.mlp, "units": tuple(self.mlp["units"])}),
            "GP-NARX": PerOutput(GPNARX(**self.narx, **self.gp)),
        }
        free = {name_variant(these): RGP.from_dict({**self.model, **these}) for these in self.variants}
        networks = {
            f"{name_variant(these)} + networks": RGP.from_dict({**self.model, **these, "recognition": self.recognition})
            for these in self.variants
        }
        return {**baselines, **free, **networks}

    def groups(self, seeds: int) -> list[tuple[dict[str, ModelSpec], range]]:
        """Models with the seeds that they are fitted with: deterministic ones need only one."""
        fixed = {name: spec for name, spec in self.models().items() if name in DETERMINISTIC}
        seeded = {name: spec for name, spec in self.models().items() if name not in DETERMINISTIC}
        return [(fixed, range(1)), (seeded, range(seeds))]

    def count_steps(self, seeds: int) -> int:
        """Number of fits."""
        return sum(len(models) * len(numbers) for models, numbers in self.groups(seeds))

    def fit_all(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[MotionRun]:
        """Fit and score all models, in the order in which they finish; `report` gets a text after every fit."""
        split = datasets.load("cmu35")
        for models, numbers in self.groups(seeds):
            for run in run_all(models, numbers, split.train, split.test, jobs):
                report(f"{run.model}, seed {run.seed}")
                yield _score_run(run, split)

    def run(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[MotionPart]:
        """Run all fits, as a single part."""
        order = list(self.models())
        runs = sorted(self.fit_all(seeds, jobs, report), key=lambda run: (order.index(run.model), run.seed))
        yield MotionPart([row for run in runs for row in run.rows], runs, self.paper, self.shown)

    def notes(self, seeds: int) -> list[str]:
        """The protocol, and how to read the tables."""
        return [f"protocol: {self.protocol}; {seeds} seed(s)", *NOTES]

    def page(self, parts: Sequence[MotionPart], meta: Mapping[str, Any]) -> str | None:
        """A page that plays the motions; None where the model to show failed."""
        (part,) = parts
        clips = list(part.clips().values())
        if not clips:
            return None
        opening = (
            f"{part.state_best()} Below: test motions as measured and as {self.shown} simulates them from the position "
            "of the left toes."
        )
        return make_motion_page(self.title, opening, cmu35.load_skeleton(), clips, part.grids(), meta)


def load_table2() -> Table2:
    """Load the experiment that ships with the package."""
    return Table2(**tomllib.loads(read_settings("table2.toml")))


def name_variant(variant: Mapping[str, Any]) -> str:
    """Name a variant by its hidden layers x latent states of each."""
    return f"REVARB {variant['hidden']} x {variant['latent_dim']}"


def _score_run(run: Run, split: datasets.Split) -> MotionRun:
    common = {"dataset": "cmu35", "model": run.model, "start": "cold", "seed": run.seed, "status": run.status,
              "reason": run.reason, "fit_seconds": run.fit_seconds, "skip": split.skip}  # fmt: skip
    if run.reason is not None:
        return MotionRun(run.model, run.seed, [{**common, "method": "", **dict.fromkeys(MOTION_COLUMNS, np.nan)}])
    errors = {method: _errors(simulated, split) for method, simulated in run.simulated.items()}
    rows = [{**common, "method": method, **_scores(run.simulated[method], errors[method], split)} for method in errors]
    best = min(rows, key=lambda row: row["motions_57"])["method"]
    per_motion = tuple(root_mean_square(error) for error in errors[best])
    return MotionRun(run.model, run.seed, rows, run.simulated[best].paths, per_motion)


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
