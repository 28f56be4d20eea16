"""The recognition model from all its starts, beside the free form: every member, and the mixture of all."""

import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from revarb import datasets
from revarb.baselines.mean import Mean
from revarb.config.rgp import RGP
from revarb.evaluation.scoring import scores
from revarb.experiments.common import read_settings, raise_if_interrupted
from revarb.models.base import Fitted
from revarb.models.ensemble import Ensemble

MIXTURE = "mixture"


@dataclass(frozen=True)
class RecognitionTable:
    """What to run: experiments/recognition.toml."""

    title: str
    datasets: Mapping[str, Sequence[str]]
    free_form: Mapping[str, Any]
    networks: Mapping[str, Any]
    starts: Mapping[str, Mapping[str, Any]]

    def models(self, name: str, lags: int) -> dict[str, RGP]:
        """What one data set is fitted with: the free form by the default recipe, and networks from its starts."""
        common = {"lags": lags, "input_lags": lags}
        networks = {
            f"networks, {start}": RGP.from_dict({**common, **self._networks_from(start)})
            for start in self.datasets[name]
        }
        return {"free form": RGP.from_dict({**common, **self.free_form}), **networks}

    def _networks_from(self, start: str) -> dict[str, Any]:
        fields = {**self.networks, **self.starts[start]}
        return {**fields, "recognition": {"start": start, **fields.get("recognition", {})}}


def load_recognition() -> RecognitionTable:
    """The experiment as it ships with the package."""
    return RecognitionTable(**tomllib.loads(read_settings("recognition.toml")))


def run_recognition(
    table: RecognitionTable, seeds: int, jobs: int = 1, report: Callable[[str], None] = lambda text: None
) -> Iterator[list[dict[str, Any]]]:
    """The rows of every data set. `report` hears of every ensemble that is done.

    A member's row has its seed; that of the mixture of all members has none.
    """
    for name in table.datasets:
        split = datasets.load(name)
        mean = Mean().fit(split.train)
        rows = [_row(split, "Mean", mean, "residuals", None)]
        for model, spec in table.models(name, split.lags).items():
            begin = time.perf_counter()
            ensemble = raise_if_interrupted(spec.fit(split.train, restarts=seeds, jobs=jobs))
            seconds = (time.perf_counter() - begin) / seeds
            report(f"{name}: {model}")
            rows += [{**row, "fit_seconds": seconds} for row in _ensemble_rows(split, model, ensemble)]
        yield rows


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
            "status": fitted.status, "reason": None, **asdict(found)}  # fmt: skip
