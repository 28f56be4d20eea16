"""The recognition model from all its starts, beside the free form: every member and their mixture.

The paper's three sets, protocol of Table 1. The settings were chosen on the test errors of Drive and Actuator.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import revarb
from revarb import datasets
from studies.records import raise_if_interrupted, score_path
from studies.study import Fit, Result, Study, no_failures
from studies.tables import (
    Grid,
    Rows,
    Target,
    at_most,
    by_record,
    format_percent,
    format_range,
    over_seeds,
    select,
    summarise,
)

# The starts that each set is fitted with; the first is the default one.
STARTS: Mapping[str, Sequence[str]] = {
    "drive": ("output-error", "random"),
    "actuator": ("output-error", "random"),
    "artificial_recorded": ("output-error", "random", "free-form"),
}
FREE_FORM = {"calibrate": False}  # with the default recipe
NETWORKS = {"calibrate": False, "hidden": 2, "inducing": 50}

# Fields of RGP for each start, beyond the defaults. From random networks Adam needs more steps; the free form has its
# own 150 iterations first.
SHORT = {"stages": [{"free": ["mu", "lam", "zeta", "w"], "iterations": 20}]}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "output-error": {"recipe": SHORT},
    "random": {"recipe": SHORT, "recognition": {"rounds": [500, 1000, 1500]}},
    "free-form": {"recognition": {"start_steps": 2000}},
}

FREE, DEFAULT, MIXTURE = "free form", "networks, output-error", "mixture"
OF_FREE_FORM, JUDGED = 1.1, ("drive", "actuator")  # median error of the networks / of the free form


class RecognitionStudy(Study):
    """Ensembles of as many members as seeds; rows of members have a seed, those of mixtures None."""

    name, title = "recognition", "Recognition: networks for the latent means, test RMSE"
    concurrent = False
    starts, free_form, networks, settings = STARTS, FREE_FORM, NETWORKS, SETTINGS

    def models(self, name: str, lags: int) -> dict[str, revarb.RGP]:
        """Models for one data set: the free form by the default recipe, and networks from each of its starts."""
        common = {"lags": lags, "input_lags": lags}
        specs = {FREE: {**common, **self.free_form}}
        for start in self.starts[name]:
            fields = {**common, **self.networks, **self.settings[start]}
            specs[f"networks, {start}"] = {**fields, "recognition": {"start": start, **fields.get("recognition", {})}}
        return {model: revarb.RGP.from_dict(fields) for model, fields in specs.items()}

    def list_fits(self) -> list[Fit]:
        """The training mean and every ensemble."""
        return [
            Fit(name, model, None, f"{self.seeds} seeds")
            for name in self.starts
            for model in ("Mean", *self.models(name, 1))
        ]

    def run_fit(self, fit: Fit) -> Result:
        """Fit and score an ensemble."""
        split, begin = datasets.load(fit.dataset), time.perf_counter()
        if fit.model == "Mean":
            return Result([_row(split, fit.model, revarb.Mean().fit(split.train), "residuals", None)])
        spec = self.models(fit.dataset, split.lags)[fit.model]
        ensemble = raise_if_interrupted(spec.fit(split.train, restarts=self.seeds, jobs=self.jobs))
        seconds = (time.perf_counter() - begin) / self.seeds
        return Result([{**row, "fit_seconds": seconds} for row in _ensemble_rows(split, fit.model, ensemble, spec)])

    def tables(self, rows: Rows) -> list[Grid]:
        """Every model and method, over the seeds."""
        grids = []
        for name, own in by_record(rows).items():
            cells = [
                [line.model, line.method, *(format_range(line.range(score)) for score in ("rmse", "nlpd")),
                 format_percent(line.range("coverage95").median)]
                for line in summarise(own)
            ]  # fmt: skip
            grids.append(Grid(name, ("model", "method", "RMSE", "NLPD", "in 95 %"), cells))
        return grids

    def targets(self, rows: Rows) -> list[Target]:
        """Networks do as well as the free form, and their mixture no worse than the median member."""
        targets = [no_failures(rows)]
        for name in JUDGED:
            own = select(rows, dataset=name, method="mean")
            if not own:
                continue
            networks, free, mixture = (over_seeds(own, "rmse", model=model)
                                       for model in (DEFAULT, FREE, f"{DEFAULT}: {MIXTURE}"))  # fmt: skip
            mean = over_seeds(rows, "rmse", dataset=name, model="Mean").median
            targets += [
                at_most(f"{name}: largest RMSE of networks / of the training mean", networks.high / mean, 1.0),
                at_most(f"{name}: RMSE of networks / of the free form", networks.median / free.median, OF_FREE_FORM),
                at_most(f"{name}: RMSE of the mixture / of its members", mixture.median / networks.median, 1.0),
            ]
        return targets


def _ensemble_rows(split: datasets.Split, model: str, ensemble: revarb.Ensemble, spec: revarb.RGP) -> Rows:
    methods = [*ensemble.methods, *(["network"] if spec.recognition is not None else [])]
    members = [
        {**_row(split, model, member, method, member.seed), "bound": member.bound}
        for member in ensemble.members
        for method in methods
    ]
    return members + [_row(split, f"{model}: {MIXTURE}", ensemble, method, None) for method in methods]


def _row(split: datasets.Split, model: str, fitted: Any, method: str, seed: int | None) -> dict[str, Any]:
    return score_path(split, model, fitted.simulate(split.test.u, method), seed, fitted.status)


STUDY = RecognitionStudy
