"""GP state-space models beside REVARB: on five records, on systems with known states, on Narendra and Li's system.

1. Five records, first half for training, second half for test, raw units, from two starts: continuing from the end of
   training (the protocol of EnVI's Table II), and cold, scored after 40 samples.
2. Generated systems whose states are measured with noise: the learnt transition and its noise against the truth.
3. Narendra and Li's system with a long record, cold.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import revarb
from revarb import datasets
from revarb.datasets.benchmarks import draw_artificial
from studies.output import BAND, MEASURED, MODEL, finish_figure
from studies.records import raise_if_interrupted, run_model, score_record
from studies.study import Fit, Result, Study, no_failures
from studies.tables import Grid, Row, Rows, Target, format_range, over_seeds, select

PRIOR, MARKOV, MEAN_FIELD = "GPSSM, prior", "GPSSM, markov", "GPSSM, mean-field"
REDUCED_RANK, R0, CHOSEN = "reduced-rank GPSSM", "REVARB (R0)", "revarb (chosen)"
STRUCTURED = (PRIOR, MARKOV, MEAN_FIELD)
MODELS = (*STRUCTURED, REDUCED_RANK, R0, CHOSEN)
METHODS = ("samples", "moments", "residuals", "")  # what `simulate` does by default, by the kind of model; or failed
COLD, CONTINUED = "cold", "continue"
NARENDRA_LI = "narendra_li"

CHOSEN_SEEDS = 5  # of the chosen model, at most: a choice takes minutes
LONG_CHOSEN_SEEDS = 1  # and on the long record: half an hour on one core
GENERATED_SEEDS = 3  # of generated records: each seed draws another one
KNOWN_SAMPLES, LONG_SAMPLES = 1000, 2000
LONG_NOISE_STD = 0.31622776601683794  # variance 0.1, as in Svensson's work
SKIP = {COLD: 40, CONTINUED: 0}  # as in the benchmarks, and as published

# Of GPSSM on the systems with known states, by structure; chosen on records of seed 100. What can correct its states
# has long sub-trajectories, because each one pays for a start that is less well known than the states inside: with 20
# samples the process noise of "markov" was larger (kink: 2.2 times the true one rather than 1.7). "prior" cannot, and
# learns as far as its paths stay near the record: with 20 samples its error of f was larger (kink: 0.88, not 0.27).
LONG_WINDOWS = {"subsequence": 100, "window": 4, "batch": 4, "updates": 2000}
KNOWN = {
    PRIOR: {"subsequence": 3, "window": 3, "batch": 130, "updates": 2000},
    MARKOV: LONG_WINDOWS,
    MEAN_FIELD: LONG_WINDOWS,
}
LONG = {"basis": 500}  # four times as many samples resolve more sines (chosen on seeds 100 and 101)
REVARB = {"hidden": 2, "inducing": 100, "calibrate": False}  # R0: the paper's sizes, the default recipe

# Published errors: EnVI (IEEE TSP 2024), Table II, five seeds, continuing from the end of training.
OTHERS = ("AD-EnKF", "EnVI")
PUBLISHED: Mapping[str, Mapping[str, float]] = {
    record: dict(zip((*STRUCTURED, *OTHERS), errors, strict=True))
    for record, errors in (
        ("actuator", (0.691, 0.815, 1.640, 0.705, 0.657)),
        ("ballbeam", (0.074, 0.065, 0.268, 0.057, 0.055)),
        ("drive", (0.647, 0.735, 0.740, 0.756, 0.703)),
        ("dryer", (0.174, 0.667, 0.822, 0.182, 0.125)),
        ("gas_furnace", (1.503, 2.052, 3.676, 1.408, 1.388)),
    )
}

# What the study must show.
OF_PUBLISHED, ON_RECORDS = 1.15, 4  # our RMSE over the published one of the same method, on at least 4 records
OVER_ESTIMATED = 1.5  # process noise of the mean-field structure over the true one, at least,
ESTIMATED = 1.25  # and of the others at most
CURVE_POINTS = 41  # of a drawn transition

States = Float64[np.ndarray, "T Dx"]
Inputs = Float64[np.ndarray, "T Du"]


@dataclass(frozen=True)
class KnownSystem:
    """x_t = f(x_{t−1}, u_{t−1}) + process noise, y_t = x_t + output noise."""

    states: int
    inputs: int
    transition: Callable[[States, Inputs], States]
    process_std: float = 0.1
    output_std: float = 0.2

    def generate(self, samples: int, seed: int) -> tuple[revarb.Series, States]:
        """Generate a record, and the states without output noise."""
        rng = np.random.default_rng(seed)
        u = rng.uniform(-1.0, 1.0, (samples, self.inputs))
        x = np.zeros((samples, self.states))
        x[0] = 0.5
        for t in range(1, samples):
            drive = self.process_std * rng.standard_normal(self.states)
            x[t] = self.transition(x[t - 1 : t], u[t - 1 : t])[0] + drive
        y = x + self.output_std * rng.standard_normal(x.shape)
        return revarb.Series(u if self.inputs else None, y), x


def _kink(x: States, u: Inputs) -> States:
    # Ialongo et al. 2019, section 5.
    return 0.8 + (x + 0.2) * (1.0 - 5.0 / (1.0 + np.exp(-2.0 * x)))


def _oscillator(x: States, u: Inputs) -> States:
    # The first state is linear in both, the second one is not.
    position, rate = x.T
    return np.column_stack([0.9 * position + 0.3 * rate, 0.7 * rate - 0.8 * np.sin(2.0 * position) + 0.8 * u[:, 0]])


SYSTEMS = {"kink": KnownSystem(1, 0, _kink), "two states": KnownSystem(2, 1, _oscillator)}


class StateSpace(Study):
    """GP state-space models and REVARB on the same records."""

    name, title = "state_space", "GP state-space models beside REVARB"
    protocol = (
        "first half for training, free simulation of the second half, raw units; continued from the end of training "
        "with all rows scored, and cold, scored after 40 samples"
    )
    columns = ("part", "dataset", "model", "seed", "reason")
    notes = (
        "continued: from the end of the training part, all rows scored, as published. cold: without knowledge of the "
        "state, scored after 40 samples. RMSE in raw units by what `simulate` does by default, median (range).",
        "published: EnVI (IEEE Transactions on Signal Processing, 2024), Table II, of the same method.",
        "process noise / true: over-estimated where it is above 1. error of f: along a new run, relative.",
    )
    datasets = (*PUBLISHED, *SYSTEMS, NARENDRA_LI)

    def models(self, dataset: str, lags: int = 1) -> dict[str, Any]:
        """The models of one record, which has these lags."""
        gpssm, reduced = revarb.GPSSM(), revarb.ReducedRankGPSSM()
        structured = {
            PRIOR: gpssm,
            MARKOV: replace(gpssm, structure="markov"),
            MEAN_FIELD: replace(gpssm, structure="mean-field"),
        }
        chosen = revarb.Chosen(jobs=None if self.jobs == 1 else 1)  # no processes inside processes
        if dataset in SYSTEMS:
            states = SYSTEMS[dataset].states
            return {name: replace(spec, states=states, **KNOWN[name]) for name, spec in structured.items()}
        if dataset == NARENDRA_LI:
            return {REDUCED_RANK: replace(reduced, **LONG), CHOSEN: chosen}
        return {**structured, REDUCED_RANK: reduced, R0: revarb.RGP(lags, lags, **REVARB), CHOSEN: chosen}

    def list_fits(self) -> list[Fit]:
        """Every record, model and seed; the first seed first."""
        return [
            Fit(dataset, model, seed)
            for seed in range(self.seeds)
            for dataset in self.datasets
            for model in self.models(dataset)
            if seed < self._limit_seeds(dataset, model)
        ]

    def _limit_seeds(self, dataset: str, model: str) -> int:
        limit = self.seeds if dataset in PUBLISHED else GENERATED_SEEDS
        if model == CHOSEN:
            limit = min(limit, LONG_CHOSEN_SEEDS if dataset == NARENDRA_LI else CHOSEN_SEEDS)
        return limit

    def run_fit(self, fit: Fit) -> Result:
        """Fit one model and score it: rows of free runs, or of the transition where the states are known."""
        if fit.dataset in SYSTEMS:
            return Result(run_known(fit, self.models(fit.dataset)[fit.model], KNOWN_SAMPLES))
        if fit.dataset == NARENDRA_LI:
            train, test = draw_artificial(fit.seed or 0, LONG_SAMPLES, LONG_NOISE_STD)
            spec, starts = self.models(fit.dataset)[fit.model], (COLD,)
        else:
            split = datasets.load(fit.dataset)
            train, test, starts = split.train, split.test, (COLD, CONTINUED)
            spec = self.models(fit.dataset, split.lags)[fit.model]
        run = run_model(fit.model, spec, fit.seed or 0, [train], [test], score_record(test, SKIP), starts)
        return Result([{"part": "records", "dataset": fit.dataset, **row} for row in run.rows])

    def tables(self, rows: Rows) -> list[Grid]:
        """Errors on the records from both starts, known transitions, and the long record, as far as there are rows."""
        found = {row["dataset"] for row in rows}
        records = [name for name in PUBLISHED if name in found]
        grids = [_error_grid(rows, records, start) for start in (CONTINUED, COLD)] if records else []
        if known := [name for name in SYSTEMS if name in found]:
            grids.append(_transition_grid(rows, known))
        return [*grids, _long_grid(rows)] if NARENDRA_LI in found else grids

    def targets(self, rows: Rows) -> list[Target]:
        """Errors near the published ones, and process noises beside the true ones."""
        found = {row["dataset"] for row in rows}
        records = [name for name in PUBLISHED if name in found]
        models = (PRIOR, MARKOV) if len(records) >= ON_RECORDS else ()
        noises = [target for name in SYSTEMS if name in found for target in _judge_noise(rows, name)]
        return [no_failures(rows), *(_judge_published(rows, records, model) for model in models), *noises]

    def caption(self, name: str) -> str:
        """What the figure shows."""
        return "Learnt transitions (mean and two standard deviations) against the truth, first seed."

    def figures(self, rows: Rows, drawn: Mapping[Fit, Any]) -> dict[str, Figure]:
        """The learnt transitions of the first seed against the truth."""
        curves = select(rows, part="curve")
        return {"state_space_transitions": draw_transitions(curves)} if curves else {}


def run_known(fit: Fit, spec: Any, samples: int) -> list[Row]:
    """Fit a model to a system with known states: a row about its transition, and with the first seed a drawn curve."""
    system, seed = SYSTEMS[fit.dataset], fit.seed or 0
    record, _ = system.generate(samples, seed)
    about = {"part": "known states", "dataset": fit.dataset, "model": fit.model, "seed": seed, "reason": None}
    begin = time.perf_counter()
    try:
        model = raise_if_interrupted(spec.fit([record], seed=seed))
    except revarb.RevarbError as error:
        return [{**about, "reason": str(error)}]
    seconds = time.perf_counter() - begin
    row = {**about, "status": str(model.status), "fit_seconds": seconds, **judge_transition(model, system, seed)}
    return [row, *({**about, "part": "curve", **point} for point in _list_curve(model, system) if seed == 0)]


def judge_transition(model: Any, system: KnownSystem, seed: int) -> dict[str, float]:
    """Error of the learnt transition along a new run of the system, and the noises, in raw units.

    The error is relative to the standard deviation of the next states; of noises over states the root mean square.
    """
    record, x = system.generate(1000, 10_000 + seed)
    learnt, _ = evaluate_transition(model, x[:-1], record.u[:-1])
    truth = system.transition(x[:-1], record.u[:-1])
    stds = np.asarray(model.transition.process_variance) ** 0.5 * model.scaling.y_std
    outputs = np.asarray(model.transition.output_std) * model.scaling.y_std
    return {
        "transition_error": float(np.sqrt(np.mean((learnt - truth) ** 2)) / truth.std()),
        "process_std": float(np.sqrt(np.mean(stds**2))),
        "true_process_std": system.process_std,
        "process_ratio": float(np.sqrt(np.mean(stds**2))) / system.process_std,
        "output_std": float(np.sqrt(np.mean(outputs**2))),
        "true_output_std": system.output_std,
    }


def evaluate_transition(model: Any, x: States, u: Inputs) -> tuple[States, States]:
    """Mean and standard deviation of the learnt f at raw states that are all outputs, and at raw inputs."""
    z, inputs = model.scaling.outputs(x), model.scaling.inputs(u)
    with jax.enable_x64(True):
        mean, variance = model.transition.marginal(np.concatenate([z, inputs], axis=1))
    return model.scaling.raw_outputs(np.asarray(mean)), model.scaling.raw_std(np.sqrt(np.asarray(variance)))


def _list_curve(model: Any, system: KnownSystem) -> Iterator[dict[str, float]]:
    # The last state's transition as a function of the first state; the other states and the inputs are zero.
    low, high = np.asarray(model.preprocessor.output_range)[:, 0]
    x = np.zeros((CURVE_POINTS, system.states))
    x[:, 0] = np.linspace(low, high, CURVE_POINTS)
    u = np.zeros((CURVE_POINTS, system.inputs))
    mean, std = evaluate_transition(model, x, u)
    truth = system.transition(x, u)
    for at, known, learnt, width in zip(x[:, 0], truth[:, -1], mean[:, -1], std[:, -1], strict=True):
        yield {"x": float(at), "truth": float(known), "learnt": float(learnt), "learnt_std": float(width)}


def default_rows(rows: Rows) -> Rows:
    """The rows of free runs by the default method of each model, and those of fits that failed."""
    return [row for row in select(rows, part="records") if row["reason"] is not None or row["method"] in METHODS]


def _error_grid(rows: Rows, records: Sequence[str], start: str) -> Grid:
    title = f"RMSE, {'continued from the end of training' if start == CONTINUED else 'cold start'}"
    by_default = default_rows(rows)
    cells = [[model, *(_error_cell(by_default, name, model, start) for name in records)] for model in MODELS]
    if start == CONTINUED:
        cells += [[f"{name} (published)", *(f"{PUBLISHED[record][name]:g}" for record in records)]
                  for name in OTHERS]  # fmt: skip
    return Grid(title, ["model", *records], cells)


def _error_cell(rows: Rows, record: str, model: str, start: str) -> str:
    ours = format_range(over_seeds(rows, "rmse", dataset=record, model=model, start=start))
    theirs = PUBLISHED[record].get(model) if start == CONTINUED else None
    return ours if theirs is None else f"{ours} [{theirs:g}]"


def _transition_grid(rows: Rows, names: Sequence[str]) -> Grid:
    columns = ("system", "model", "error of f", "process noise", "true", "process noise / true", "output noise", "true")
    own, cells = select(rows, part="known states"), []
    for name in names:
        process, output = f"{SYSTEMS[name].process_std:g}", f"{SYSTEMS[name].output_std:g}"
        for model in STRUCTURED:
            error, found, ratio, noise = (
                format_range(over_seeds(own, column, dataset=name, model=model))
                for column in ("transition_error", "process_std", "process_ratio", "output_std")
            )
            cells.append([name, model, error, found, process, ratio, noise, output])
    return Grid("Known states", columns, cells)


def _long_grid(rows: Rows) -> Grid:
    own, cells = select(rows, dataset=NARENDRA_LI), []
    for model in (REDUCED_RANK, CHOSEN):
        scores = ("rmse", "nrmse", "coverage95", "fit_seconds")
        ranges = [over_seeds(default_rows(own), column, model=model) for column in scores]
        mean_only = over_seeds(own, "rmse", model=model, method="mean")
        cells.append([model, format_range(mean_only), *map(format_range, ranges)])
    columns = ("model", "RMSE, mean-only", "RMSE", "NRMSE", "share in 95 %", "fit s")
    return Grid("Narendra and Li's system, 2000 samples, cold start", columns, cells)


def _judge_published(rows: Rows, records: Sequence[str], model: str) -> Target:
    ours = default_rows(rows)
    ratios = {
        name: over_seeds(ours, "rmse", dataset=name, model=model, start=CONTINUED).median / PUBLISHED[name][model]
        for name in records
    }
    reached = sum(ratio <= OF_PUBLISHED for ratio in ratios.values())
    text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    what = f"{model}: at most {OF_PUBLISHED:g} × the published error on {ON_RECORDS} of {len(records)} records"
    return Target(what, reached >= ON_RECORDS, f"{reached}; over the published one: {text}")


def _judge_noise(rows: Rows, name: str) -> Iterator[Target]:
    for model in STRUCTURED:
        ratio = over_seeds(rows, "process_ratio", dataset=name, model=model, part="known states").median
        if model == MEAN_FIELD:
            what = f"{name}: {model} over-estimates the process noise at least {OVER_ESTIMATED:g} times"
            yield Target(what, ratio >= OVER_ESTIMATED, f"{ratio:.2f} times")
        else:
            what = f"{name}: process noise of {model} at most {ESTIMATED:g} times the true one"
            yield Target(what, ratio <= ESTIMATED, f"{ratio:.2f} times")


def draw_transitions(curves: Rows) -> Figure:
    """A panel per system and model: the next state as a function of the first state."""
    models = list(dict.fromkeys(row["model"] for row in curves))
    names = [name for name in SYSTEMS if select(curves, dataset=name)]
    figure = Figure(figsize=(3.4 * len(models), 3.0 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), len(models), squeeze=False, sharex="row", sharey="row")
    for name, line in zip(names, panels, strict=True):
        for model, axes in zip(models, line, strict=True):
            _draw_curve(axes, select(curves, dataset=name, model=model))
            # Inside of the panel: the legend of the figure is above the first one.
            axes.text(0.5, 0.02, f"{name}: {model}", transform=axes.transAxes, ha="center", fontsize=9)
        line[0].set_ylabel("next state")
    for axes in panels[-1]:
        axes.set_xlabel("first state")
    finish_figure(figure, "")
    return figure


def _draw_curve(axes: Axes, points: Rows) -> None:
    x, truth, learnt, std = (np.array([point[name] for point in points])
                             for name in ("x", "truth", "learnt", "learnt_std"))  # fmt: skip
    axes.fill_between(x, learnt - 2.0 * std, learnt + 2.0 * std, color=BAND, label="two standard deviations")
    axes.plot(x, truth, color=MEASURED, lw=1.2, label="truth")
    axes.plot(x, learnt, color=MODEL, lw=1.2, ls="--", label="learnt")


STUDY = StateSpace
