"""The recognition model from all its starts, compared with the free form: every member and their mixture."""

import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from revarb import datasets
from revarb.baselines.training_mean import Mean
from revarb.config.rgp import RGP
from revarb.evaluation.comparison.lines import summarise
from revarb.evaluation.scoring import scores
from revarb.experiments.common import PROTOCOL, raise_if_interrupted, read_settings
from revarb.experiments.experiment import Experiment, Part, Report
from revarb.models.base import Fitted
from revarb.models.ensemble import Ensemble
from revarb.report.tables import Grid, format_percent, format_range

MIXTURE = "mixture"
SCORES = ("rmse", "nlpd", "coverage95")


@dataclass(frozen=True, eq=False)
class RecognitionPart(Part):
    """Results on one data set. Rows of members have a seed, rows of the mixture of all members have None."""

    rows: list[dict[str, Any]]

    def grids(self) -> list[Grid]:
        """Every model and method, over the seeds."""
        cells = [
            [line.model, line.method, format_range(line.ranges["rmse"]), format_range(line.ranges["nlpd"]),
             format_percent(line.ranges["coverage95"].median)]
            for line in summarise(self.rows, SCORES)
        ]  # fmt: skip
        return [Grid(self.rows[0]["dataset"], ("model", "method", "RMSE", "NLPD", "in 95 %"), cells)]


@dataclass(frozen=True)
class RecognitionTable(Experiment[RecognitionPart]):
    """The experiment with the settings of recognition.toml."""

    name: ClassVar[str] = "recognition"
    protocol: ClassVar[str] = PROTOCOL

    title: str
    datasets: Mapping[str, Sequence[str]]
    free_form: Mapping[str, Any]
    networks: Mapping[str, Any]
    starts: Mapping[str, Mapping[str, Any]]

    def models(self, name: str, lags: int) -> dict[str, RGP]:
        """Models for one data set: the free form by the default recipe, and networks from each of its starts."""
        common = {"lags": lags, "input_lags": lags}
        networks = {
            f"networks, {start}": RGP.from_dict({**common, **self._networks_from(start)})
            for start in self.datasets[name]
        }
        return {"free form": RGP.from_dict({**common, **self.free_form}), **networks}

    def _networks_from(self, start: str) -> dict[str, Any]:
        fields = {**self.networks, **self.starts[start]}
        return {**fields, "recognition": {"start": start, **fields.get("recognition", {})}}

    def count_steps(self, seeds: int) -> int:
        """Number of ensembles."""
        return sum(len(self.models(name, 1)) for name in self.datasets)

    def run(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[RecognitionPart]:
        """Run the data sets one after the other; `report` gets a text after every ensemble."""
        for name in self.datasets:
            split = datasets.load(name)
            rows = [_row(split, "Mean", Mean().fit(split.train), "residuals", None)]
            for model, spec in self.models(name, split.lags).items():
                begin = time.perf_counter()
                ensemble = raise_if_interrupted(spec.fit(split.train, restarts=seeds, jobs=jobs))
                seconds = (time.perf_counter() - begin) / seeds
                report(f"{name}: {model}")
                rows += [{**row, "fit_seconds": seconds} for row in _ensemble_rows(split, model, ensemble)]
            yield RecognitionPart(rows)


def load_recognition() -> RecognitionTable:
    """Load the experiment that ships with the package."""
    return RecognitionTable(**tomllib.loads(read_settings("recognition.toml")))


def _ensemble_rows(split: datasets.Split, model: str, ensemble: Ensemble) -> list[dict[str, Any]]:
    methods = [*ensemble.methods, *(["network"] if ensemble.members[0].trained.networks else [])]
    members = [
        {**_row(split, model, member, method, member.seed), "bound": member.bound}
        for member in ensemble.members
        for method in methods
    ]
    return members + [_row(split, f"{model}: {MIXTURE}", ensemble, method, None) for method in methods]


def _row(split: datasets.Split, model: str, fitted: Fitted, method: str, seed: int | None) -> dict[str, Any]:
    found = scores(fitted.simulate(split.test.u, method), split.test.y, split.skip)
    return {"dataset": split.name, "model": model, "method": method, "start": "cold", "seed": seed,
            "status": fitted.status, "reason": None, **found.to_row()}  # fmt: skip
