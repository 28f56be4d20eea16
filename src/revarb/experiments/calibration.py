"""Are the bands honest? Calibrated models beside uncalibrated ones and ARX; starts from windows; missing outputs."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from revarb import datasets
from revarb.baselines.arx import ARX
from revarb.config.rgp import RGP
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, Window
from revarb.data.trajectory import Trajectory
from revarb.datasets.registry import Split
from revarb.evaluation.scoring import pooled_scores
from revarb.experiments.common import read_settings, raise_if_interrupted
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.status import Status
from revarb.training.calibration_rule import HeldOutRun, choose_output_noise, median_width
from revarb.training.stretches import FOLDS, Stretch, cut_stretches

CALIBRATED, AS_FITTED = "REVARB, calibrated", "REVARB, as fitted"


MIXTURE, LINEAR = "REVARB, calibrated: mixture", "ARX, calibrated"


METHODS = ("moments", "samples", "mean")


@dataclass(frozen=True)
class CalibrationTable:
    """What to run: experiments/calibration.toml."""

    title: str
    datasets: Sequence[str]
    model: Mapping[str, Any]
    windows: Mapping[str, int]
    missing: Mapping[str, Any]

    def spec(self, lags: int) -> RGP:
        """The model of a record with these lags."""
        return RGP.from_dict({"lags": lags, "input_lags": lags, **self.model})


def load_calibration() -> CalibrationTable:
    """The experiment as it ships with the package."""
    return CalibrationTable(**tomllib.loads(read_settings("calibration.toml")))


def run_calibration(
    table: CalibrationTable, seeds: int, jobs: int, report: Callable[[str], None]
) -> Iterator[tuple[list[dict[str, Any]], dict[tuple[str, str], Trajectory]]]:
    """The rows of every data set, and the simulations of the first seed to draw; `report` hears of what is done."""
    for name in table.datasets:
        split = datasets.load(name)
        ensemble = raise_if_interrupted(table.spec(split.lags).fit(split.train, restarts=seeds, jobs=jobs))
        report(name)
        arx = calibrate_arx(split)
        rows = [*_cold_rows(split, ensemble), _row(split, LINEAR, arx, None, Status.CONVERGED)]
        rows += _window_rows(split, ensemble.members, **table.windows)
        if name == table.missing["dataset"]:
            rows += _missing_rows(split, table.spec(split.lags), seeds, table.missing["share"])
            report(f"{name}, {table.missing['share']:.0%} missing")
        first = ensemble.members[0]
        shown = {CALIBRATED: first, AS_FITTED: replace(first, calibration=None)}
        drawn = {(model, "moments"): fitted.simulate(split.test.u) for model, fitted in shown.items()}
        yield rows, {**drawn, (LINEAR, "residuals"): arx}


def _cold_rows(split: Split, ensemble: Ensemble) -> list[dict[str, Any]]:
    rows = []
    for member in ensemble.members:
        found = {} if member.calibration is None else asdict(member.calibration)
        for method in METHODS:
            path = member.simulate(split.test.u, method)
            rows.append({**_row(split, CALIBRATED, path, member.seed, member.status), **found})
        plain = replace(member, calibration=None)
        rows.append(_row(split, AS_FITTED, plain.simulate(split.test.u), member.seed, member.status))
    return [*rows, _row(split, MIXTURE, ensemble.simulate(split.test.u), None, ensemble.status)]


def _row(split: Split, model: str, path: Trajectory, seed: int | None, status: Status) -> dict[str, Any]:
    return {
        **_scored(split, model, [path], [split.test.y], split.skip, seed, status),
        "disagreement": path.disagreement,
    }


def _scored(
    split: Split, model: str, paths: Sequence[Trajectory], outputs: Sequence[np.ndarray], skip: int, seed: int | None,
    status: Status,
) -> dict[str, Any]:  # fmt: skip
    return {"dataset": split.name, "model": model, "method": paths[0].method, "start": paths[0].start, "seed": seed,
            "status": status, "reason": None, **asdict(pooled_scores(paths, outputs, skip))}  # fmt: skip


def _window_rows(
    split: Split, members: Sequence[FittedRGP], length: int, ahead: int, every: int
) -> list[dict[str, Any]]:
    # The samples after a window: simulated from it; by a cold run that has had the window's inputs, so that what its
    # outputs tell is the difference; and by a cold run that has been on its way since row 0.
    begins = range(0, len(split.test) - length - ahead + 1, every)
    outputs = [split.test.y[begin + length :][:ahead] for begin in begins]
    rows = []
    for member in members:
        warm = [_after_window(member, split.test, begin, length, ahead) for begin in begins]
        cold = [_part_of(member.simulate(split.test.u[begin:][: length + ahead]), length, ahead) for begin in begins]
        whole = member.simulate(split.test.u)
        settled = [replace(_part_of(whole, begin + length, ahead), start="cold, long before") for begin in begins]
        name = f"REVARB, next {ahead} samples"
        rows += [_scored(split, name, paths, outputs, 0, member.seed, member.status) for paths in (warm, cold, settled)]
    return rows


def _after_window(model: FittedRGP, record: Series, begin: int, length: int, ahead: int) -> Trajectory:
    seen = slice(begin, begin + length)
    return model.simulate(record.u[begin + length :][:ahead], start=Window(record.u[seen], record.y[seen]))


def _part_of(path: Trajectory, begin: int, rows: int) -> Trajectory:
    assert path.std is not None
    part = slice(begin, begin + rows)
    widening = None if path.widening is None else path.widening[part]
    return replace(path, mean=path.mean[part], std=path.std[part], widening=widening, skip=0)


def _missing_rows(split: Split, spec: RGP, seeds: int, share: float) -> list[dict[str, Any]]:
    # The same fits with and without a share of the outputs, uncalibrated: what counts is the simulation.
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


def calibrate_arx(split: Split) -> Trajectory:
    """ARX with a band by the same stretches and the same rule; it has no latent noise to choose."""
    spec, record = ARX(), split.train
    prep = Preprocessor.from_records([record], RGP(lags=split.lags, input_lags=split.lags).order_for(record.u.shape[1]))
    stretches = cut_stretches([record], prep)
    held = [each for fold in range(FOLDS) for each in _held_by_arx(spec, record, stretches, fold, prep)]
    noise = choose_output_noise(held, least=RGP().recipe.output_noise)  # as for REVARB
    path = spec.fit(record).simulate(split.test.u)
    factor = np.full(len(path), median_width(held, noise))
    return replace(path, std=np.broadcast_to(np.sqrt(noise) * prep.scaling.y_std, path.mean.shape), widening=factor)


def _held_by_arx(
    spec: ARX, record: Series, stretches: Sequence[Stretch], fold: int, prep: Preprocessor
) -> list[HeldOutRun]:
    own = [stretch for stretch in stretches if stretch.fold == fold]
    edges = [0, *(edge for stretch in own for edge in (stretch.begin, stretch.end)), len(record)]
    parts = [Series(record.u[a:b], record.y[a:b], record.dt) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    error = record.y - spec.fit([part for part in parts if len(part) > prep.skip]).simulate(record.u).mean
    error = error / prep.scaling.y_std
    return [
        HeldOutRun(error[stretch.rows()].ravel(), np.zeros(error[stretch.rows()].size),
             np.arange(stretch.begin, stretch.end, dtype=np.float64).repeat(error.shape[1]))
        for stretch in own
    ]  # fmt: skip
