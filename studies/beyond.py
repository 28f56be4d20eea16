"""Bands beyond the training data: generated plants whose test part runs 1.2 to 2 times further than their training.

The seed draws the parameters of the plant, its inputs and its noise, and starts the fit.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64
from matplotlib.figure import Figure

import revarb
from studies.output import GREY
from studies.records import Score, run_model, score_record
from studies.study import Fit, Result, Study, no_failures
from studies.tables import (
    Grid,
    Rows,
    SeedRange,
    Target,
    between,
    by_record,
    format_number,
    format_percent,
    format_seconds,
    names_of,
    over_seeds,
    select,
)

TRAINING_ROWS = 500
INSIDE, BEYOND, RETURN = 150, 190, 60  # rows of the test record: as in training, further, as in training again
WARM_UP = 200  # rows before every record, which are dropped: it begins in the middle of an operation
VARIATION = 0.2  # of every parameter, as a share of it
NOISE = (0.01, 0.02)  # standard deviation, as a share of that of the training output
FACTOR = (1.2, 2.0)  # largest output of the test record, as a multiple of that of the training record, from rest
SCALES = np.geomspace(1.0, 8.0, 209)  # of the first input beyond training: the smallest that reaches the factor
SUBSTEPS = 4  # of the method of Runge and Kutta, for every sample

CHOSEN, LINEAR = "revarb (chosen)", "ARX"
LEAVING = 3  # rows in a row outside of the 95 % band: there the error leaves it
FALSE = 0.95  # a warning is false where the error is at most this quantile of the errors inside

# What the table must show, for every plant: medians over the seeds, and a share of the runs.
BAND, BAND_WARNED, WARNED_BEFORE = (0.90, 0.99), 0.80, 0.9

Derivative = Callable[..., tuple[np.ndarray, ...]]  # of the states, from states, inputs and parameters


@dataclass(frozen=True)
class Plant:
    """A plant as differential equations, its parameters before they are varied, and how it is excited."""

    derivative: Derivative
    parameters: Mapping[str, float]
    limits: Mapping[str, tuple[float, float]]  # of every input in training; only the first one goes further in the test
    hold: tuple[int, int]  # samples between two steps of the inputs
    dt: float
    output: str
    column: int  # of the output among the states
    start: tuple[float, ...]  # states before the warm-up
    rest: float = 0.0  # the output without an input


def derive_motor(current, speed, voltage, *, resistance, inductance, constant, saturation, inertia, viscous, coulomb):
    """Torque saturates with the current; viscous and Coulomb friction, smooth around standstill."""
    torque = constant * saturation * np.tanh(current / saturation)
    friction = viscous * speed + coulomb * np.tanh(speed / 2.0)
    return (voltage - resistance * current - constant * speed) / inductance, (torque - friction) / inertia


def derive_tanks(upper, lower, voltage, *, pump, area, upper_outlet, lower_outlet, weir, rim):
    """One tank drains into the other (Torricelli), which overflows above its rim."""
    outflows = [outlet * np.sqrt(2.0 * 981.0 * np.maximum(level, 0.0))
                for outlet, level in ((upper_outlet, upper), (lower_outlet, lower))]  # fmt: skip
    over = weir * np.maximum(lower - rim, 0.0) ** 1.5
    return (pump * voltage - outflows[0]) / area, (outflows[0] - outflows[1] - over) / area


def derive_room(radiator, room, power, outdoor, *, radiator_capacity, emission, capacity, loss):
    """A radiator emits with the power 1.3 of its excess temperature; the room loses heat to the outside."""
    excess = radiator - room
    emitted = emission * np.sign(excess) * np.abs(excess) ** 1.3
    return (power - emitted) / radiator_capacity, (emitted - loss * (room - outdoor)) / capacity


def derive_duffing(position, velocity, force, *, stiffness, hardening, damping):
    """A unit mass on a spring that becomes stiffer."""
    return velocity, force - damping * velocity - stiffness * position - hardening * position**3


PLANTS = {
    "dc_motor": Plant(
        derive_motor,
        {"resistance": 1.0, "inductance": 0.01, "constant": 0.1, "saturation": 7.0, "inertia": 0.002,
         "viscous": 0.004, "coulomb": 0.05},
        {"voltage": (-6.0, 6.0)}, (8, 30), 0.02, "speed", 1, (0.0, 0.0),
    ),
    "tanks": Plant(
        derive_tanks,
        {"pump": 9.0, "area": 60.0, "upper_outlet": 0.36, "lower_outlet": 0.32, "weir": 4.0},
        {"voltage": (1.0, 4.0)}, (10, 35), 4.0, "level", 1, (2.0, 2.0),
    ),
    "heated_room": Plant(  # kW, kW min / K, min; the room's time constant is that of 40 to 90 samples
        derive_room,
        {"radiator_capacity": 1.2, "emission": 0.03, "capacity": 30.0, "loss": 0.1},
        {"power": (0.0, 2.0), "outdoor": (0.0, 6.0)}, (20, 50), 5.0, "temperature", 1, (15.0, 15.0), rest=3.0,
    ),
    "duffing": Plant(
        derive_duffing,
        {"stiffness": 1.0, "hardening": 0.2, "damping": 0.4},
        {"force": (-1.0, 1.0)}, (8, 25), 0.3, "position", 0, (0.0, 0.0),
    ),
}  # fmt: skip


def draw_plant(name: str, seed: int) -> tuple[revarb.Series, revarb.Series]:
    """A training record of 500 rows, and a test record of 400 rows that leaves its range."""
    if name not in PLANTS:
        raise revarb.InputError(f"no plant {name!r}; there are {', '.join(PLANTS)}")
    plant, rng = PLANTS[name], np.random.default_rng([seed, list(PLANTS).index(name)])
    factor = rng.uniform(*FACTOR)
    parameters = {key: value * rng.uniform(1.0 - VARIATION, 1.0 + VARIATION) for key, value in plant.parameters.items()}
    u_train = _draw_inputs(plant, (WARM_UP, TRAINING_ROWS), rng)
    if name == "tanks":
        levels = _integrate(plant, {**parameters, "rim": np.inf}, u_train[..., None])[WARM_UP:, plant.column]
        parameters["rim"] = 0.5 * (1.0 + factor) * levels.max()  # above training, below the test
    y_train = _integrate(plant, parameters, u_train[..., None])[WARM_UP:, plant.column, 0]
    u_test = _draw_inputs(plant, (WARM_UP, INSIDE, BEYOND, RETURN), rng)[..., None].repeat(len(SCALES), axis=2)
    u_test[WARM_UP + INSIDE : -RETURN, 0] *= SCALES
    y_test = _integrate(plant, parameters, u_test)[WARM_UP:, plant.column]
    reached = np.abs(y_test - plant.rest).max(axis=0) / np.abs(y_train - plant.rest).max()
    if reached.max() < factor:
        raise revarb.ComputationError(f"{name}, seed {seed}: no input takes the output {factor:.2f} times as far")
    chosen = int(np.argmax(reached >= factor))
    noise = rng.uniform(*NOISE) * y_train.std()

    def measure(u, y):
        y = y + noise * rng.standard_normal(len(y))
        return revarb.Series(u[WARM_UP:], y, plant.dt, tuple(plant.limits), (plant.output,))

    return measure(u_train, y_train), measure(u_test[..., chosen], y_test[:, chosen])


def _draw_inputs(plant: Plant, parts: tuple[int, ...], rng: np.random.Generator) -> Float64[np.ndarray, "N Du"]:
    # Every part has steps of its own.
    columns = [np.concatenate([_draw_steps(rows, plant.hold, limits, rng) for rows in parts])
               for limits in plant.limits.values()]  # fmt: skip
    return np.stack(columns, axis=1)


def _draw_steps(
    rows: int, hold: tuple[int, int], limits: tuple[float, float], rng: np.random.Generator
) -> Float64[np.ndarray, " N"]:
    # Levels at equal distances, both limits among them, in random order.
    held = rng.integers(*hold, size=rows // hold[0] + 1, endpoint=True)
    held = held[: np.searchsorted(np.cumsum(held), rows) + 1]
    return np.repeat(rng.permutation(np.linspace(*limits, len(held))), held)[:rows]


def _integrate(plant: Plant, parameters: Mapping, u: Float64[np.ndarray, "N Du S"]) -> Float64[np.ndarray, "N Dx S"]:
    # By the method of Runge and Kutta, for all S inputs at once; every input is held for a sample.
    def derive(states, inputs):
        return np.array(plant.derivative(*states, *inputs, **parameters))

    states = np.repeat(np.array(plant.start)[:, None], u.shape[2], axis=1)
    found, step = np.empty((len(u), *states.shape)), plant.dt / SUBSTEPS
    for k, inputs in enumerate(u):
        found[k] = states
        for _ in range(SUBSTEPS):
            first = derive(states, inputs)
            second = derive(states + 0.5 * step * first, inputs)
            third = derive(states + 0.5 * step * second, inputs)
            fourth = derive(states + step * third, inputs)
            states = states + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
    return found


def mark_inside(train: revarb.Series, test: revarb.Series) -> Bool[np.ndarray, " N"]:
    """Rows whose measured inputs and outputs are all in the range of the training record."""
    pairs = ((train.u, test.u), (train.y, test.y))
    return np.all([((new >= old.min(axis=0)) & (new <= old.max(axis=0))).all(axis=1) for old, new in pairs], axis=0)


def find_leaving(outside: Bool[np.ndarray, " N"]) -> int | None:
    """The first of `LEAVING` marked rows in a row; None without them."""
    runs = np.convolve(outside, np.ones(LEAVING, dtype=int), "valid") == LEAVING
    return int(np.argmax(runs)) if runs.any() else None


def measure_bands(path: revarb.Trajectory, train: revarb.Series, test: revarb.Series) -> dict[str, Any]:
    """Shares in the bands, errors and widths in kinds of rows of a test record with one output.

    Rows *inside* have all measurements in the range of training, *before* or *after* row `INSIDE`, from which on inputs
    are larger; rows *beyond* are not inside; at *warned* rows the run says that it extrapolates, inside or not. The
    first `skip` rows count nowhere. Widths are those of the 95 % band, in standard deviations of the training output;
    None is the score of no rows.
    """
    number, inside = np.arange(len(test)), mark_inside(train, test)
    error, found = np.abs(test.y - path.mean)[:, 0], {}
    half, half50 = ((path.interval(level)[1] - path.mean)[:, 0] for level in (0.95, 0.5))
    before, after = inside & (number < INSIDE), inside & (number >= INSIDE)
    kinds = {"inside": inside, "before": before, "after": after, "beyond": ~inside, "warned": _mark_warned(path)}
    for name, kind in kinds.items():
        rows = kind & (number >= path.skip)
        found |= {
            f"rows_{name}": int(rows.sum()),
            f"coverage95_{name}": _mean(error[rows] <= half[rows]),
            f"coverage50_{name}": _mean(error[rows] <= half50[rows]),
            f"rmse_{name}": float(np.sqrt(np.mean(error[rows] ** 2))) if rows.any() else None,
            f"width_{name}": _mean(2.0 * half[rows] / train.y.std()),
        }
    return found


def judge_warnings(path: revarb.Trajectory, train: revarb.Series, test: revarb.Series) -> dict[str, Any]:
    """Whether the warning is in time, with the row at which the error leaves the band, and the share of false ones.

    Once over the whole run, and once from row `INSIDE` on, before which nothing but the start can go wrong.
    """
    rows, first = np.arange(len(test)), path.extrapolates_from
    scored, error = rows >= path.skip, np.abs(test.y - path.mean)[:, 0]
    outside = scored & (error > (path.interval(0.95)[1] - path.mean)[:, 0])
    found: dict[str, Any] = {"warned_from": first}
    for name, begin in (("in_time", 0), ("in_time_beyond", INSIDE)):
        left = find_leaving(outside & (rows >= begin))
        found |= {name: float(left is None or (first is not None and first <= left)), f"left_{name}": left}
    inside, warned = mark_inside(train, test) & scored, _mark_warned(path) & scored
    typical = np.quantile(error[inside], FALSE) if inside.any() else 0.0
    return {**found, "false_warnings": _mean(error[warned] <= typical)}


def _mark_warned(path: revarb.Trajectory) -> Bool[np.ndarray, " N"]:
    return np.zeros(len(path), dtype=bool) if path.extrapolates is None else path.extrapolates


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


class Beyond(Study):
    """Generated plants, by the chosen model and by ARX."""

    name, title = "beyond", "Beyond the training data: bands and warnings on generated plants"
    protocol = (
        "free simulation of the test record, cold start, without the rows in which the run settles; widths in standard "
        "deviations of the training output"
    )
    notes = (
        "inside: measured inputs and output in the range of the training record; beyond: not; warned: the run says "
        f"that it extrapolates. Before and after: rows inside before row {INSIDE}, and from there on, where the inputs "
        "become larger than in training.",
        f"in time: the warning comes before the error is outside of the 95 % band {LEAVING} rows in a row, or it never "
        f"is. Once beyond: the same from row {INSIDE} on. "
        f"False: the error of a warned row is at most the {FALSE:.0%} quantile of those inside.",
    )
    columns = ("dataset", "model", "method", "seed", "rmse", "nlpd", "coverage95", "coverage95_inside", "status")
    default_seeds, plants, effort = 10, tuple(PLANTS), "normal"

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """The effort of the fits."""
        parser.add_argument("--quick", action="store_true", help="fit with the effort 'quick'")

    def run(self, options: argparse.Namespace, command: str) -> None:
        """Carry out the study with the effort that is wanted."""
        self.effort = "quick" if options.quick else "normal"
        super().run(options, command)

    def models(self) -> dict[str, Any]:
        """The models by name."""
        jobs = None if self.jobs == 1 else 1  # no processes inside processes
        return {CHOSEN: revarb.Chosen(jobs=jobs, effort=self.effort), LINEAR: revarb.ARX()}

    def list_fits(self) -> list[Fit]:
        """Every plant, model and seed."""
        case = "quick" if self.effort == "quick" else ""
        return [Fit(name, model, seed, case if model == CHOSEN else "")
                for name in self.plants for model in self.models() for seed in range(self.seeds)]  # fmt: skip

    def run_fit(self, fit: Fit) -> Result:
        """Draw a plant, fit a model, and score its band."""
        train, test = draw_plant(fit.dataset, fit.seed or 0)
        run = run_model(fit.model, self.models()[fit.model], fit.seed or 0, [train], [test], _score(train, test))
        rows = [{"dataset": fit.dataset, **row} for row in run.rows if row["method"] != "mean"]
        drawn = [path for (path,) in run.paths.values() if path.std is not None]
        return Result(rows, (drawn[0], train, test) if drawn else None)

    def tables(self, rows: Rows) -> list[Grid]:
        """For every model the shares of rows in its bands, then its warnings, errors and widths: a row per plant."""
        return [grid for model in names_of(rows, "model") for grid in _make_grids(model, select(rows, model=model))]

    def targets(self, rows: Rows) -> list[Target]:
        """Bands that hold inside and where the warning is on, and warnings in time."""
        targets = [no_failures(rows)]
        for name, own in by_record(select(rows, model=CHOSEN)).items():
            inside, warned = (over_seeds(own, f"coverage95_{kind}").median for kind in ("inside", "warned"))
            in_time = _share(own, "in_time")
            targets += [
                between(f"{name}: share in the 95 % band inside", inside, *BAND),
                _at_least(f"{name}: share in the 95 % band where the warning is on", warned, BAND_WARNED),
                _at_least(f"{name}: runs in which the warning is in time", in_time, WARNED_BEFORE),
            ]
        return targets

    def figures(self, rows: Rows, drawn: Mapping[Fit, Any]) -> dict[str, Figure]:
        """The run of every plant with the fewest rows beyond the training range in the band."""
        figures = {}
        for name, own in by_record(select(rows, model=CHOSEN)).items():
            kept = {fit.seed: runs for fit, runs in drawn.items() if (fit.dataset, fit.model) == (name, CHOSEN)}
            shares = {row["seed"]: row["coverage95_beyond"] for row in own if row["seed"] in kept}
            if shares:
                worst = min(shares, key=shares.__getitem__)
                figures[f"beyond_{name}"] = draw_run(f"{name}, seed {worst} (dashed: range in training)", *kept[worst])
        return figures

    def caption(self, name: str) -> str:
        """What a figure shows."""
        return (
            f"{name.removeprefix('beyond_')}: the seed with the fewest rows beyond the training range in the band. "
            "Dashed: the range of the training output; shaded: the run says that it extrapolates."
        )


def _score(train: revarb.Series, test: revarb.Series) -> Score:
    def score(paths, start):
        (path,) = paths
        if path.std is None:
            return {}
        found = score_record(test, path.skip)(paths, start)
        return {**found, **measure_bands(path, train, test), **judge_warnings(path, train, test)}

    return score


def _share(rows: Rows, column: str) -> float:
    # A failed run counts as none.
    return float(np.mean([row.get(column) or 0.0 for row in rows]))


def _at_least(what: str, value: float, limit: float) -> Target:
    return Target(f"{what} at least {limit:.0%}", value >= limit, format_percent(value))  # NaN misses it


def _make_grids(model: str, rows: Rows) -> list[Grid]:
    kinds = (
        ("inside", 95),
        ("inside", 50),
        ("before", 95),
        ("after", 95),
        ("beyond", 95),
        ("warned", 95),
        ("warned", 50),
    )
    sizes = ("rmse_inside", "rmse_warned", "width_inside", "width_warned", "nlpd")
    bands, others = [], []
    for name, own in by_record(rows).items():
        bands.append([name, *(_format_percents(over_seeds(own, f"coverage{level}_{kind}")) for kind, level in kinds)])
        shares = (_share(own, "in_time"), _share(own, "in_time_beyond"), over_seeds(own, "false_warnings").median)
        numbers = (format_number(over_seeds(own, column).median) for column in sizes)
        seconds = format_seconds(over_seeds(own, "fit_seconds").median)
        others.append([name, *map(format_percent, shares), *numbers, seconds])
    titles = (
        "in time",
        "once beyond",
        "false",
        "RMSE inside",
        "RMSE warned",
        "width inside",
        "width warned",
        "NLPD",
        "fit s",
    )
    return [
        Grid(f"{model}: rows in the band", ("plant", *(f"{kind}, {level} %" for kind, level in kinds)), bands),
        Grid(f"{model}: warnings, errors, widths", ("plant", *titles), others),
    ]


def _format_percents(values: SeedRange) -> str:
    low, middle, high = (f"{100.0 * value:.0f}" if np.isfinite(value) else "–" for value in values)
    return middle if low == high else f"{middle} ({low}–{high})"


def draw_run(title: str, path: revarb.Trajectory, train: revarb.Series, test: revarb.Series) -> Figure:
    """A simulation of the test record, with the range of the training output as dashed lines."""
    figure = path.plot(test.y, title)
    for level in (train.y.min(), train.y.max()):
        figure.axes[train.u.shape[1]].axhline(level, color=GREY, lw=0.9, ls="--")
    return figure


STUDY = Beyond
