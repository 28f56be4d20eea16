"""Reliability of calibrated bands, compared with uncalibrated ones and ARX; starts from windows; missing outputs."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from revarb import datasets
from revarb.config.rgp import RGP
from revarb.data.series import Series, Window
from revarb.data.trajectory import Trajectory
from revarb.datasets.registry import Split
from revarb.evaluation.comparison.lines import summarise
from revarb.evaluation.reliability import check_bands
from revarb.evaluation.scoring import pooled_scores
from revarb.experiments.calibrated_arx import simulate_calibrated_arx
from revarb.experiments.common import PROTOCOL, raise_if_interrupted, read_settings
from revarb.experiments.experiment import Experiment, Part, Report
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.status import Status
from revarb.report.reliability_figures import draw_reliability
from revarb.report.tables import Grid, format_percent, format_range

CALIBRATED, AS_FITTED = "REVARB, calibrated", "REVARB, as fitted"
MIXTURE, LINEAR = "REVARB, calibrated: mixture", "ARX, calibrated"
METHODS = ("moments", "samples", "mean")
SCORES = ("rmse", "nlpd", "coverage95")


@dataclass(frozen=True, eq=False)
class CalibrationPart(Part):
    """Results on one data set, and the simulations of the first seed by (model, method), for the figure."""

    split: Split[Series]
    rows: list[dict[str, Any]]
    paths: Mapping[tuple[str, str], Trajectory]

    def grids(self) -> list[Grid]:
        """Every model, method and start, over the seeds."""
        cells = []
        for start in dict.fromkeys(row["start"] for row in self.rows):
            for line in summarise([row for row in self.rows if row["start"] == start], SCORES):
                share = format_percent(line.ranges["coverage95"].median)
                numbers = (format_range(line.ranges["rmse"]), format_range(line.ranges["nlpd"]))
                cells.append([line.model, line.method, start, *numbers, share])
        return [Grid(self.split.name, ("model", "method", "start", "RMSE", "NLPD", "in 95 %"), cells)]

    def figures(self) -> dict[str, Figure]:
        """Reliability of the bands."""
        test, skip = self.split.test, self.split.skip
        reliability = {key: check_bands([path], [test.y], skip) for key, path in self.paths.items()}
        return {f"reliability_{self.split.name}_calibrated": draw_reliability(reliability)}


@dataclass(frozen=True)
class CalibrationTable(Experiment[CalibrationPart]):
    """The experiment with the settings of calibration.toml."""

    name: ClassVar[str] = "calibration"
    protocol: ClassVar[str] = PROTOCOL

    title: str
    datasets: Sequence[str]
    model: Mapping[str, Any]
    windows: Mapping[str, int]
    missing: Mapping[str, Any]

    def spec(self, lags: int) -> RGP:
        """The model for a record with these lags."""
        return RGP.from_dict({"lags": lags, "input_lags": lags, **self.model})

    def count_steps(self, seeds: int) -> int:
        """Number of ensembles, and the fits with missing outputs as one step."""
        return len(self.datasets) + 1

    def run(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[CalibrationPart]:
        """Run the data sets one after the other."""
        for name in self.datasets:
            split = datasets.load(name)
            ensemble = raise_if_interrupted(self.spec(split.lags).fit(split.train, restarts=seeds, jobs=jobs))
            report(name)
            arx = simulate_calibrated_arx(split)
            rows = [*_cold_rows(split, ensemble), _row(split, LINEAR, arx, None, Status.CONVERGED)]
            rows += _window_rows(split, ensemble.members, **self.windows)
            if name == self.missing["dataset"]:
                rows += _missing_rows(split, self.spec(split.lags), seeds, self.missing["share"])
                report(f"{name}, {self.missing['share']:.0%} missing")
            first = ensemble.members[0]
            paths = {
                (CALIBRATED, "moments"): first.simulate(split.test.u),
                (AS_FITTED, "moments"): replace(first, calibration=None).simulate(split.test.u),
                (LINEAR, "residuals"): arx,
            }
            yield CalibrationPart(split, rows, paths)


def load_calibration() -> CalibrationTable:
    """Load the experiment that ships with the package."""
    return CalibrationTable(**tomllib.loads(read_settings("calibration.toml")))


def _cold_rows(split: Split, ensemble: Ensemble) -> list[dict[str, Any]]:
    rows = []
    for member in ensemble.members:
        calibration = {} if member.calibration is None else asdict(member.calibration)
        for method in METHODS:
            path = member.simulate(split.test.u, method)
            rows.append({**_row(split, CALIBRATED, path, member.seed, member.status), **calibration})
        uncalibrated = replace(member, calibration=None)
        rows.append(_row(split, AS_FITTED, uncalibrated.simulate(split.test.u), member.seed, member.status))
    return [*rows, _row(split, MIXTURE, ensemble.simulate(split.test.u), None, ensemble.status)]


def _row(split: Split, model: str, path: Trajectory, seed: int | None, status: Status) -> dict[str, Any]:
    return {
        **_scored_row(split, model, [path], [split.test.y], split.skip, seed, status),
        "disagreement": path.disagreement,
    }


def _scored_row(
    split: Split, model: str, paths: Sequence[Trajectory], outputs: Sequence[np.ndarray], skip: int, seed: int | None,
    status: Status,
) -> dict[str, Any]:  # fmt: skip
    return {"dataset": split.name, "model": model, "method": paths[0].method, "start": paths[0].start, "seed": seed,
            "status": status, "reason": None, **pooled_scores(paths, outputs, skip).to_row()}  # fmt: skip


def _window_rows(
    split: Split, members: Sequence[FittedRGP], length: int, ahead: int, every: int
) -> list[dict[str, Any]]:
    # Three simulations of the samples after a window: started from the window; cold, but with the inputs of the window,
    # so that only its outputs make the difference; and as part of a cold run from row 0.
    begins = range(0, len(split.test) - length - ahead + 1, every)
    outputs = [split.test.y[begin + length :][:ahead] for begin in begins]
    name = f"REVARB, next {ahead} samples"
    rows = []
    for member in members:
        warm = [_simulate_after_window(member, split.test, begin, length, ahead) for begin in begins]
        cold = [_cut_out(member.simulate(split.test.u[begin:][: length + ahead]), length, ahead) for begin in begins]
        whole = member.simulate(split.test.u)
        settled = [replace(_cut_out(whole, begin + length, ahead), start="cold, long before") for begin in begins]
        rows += [
            _scored_row(split, name, paths, outputs, 0, member.seed, member.status) for paths in (warm, cold, settled)
        ]
    return rows


def _simulate_after_window(model: FittedRGP, record: Series, begin: int, length: int, ahead: int) -> Trajectory:
    before = slice(begin, begin + length)
    window = Window(record.u[before], record.y[before], record.dt)
    return model.simulate(record.u[begin + length :][:ahead], start=window)


def _cut_out(path: Trajectory, begin: int, rows: int) -> Trajectory:
    assert path.std is not None
    cut = {"mean": path.mean[begin:][:rows], "std": path.std[begin:][:rows]}
    return replace(path, **cut, skip=0, inputs=None, outside=None)


def _missing_rows(split: Split, spec: RGP, seeds: int, share: float) -> list[dict[str, Any]]:
    # Uncalibrated fits without a share of the training outputs, to compare with those that have all of them.
    spec = replace(spec, calibrate=False)
    rows = []
    for seed in range(seeds):
        y = split.train.y.copy()
        y[np.random.default_rng(seed).random(y.shape) < share] = np.nan
        model = raise_if_interrupted(spec.fit(replace(split.train, y=y), seed=seed))
        name = f"REVARB, {share:.0%} of y missing"
        rows += [
            _row(split, name, model.simulate(split.test.u, method), seed, model.status)
            for method in ("moments", "mean")
        ]
    return rows
