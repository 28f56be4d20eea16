"""Reliability of calibrated bands beside uncalibrated ones and ARX; starts from windows; missing outputs.

Protocol of Table 1 with the default settings; the calibration itself uses no test data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float64
from matplotlib.figure import Figure
from scipy.stats import norm

import revarb
from revarb import datasets
from studies.comparisons import draw_bands
from studies.records import raise_if_interrupted, score_path
from studies.study import Fit, Result, Study, no_failures
from studies.tables import (
    Grid,
    Row,
    Rows,
    Target,
    at_most,
    between,
    by_record,
    format_percent,
    format_range,
    names_of,
    over_seeds,
    select,
    summarise,
)

DATASETS = ("artificial_recorded", "drive", "actuator", "dryer", "gas_furnace")
MODEL: dict[str, Any] = {}  # fields of RGP beyond the defaults and the lags of the data set

# A window of `LENGTH` samples every `EVERY` samples of the test part, and `AHEAD` samples simulated after each.
LENGTH, AHEAD, EVERY = 20, 20, 10

MISSING = "drive"  # a share of its training outputs is removed at random, with the seed of the fit
MISSING_SHARE = 0.2

CALIBRATED, AS_FITTED = "REVARB, calibrated", "REVARB, as fitted"
MIXTURE, LINEAR = "REVARB, calibrated: mixture", "ARX, calibrated"
NEXT, INCOMPLETE = f"REVARB, next {AHEAD} samples", f"REVARB, {MISSING_SHARE:.0%} of y missing"
METHODS = ("moments", "samples", "mean")

# What the table must show: medians over the seeds.
BAND, BAND_RECORDS = (0.90, 0.99), ("drive", "actuator", "dryer", "artificial_recorded")
NLPD = {"drive": 0.15, "actuator": 0.50}
ERROR_OF_CALIBRATION = 1.02  # calibrated / as fitted
WINDOW_RECORDS, OF_COLD = ("drive", "actuator"), 0.7  # error after a window / from a cold start
OF_COMPLETE = 1.15  # error with missing outputs / with all of them


class Calibration(Study):
    """Five records, every one with an ensemble of as many members as seeds."""

    name, title = "calibration", "Calibration: default settings, cold start, test parts"
    lists = ("edges", "factors")
    concurrent = False
    datasets, missing, every = DATASETS, MISSING, EVERY

    def spec(self, lags: int) -> revarb.RGP:
        """The model for a record with these lags."""
        return revarb.RGP(lags, lags, **MODEL)

    def list_fits(self) -> list[Fit]:
        """An ensemble per record, and the fits with missing outputs."""
        fits = [Fit(name, CALIBRATED, None, f"{self.seeds} seeds") for name in self.datasets]
        return [*fits, *(Fit(self.missing, INCOMPLETE, seed) for seed in range(self.seeds))]

    def run_fit(self, fit: Fit) -> Result:
        """Fit and score an ensemble and ARX, or one model without a share of the outputs."""
        split = datasets.load(fit.dataset)
        spec = self.spec(split.lags)
        if fit.model == INCOMPLETE:
            return Result(_missing_rows(split, spec, fit.seed or 0))
        ensemble = raise_if_interrupted(spec.fit(split.train, restarts=self.seeds, jobs=self.jobs))
        arx = simulate_calibrated_arx(split)
        rows = [*_cold_rows(split, ensemble), _row(split, LINEAR, arx, None, "converged")]
        first = ensemble.members[0]
        paths = {
            (CALIBRATED, "moments"): (first.simulate(split.test.u),),
            (AS_FITTED, "moments"): (replace(first, calibration=None).simulate(split.test.u),),
            (LINEAR, "residuals"): (arx,),
        }
        return Result([*rows, *_window_rows(split, ensemble.members, self.every)], (paths, split))

    def tables(self, rows: Rows) -> list[Grid]:
        """Every model, method and start, over the seeds."""
        grids = []
        for name, own in by_record(rows).items():
            cells = []
            for start in names_of(own, "start"):
                for line in summarise(select(own, start=start)):
                    numbers = (format_range(line.range(score)) for score in ("rmse", "nlpd"))
                    share = format_percent(line.range("coverage95").median)
                    cells.append([line.model, line.method, start, *numbers, share])
            grids.append(Grid(name, ("model", "method", "start", "RMSE", "NLPD", "in 95 %"), cells))
        return grids

    def targets(self, rows: Rows) -> list[Target]:
        """Bands that cover, errors that calibration does not increase, and what windows and gaps change."""
        cold, targets = {"start": "cold", "method": "moments"}, [no_failures(rows)]
        for name, own in by_record(rows).items():
            ours, fitted = (select(own, model=model, **cold) for model in (CALIBRATED, AS_FITTED))
            share = over_seeds(ours, "coverage95").median
            if name in BAND_RECORDS:
                targets.append(between(f"{name}: share in the 95 % band", share, *BAND))
            else:
                arx = over_seeds(own, "coverage95", model=LINEAR).median
                found = f"{format_percent(share)} and {format_percent(arx)}"
                targets.append(Target(f"{name}: share in the 95 % band at least that of ARX", share >= arx, found))
            if name in NLPD:
                targets.append(at_most(f"{name}: NLPD", over_seeds(ours, "nlpd").median, NLPD[name]))
            ratio = over_seeds(ours, "rmse").median / over_seeds(fitted, "rmse").median
            targets.append(at_most(f"{name}: RMSE, calibrated / as fitted,", ratio, ERROR_OF_CALIBRATION))
            if name in WINDOW_RECORDS:
                window, cold_run = (over_seeds(own, "rmse", model=NEXT, start=start).median
                                    for start in (f"window of {LENGTH} samples", "cold"))  # fmt: skip
                targets.append(at_most(f"{name}: RMSE after a window / from a cold start", window / cold_run, OF_COLD))
            targets += _judge_missing(own, name)
        return targets

    def figures(self, rows: Rows, drawn: Mapping[Fit, Any]) -> dict[str, Figure]:
        """Reliability of the bands of the first seed."""
        figures = {}
        for fit, (paths, split) in drawn.items():
            comparison = revarb.Comparison((), paths, (split.test,), split.skip)
            figures[f"reliability_{fit.dataset}_calibrated"] = draw_bands(comparison)
        return figures


def _judge_missing(rows: Rows, name: str) -> list[Target]:
    # Calibration does not change the mean-only run, so its rows serve as those of the fit.
    targets = []
    for method, complete in (("moments", AS_FITTED), ("mean", CALIBRATED)):
        if gaps := select(rows, model=INCOMPLETE, method=method):
            whole = over_seeds(rows, "rmse", model=complete, method=method, start="cold").median
            what = f"{name}, {method}: RMSE with missing outputs / with all"
            targets.append(at_most(what, over_seeds(gaps, "rmse").median / whole, OF_COMPLETE))
    return targets


def _cold_rows(split: datasets.Split, ensemble: revarb.Ensemble) -> list[Row]:
    rows = []
    for member in ensemble.members:
        calibration = {} if member.calibration is None else asdict(member.calibration)
        for method in METHODS:
            path = member.simulate(split.test.u, method)
            rows.append({**_row(split, CALIBRATED, path, member.seed, member.status), **calibration})
        uncalibrated = replace(member, calibration=None)
        rows.append(_row(split, AS_FITTED, uncalibrated.simulate(split.test.u), member.seed, member.status))
    return [*rows, _row(split, MIXTURE, ensemble.simulate(split.test.u), None, ensemble.status)]


def _row(split: datasets.Split, model: str, path: revarb.Trajectory, seed: int | None, status: str) -> Row:
    return {**score_path(split, model, path, seed, status), "disagreement": path.disagreement}


def _window_rows(split: datasets.Split, members: Sequence[revarb.FittedRGP], every: int) -> list[Row]:
    # Three simulations of the samples after a window: started from the window; cold, but with the inputs of the window,
    # so that only its outputs make the difference; and as part of a cold run from row 0.
    begins, test = range(0, len(split.test) - LENGTH - AHEAD + 1, every), split.test
    y = np.concatenate([test.y[begin + LENGTH :][:AHEAD] for begin in begins])
    rows = []
    for member in members:
        windows = [revarb.Window(test.u[begin:][:LENGTH], test.y[begin:][:LENGTH], test.dt) for begin in begins]
        warm = [member.simulate(test.u[begin + LENGTH :][:AHEAD], start=window)
                for begin, window in zip(begins, windows, strict=True)]  # fmt: skip
        cold = [cut_out(member.simulate(test.u[begin:][: LENGTH + AHEAD]), LENGTH, AHEAD) for begin in begins]
        whole = member.simulate(test.u)
        settled = [replace(cut_out(whole, begin + LENGTH, AHEAD), start="cold, long before") for begin in begins]
        rows += [score_path(split, NEXT, join_paths(paths), member.seed, member.status, y, 0)
                 for paths in (warm, cold, settled)]  # fmt: skip
    return rows


def cut_out(path: revarb.Trajectory, begin: int, rows: int) -> revarb.Trajectory:
    """Some rows of a simulation with a band."""
    return _rebuild(path, path.mean[begin:][:rows], np.asarray(path.std)[begin:][:rows])


def join_paths(paths: Sequence[revarb.Trajectory]) -> revarb.Trajectory:
    """Simulations one after the other, to be scored together."""
    mean, std = (np.concatenate([getattr(path, name) for path in paths]) for name in ("mean", "std"))
    return _rebuild(paths[0], mean, std)


def _rebuild(path: revarb.Trajectory, mean: np.ndarray, std: np.ndarray) -> revarb.Trajectory:
    about = {"dt": path.dt, "start": path.start, "degrees_of_freedom": path.degrees_of_freedom}
    return revarb.Trajectory(mean, std, path.method, 0, path.output_names, **about)


def _missing_rows(split: datasets.Split, spec: revarb.RGP, seed: int) -> list[Row]:
    # An uncalibrated fit without a share of the training outputs, to compare with those that have all of them.
    y = split.train.y.copy()
    y[np.random.default_rng(seed).random(y.shape) < MISSING_SHARE] = np.nan
    model = raise_if_interrupted(replace(spec, calibrate=False).fit(replace(split.train, y=y), seed=seed))
    paths = (model.simulate(split.test.u, method) for method in ("moments", "mean"))
    return [_row(split, INCOMPLETE, path, seed, model.status) for path in paths]


BLOCKS, FOLDS, LEVEL = 12, 4, 0.95  # as in the calibration of REVARB
NOISES = np.geomspace(revarb.Recipe().output_noise, 10.0, 200)  # variances that are tried; that of y is 1


def simulate_calibrated_arx(split: datasets.Split) -> revarb.Trajectory:
    """Fit ARX, calibrate its band by held-out blocks and the rule of `RGP.fit`, and simulate the test part.

    There is no latent noise to choose: the output noise has the largest likelihood of the median block, and the band is
    widened, if need be, until it holds 95 % of the errors of the median block.
    """
    held = hold_out_blocks(split)
    losses = [np.median([0.5 * np.log(2.0 * np.pi * noise) + 0.5 * np.mean(error**2) / noise for error in held])
              for noise in NOISES]  # fmt: skip
    std = np.sqrt(NOISES[int(np.argmin(losses))])
    width = max(1.0, float(np.median([_find_width(error / std) for error in held])))
    path = revarb.ARX().fit(split.train).simulate(split.test.u)
    return replace(path, std=np.broadcast_to(width * std * split.train.y.std(axis=0), path.mean.shape))


def hold_out_blocks(split: datasets.Split) -> list[Float64[np.ndarray, " V"]]:
    """Errors of ARX in every block of the training record, z-scored: by the fit that leaves it out, in a cold run."""
    record, spec, held = split.train, revarb.ARX(), []
    edges = np.linspace(split.skip, len(record), BLOCKS + 1).round().astype(int)
    blocks = [slice(int(begin), int(end)) for begin, end in pairwise(edges)]
    for fold in range(FOLDS):
        own = blocks[fold::FOLDS]
        cuts = [0, *(edge for block in own for edge in (block.start, block.stop)), len(record)]
        parts = [record[begin:end] for begin, end in zip(cuts[::2], cuts[1::2], strict=True)]
        path = spec.fit([part for part in parts if len(part) > split.skip]).simulate(record.u)
        error = (record.y - path.mean) / record.y.std(axis=0)
        held += [error[block].ravel() for block in own]
    return held


def _find_width(ratios: Float64[np.ndarray, " V"]) -> float:
    # Of n exchangeable errors the one of rank 0.95 (n + 1), rounded up, bounds the next one with probability 0.95.
    count = len(ratios)
    rank = min(int(np.ceil(LEVEL * (count + 1))), count)
    level = min(LEVEL, rank / (count + 1))
    return float(np.sort(np.abs(ratios))[rank - 1] / norm.ppf(0.5 + 0.5 * level))


STUDY = Calibration
