"""The records of nonlinearbenchmark.org under its protocol: `revarb.fit`, baselines and published numbers.

A run starts from the first n measured samples of a test part, which are not scored. These records are reported, never
tuned on.
"""

import csv
import io
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

import revarb
from revarb import datasets
from studies.measured_starts import COLD, FIRST, MEASURED, list_starts, run_part
from studies.output import write_file
from studies.records import describe_failure, raise_if_interrupted
from studies.study import TIMES, Fit, Result, Study
from studies.tables import (
    Grid,
    Rows,
    SeedRange,
    Target,
    at_most,
    between,
    format_number,
    format_percent,
    format_range,
    format_seconds,
    names_of,
    over_seeds,
    select,
)

REVARB = "revarb"
TIME_LIMIT = 600.0  # seconds of a choice
ON_PARTS = "GP-NARX"  # sees, of a training record with more than ROWS rows, so many in evenly spread parts
ROWS, LENGTH = 10_000, 1_000  # in all, and of a part
BAND = (0.88, 0.99)  # the share inside the 95 % band that is aimed at
SCALES = {"mV": 1e3}  # from the units of a file


class Part(NamedTuple):
    """A test part, the unit of its scores, the RMSE aimed at, and whether training covers its range."""

    dataset: str
    name: str
    unit: str
    aim: float
    covered: bool = True

    def __str__(self) -> str:
        return f"{self.dataset}, {self.name}" if self.name else self.dataset


PARTS = (
    Part("ced", "low", "ticks/s", 0.090),
    Part("ced", "high", "ticks/s", 0.074),
    Part("cascaded_tanks", "", "V", 0.27),
    Part("wiener_hammerstein", "", "mV", 5.0),
    Part("silverbox", "multisine", "mV", 0.6),
    Part("silverbox", "arrow", "mV", 2.5, covered=False),
    Part("silverbox", "arrow without extrapolation", "mV", 0.6),
)
# RMSE on these parts, as collected by Champneys et al. 2024 (arXiv 2405.10779); None where none is published.
PUBLISHED: Mapping[str, Sequence[float | None]] = {
    "linear state space": (0.224, 0.384, 0.588, 43.4, 6.96, 14.4, 6.58),
    "polynomial NARX": (0.100, 0.141, 0.413, 27.3, 0.640, 2.25, 0.571),
    "GP-NARX (published)": (0.102, 0.090, 0.622, 23.1, 0.301, 0.60, 0.259),
    "RNN": (0.096, 0.235, 0.543, 6.87, 1.64, 4.88, 1.73),
    "GRU": (0.286, 0.238, 0.396, 3.97, 1.49, 2.80, 0.947),
    "LSTM (published)": (0.303, 0.145, 0.490, 4.45, 1.50, 2.68, 0.960),
    "SUBNET, discrete time": (0.169, 0.117, 0.37, 0.241, 0.36, 1.4, 0.32),
    "SUBNET, continuous time": (0.115, 0.074, 0.306, None, None, None, None),
    "dynoNet": (None, None, None, 0.452, None, None, None),
    "PNLSS": (None, None, 0.45, 0.42, None, 0.26, None),
    "grey box": (None, None, 0.191, None, None, None, None),
    "augmented physics": (None, None, 0.25, None, None, None, None),
}


class Official(Study):
    """Seven test parts of four records."""

    name, title = "official", "Leaderboard records: test RMSE after the measured window"
    protocol = (
        "one model for all training records of a benchmark; free simulation of its test parts from their first n "
        "measured samples (10 of ced, 50 of the others), which are not scored"
    )
    notes = (
        f"{REVARB} is revarb.fit(train, seed=…, time_limit={TIME_LIMIT:g}); the others are this package's, with their "
        "default settings and 10 lags. A model marked (cold) has no start from measured samples.",
        f"{ON_PARTS}: of a training record with more than {ROWS} rows it sees {ROWS // LENGTH} evenly spread parts of "
        f"{LENGTH} rows.",
        "Published numbers as collected by Champneys et al. 2024, arXiv 2405.10779.",
    )
    columns = (
        "dataset", "part", "unit", "model", "method", "start", "skip", "seed", "rmse", "nrmse", "mae", "nlpd",
        "coverage50", "coverage95", "rmse_first50", "extrapolates", "status", *TIMES,
    )  # fmt: skip
    default_seeds, concurrent = 3, False
    parts, published = PARTS, PUBLISHED

    def models(self, lags: int) -> dict[str, Any]:
        """All models, for a record with these lags."""
        return {
            REVARB: revarb.Chosen(time_limit=TIME_LIMIT),
            "ARX": revarb.ARX(lags, lags),
            "GP-NARX": revarb.GPNARX(lags, lags),
            "LSTM": revarb.LSTM(),
            "MLP-NARX": revarb.MLPNARX(lags, lags),
        }

    def list_fits(self) -> list[Fit]:
        """Every record, model and seed."""
        records = dict.fromkeys(part.dataset for part in self.parts)
        return [Fit(name, model, seed) for name in records for model in self.models(1) for seed in range(self.seeds)]

    def load(self, name: str) -> datasets.Split[Any]:
        """The official parts of a record."""
        return datasets.load(name)

    def run_fit(self, fit: Fit) -> Result:
        """Fit a model, and score its runs over all test parts from the starts it has."""
        split, parts = self.load(fit.dataset), [part for part in self.parts if part.dataset == fit.dataset]
        scale, spec = SCALES.get(parts[0].unit, 1.0), self.models(split.lags)[fit.model]
        train, tests = ([_scale(each, scale) for each in _list(records)] for records in (split.train, split.test))
        about = {"dataset": fit.dataset, "model": fit.model, "seed": fit.seed, "unit": parts[0].unit, "reason": None}
        rows, drawn = [], {}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* leaves its training range")  # true of the arrow
            try:
                begin = time.perf_counter()
                model = spec.fit(spread_parts(train) if fit.model == ON_PARTS else train, seed=fit.seed)
                about |= {"status": str(raise_if_interrupted(model).status)}
                about |= {"fit_seconds": time.perf_counter() - begin}
                if (choice := getattr(model, "choice", None)) is not None:
                    about["taken"] = choice.taken
            except Exception as error:
                keys = [{"part": part.name, "start": start} for part in parts for start in (MEASURED, COLD)]
                return Result([{**about, **key, "method": "", **describe_failure(error)} for key in keys])
            for part, test in zip(parts, tests, strict=True):
                for start in list_starts(model):
                    row, path = run_part(model, test, split.window, start)
                    rows.append({**about, "part": part.name, "start": start, "method": model.methods[-1], **row})
                    if path is not None and start == MEASURED and fit.model == REVARB and fit.seed == 0:
                        drawn[part] = path, test.y[-len(path) :]
        return Result(rows, drawn or None)

    def tables(self, rows: Rows) -> list[Grid]:
        """The place among all models; errors of all models on all parts; bands, starts and times of ours."""
        return [self.place_grid(rows), self.error_grid(rows), self.score_grid(rows)]

    def place_grid(self, rows: Rows) -> Grid:
        """For every part the error of `revarb.fit`, its place, and the best other model."""
        cells = []
        for part, place, best, error in self.rank(rows):
            ours = format_range(find_scores(rows, part, REVARB, "rmse"))
            cells.append([str(part), part.unit, ours, f"{part.aim:g}", place, best, format_number(error)])
        return Grid("Places", ("test part", "unit", REVARB, "aim", "place", "best other model", "its RMSE"), cells)

    def rank(self, rows: Rows) -> Iterator[tuple[Part, str, str, float]]:
        """For every part with rows the place of `revarb.fit`, the best other model, and its error."""
        for number, part in enumerate(self.parts):
            models = names_of(_select(rows, part), "model")
            errors = {model: find_scores(rows, part, model, "rmse").median for model in models}
            ours = errors.pop(REVARB, np.nan)
            errors |= {name: values[number] for name, values in self.published.items()}
            known = {name: error for name, error in errors.items() if error is not None and np.isfinite(error)}
            if models and known:
                place = f"{1 + sum(error < ours for error in known.values())} of {1 + len(known)}"
                best = min(known, key=lambda name: known[name])
                yield part, place if np.isfinite(ours) else "–", best, known[best]

    def error_grid(self, rows: Rows) -> Grid:
        """Every model of this package and every published one: RMSE on all parts."""
        cells = [
            [_mark(rows, model), *(format_range(find_scores(rows, part, model, "rmse")) for part in self.parts)]
            for model in names_of(rows, "model")
        ]
        cells += [
            [name, *("–" if value is None else f"{value:g}" for value in values)]
            for name, values in self.published.items()
        ]
        return Grid(self.title, ("model", *(f"{part} ({part.unit})" for part in self.parts)), cells)

    def score_grid(self, rows: Rows) -> Grid:
        """Every part and model of this package: errors, bands, the first samples by start, and seconds."""
        cells = []
        for part in self.parts:
            for model in names_of(_select(rows, part), "model"):
                found = [find_scores(rows, part, model, name) for name in ("rmse", "nrmse", "nlpd")]
                shares = [find_scores(rows, part, model, name).median for name in ("coverage50", "coverage95")]
                firsts = [find_scores(rows, part, model, "rmse_first50", start) for start in (MEASURED, COLD)]
                seconds = [find_scores(rows, part, model, name).median for name in TIMES]
                cells.append(
                    [str(part), _mark(rows, model), *map(format_range, found), *map(format_percent, shares),
                     *map(format_range, firsts), *map(format_seconds, seconds)]
                )  # fmt: skip
        head = ("RMSE", "NRMSE", "NLPD", "in 50 %", "in 95 %", f"first {FIRST}", "cold", "fit s", "simulate s")
        return Grid("Bands, starts and times", ("test part", "model", *head), cells)

    def targets(self, rows: Rows) -> list[Target]:
        """The aims of `revarb.fit`: errors, bands or the warning beyond the training data, and the start."""
        return [target for part in self.parts if _select(rows, part) for target in _judge_part(rows, part)]

    def headline(self, rows: Rows) -> str:
        """Where `revarb.fit` is first, and which model is best elsewhere."""
        ranked = list(self.rank(rows))
        first = [str(part) for part, place, _, _ in ranked if place.startswith("1 ")]
        others = [
            f"{part}: {best} ({format_number(error)} {part.unit})"
            for part, place, best, error in ranked
            if place[:2] != "1 "
        ]
        return f"First on {len(first)} of {len(ranked)}: {'; '.join(first) or 'none'}. Use instead: " + (
            f"{'; '.join(others)}." if others else "nothing."
        )

    def figures(self, rows: Rows, drawn: Mapping[Fit, Any]) -> dict[str, Figure]:
        """Every test part, measured and simulated by the model of the first seed."""
        runs = {part: run for parts in drawn.values() for part, run in parts.items()}
        return {f"official_{str(part).replace(', ', '_').replace(' ', '_')}": draw_part(part, *run)
                for part, run in runs.items()}  # fmt: skip

    def caption(self, name: str) -> str:
        """What a figure shows."""
        words = name.removeprefix("official_").replace("_", " ")
        return f"{words}: measured, simulated after the measured window with the 95 % band, and the error; first seed."

    def write_more(self, folder: Path, rows: Rows, drawn: Mapping[Fit, Any]) -> list[Path]:
        """The numbers of the first seed as they are submitted to nonlinearbenchmark.org."""
        return [write_file(folder / "official_submission.csv", format_submission(rows).encode())]


def _list(records: Any) -> Sequence[revarb.Series]:
    return [records] if isinstance(records, revarb.Series) else records


def _scale(record: revarb.Series, factor: float) -> revarb.Series:
    # Models z-score by themselves, so only the units of the scores change.
    return replace(record, y=factor * record.y)


def spread_parts(records: Sequence[revarb.Series]) -> Sequence[revarb.Series]:
    """Evenly spread parts of a long record; several, or a short one, as they are."""
    if len(records) > 1 or len(records[0]) <= ROWS:
        return records
    starts = np.linspace(0, len(records[0]) - LENGTH, ROWS // LENGTH).astype(int)
    return [records[0][start : start + LENGTH] for start in starts]


def _select(rows: Rows, part: Part, **where: Any) -> Rows:
    return select(rows, dataset=part.dataset, part=part.name, **where)


def _best_start(rows: Rows, model: str) -> str:
    return MEASURED if select(rows, model=model, start=MEASURED, reason=None) else COLD


def _mark(rows: Rows, model: str) -> str:
    return model if _best_start(rows, model) == MEASURED else f"{model} (cold)"


def find_scores(rows: Rows, part: Part, model: str, score: str, start: str = "") -> SeedRange:
    """A score of a model on a part over the seeds; from the measured start where it has one, unless one is named."""
    return over_seeds(_select(rows, part), score, model=model, start=start or _best_start(rows, model))


def _judge_part(rows: Rows, part: Part) -> Iterator[Target]:
    def median(score: str, start: str = MEASURED) -> float:
        return find_scores(rows, part, REVARB, score, start).median

    yield at_most(f"{part}: RMSE in {part.unit}", median("rmse"), part.aim)
    if part.covered:
        yield between(f"{part}: share inside the 95 % band", median("coverage95"), *BAND)
    else:
        share = median("extrapolates")
        yield Target(f"{part}: warns that it extrapolates", share > 0.0, f"{format_percent(share)} of the rows")
    started, cold = median("rmse_first50"), median("rmse_first50", COLD)
    found = f"{format_number(started)} and {format_number(cold)}"
    yield Target(f"{part}: first {FIRST} samples better than from a cold start", started < cold, found)


def draw_part(part: Part, path: revarb.Trajectory, y: np.ndarray) -> Figure:
    """Measured, simulated with its band, and the error."""
    figure = path.plot(y, f"{part}: after the measured window")
    for label in (axes.yaxis.label for axes in figure.axes):
        if label.get_text() in (*path.output_names, "error"):
            label.set_text(f"{label.get_text()} ({part.unit})")
    return figure


def format_submission(rows: Rows) -> str:
    """A CSV file with a row per test part and model, by the metrics of nonlinear_benchmarks; the first seed's."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(
        ["benchmark", "test part", "model", "n_init", "unit", "RMSE", "NRMSE", "R-squared", "fit index", "MAE",
         "RMSE to submit"]
    )  # fmt: skip
    own = [row for row in select(rows, seed=0) if not row["reason"] and row["start"] == _best_start(rows, row["model"])]
    for row in own:
        same = select(own, dataset=row["dataset"], model=row["model"])
        nrmse, all_parts = row["nrmse"], "; ".join(f"{each['rmse']:.3g}" for each in same)
        numbers = (row["rmse"], nrmse, 1.0 - nrmse**2, 100.0 * (1.0 - nrmse), row["mae"])
        about = [row["dataset"], row["part"], row["model"], row["skip"], row["unit"]]
        table.writerow([*about, *(f"{number:.6g}" for number in numbers), f"[{all_parts}]"])
    return text.getvalue()


STUDY = Official
