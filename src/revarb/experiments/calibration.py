"""Are the bands honest? Calibrated models beside uncalibrated ones and ARX; starts from windows; missing outputs."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from revarb import datasets
from revarb.baselines import ARX
from revarb.calibrate import FOLDS, Held, Stretch, output_noise, replace_outputs, stretches_of, width_factor
from revarb.datasets import Split
from revarb.ensemble import Ensemble
from revarb.experiments.shipped import shipped_text
from revarb.fitted import FittedRGP
from revarb.frame import Frame
from revarb.rgp import RGP
from revarb.scores import pooled_scores, scores
from revarb.series import Series, Window
from revarb.trajectory import Trajectory

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
    return CalibrationTable(**tomllib.loads(shipped_text("calibration.toml")))


def run_calibration(
    table: CalibrationTable, seeds: int, jobs: int, report: Callable[[str], None]
) -> Iterator[tuple[list[dict[str, Any]], dict[tuple[str, str], Trajectory]]]:
    """The rows of every data set, and the simulations of the first seed to draw; `report` hears of what is done."""
    for name in table.datasets:
        split = datasets.load(name)
        ensemble = table.spec(split.lags).fit(split.train, restarts=seeds, jobs=jobs)
        report(name)
        arx = calibrated_arx(split)
        rows = [*_cold_rows(split, ensemble), _row(split, LINEAR, arx, None)]
        rows += _window_rows(split, ensemble.members, **table.windows)
        if name == table.missing["dataset"]:
            rows += _missing_rows(split, table.spec(split.lags), seeds, jobs, table.missing["share"])
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
            rows.append({**_row(split, CALIBRATED, member.simulate(split.test.u, method), member.seed), **found})
        plain = replace(member, calibration=None)
        rows.append(_row(split, AS_FITTED, plain.simulate(split.test.u), member.seed))
    return [*rows, _row(split, MIXTURE, ensemble.simulate(split.test.u), None)]


def _row(split: Split, model: str, path: Trajectory, seed: int | None) -> dict[str, Any]:
    found = scores(path, split.test.y, split.skip)
    return {"dataset": split.name, "model": model, "method": path.method, "start": path.start, "seed": seed,
            "status": "done", "reason": None, "disagreement": path.disagreement, **asdict(found)}  # fmt: skip


def _window_rows(
    split: Split, members: Sequence[FittedRGP], length: int, ahead: int, every: int
) -> list[dict[str, Any]]:
    # The samples after a window, simulated from it, and by a cold run that has had the window's inputs, but not its
    # outputs: what the outputs tell is the difference.
    begins = range(0, len(split.test) - length - ahead + 1, every)
    outputs = [split.test.y[begin + length :][:ahead] for begin in begins]
    rows = []
    for member in members:
        warm = [_after_window(member, split.test, begin, length, ahead) for begin in begins]
        cold = [_end_of(member.simulate(split.test.u[begin:][: length + ahead]), ahead) for begin in begins]
        for paths in (warm, cold):
            found = pooled_scores(paths, outputs, 0)
            rows.append({"dataset": split.name, "model": f"REVARB, next {ahead} samples", "method": "moments",
                         "start": paths[0].start, "seed": member.seed, "status": "done", "reason": None,
                         **asdict(found)})  # fmt: skip
    return rows


def _after_window(model: FittedRGP, record: Series, begin: int, length: int, ahead: int) -> Trajectory:
    seen = slice(begin, begin + length)
    return model.simulate(record.u[begin + length :][:ahead], start=Window(record.u[seen], record.y[seen]))


def _end_of(path: Trajectory, rows: int) -> Trajectory:
    assert path.std is not None
    widening = None if path.widening is None else path.widening[-rows:]
    return replace(path, mean=path.mean[-rows:], std=path.std[-rows:], widening=widening, skip=0)


def _missing_rows(split: Split, spec: RGP, seeds: int, jobs: int, share: float) -> list[dict[str, Any]]:
    # The same fits with and without a share of the outputs, uncalibrated: what counts is the simulation.
    spec = replace(spec, calibrate=False)
    rows = []
    for seed in range(seeds):
        y = split.train.y.copy()
        y[np.random.default_rng(seed).random(y.shape) < share] = np.nan
        model = spec.fit(replace_outputs(split.train, y), seed=seed)
        name = f"REVARB, {share:.0%} of y missing"
        rows += [_row(split, name, model.simulate(split.test.u, method), seed) for method in ("moments", "mean")]
    return rows


def calibrated_arx(split: Split) -> Trajectory:
    """ARX with a band by the same stretches and the same rule; it has no latent noise to choose."""
    spec, record = ARX(), split.train
    frame = Frame.of([record], RGP(lags=split.lags, input_lags=split.lags).lags_for(record.u.shape[1]))
    stretches = stretches_of([record], frame)
    held = [each for fold in range(FOLDS) for each in _held_by_arx(spec, record, stretches, fold, frame)]
    noise = output_noise(held, least=RGP().recipe.output_noise)  # as for REVARB
    path = spec.fit(record).simulate(split.test.u)
    factor = np.full(len(path), max(1.0, float(np.median([width_factor(each, noise) for each in held]))))
    return replace(path, std=np.broadcast_to(np.sqrt(noise) * frame.scaling.y_std, path.mean.shape), widening=factor)


def _held_by_arx(spec: ARX, record: Series, stretches: Sequence[Stretch], fold: int, frame: Frame) -> list[Held]:
    own = [stretch for stretch in stretches if stretch.fold == fold]
    edges = [0, *(edge for stretch in own for edge in (stretch.begin, stretch.end)), len(record)]
    parts = [Series(record.u[a:b], record.y[a:b], record.dt) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    error = record.y - spec.fit([part for part in parts if len(part) > frame.skip]).simulate(record.u).mean
    error = error / frame.scaling.y_std
    return [
        Held(error[stretch.rows()].ravel(), np.zeros(error[stretch.rows()].size),
             np.arange(stretch.begin, stretch.end, dtype=np.float64).repeat(error.shape[1]))
        for stretch in own
    ]  # fmt: skip
