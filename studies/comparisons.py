"""Studies that compare many models on many records, such as Table 1 and the benchmarks: their fits and figures."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from matplotlib.figure import Figure

import revarb
from revarb.analysis.figures import draw_reliability
from studies.records import Benchmark, run_model, score_record
from studies.study import ACCURACY, TIMES, Fit, Result, Study
from studies.tables import Rows, names_of, select

LABELS = {"drive": {"u": "voltage (V)", "y": "speed (ticks/s)", "error": "error (ticks/s)"}}  # of records with units
NOTES = (
    "Median (smallest – largest) over seeds. Free simulation from the inputs alone, cold start, raw units; the same "
    "rows are scored for every model. ARX chooses its order, up to ten lags or those of the others if they are more.",
    "mean: the mean-only free run. moments: mean and uncertainty propagated with full covariance.",
    "residuals: a model without its own uncertainty. Its run is mean-only, and its band is as wide as its errors "
    "in free runs over held-out parts of the training record. They also chose its size, so the band is rather narrow.",
    "NLPD (smaller is better) and the share inside the 95 % band judge the band. Seconds include compilation the first "
    "time.",
)
RELIABILITY = (
    "{name}: reliability of the bands, first seed. Left: the share of measurements inside a band, against its nominal "
    "level; below the diagonal bands are too narrow. Middle: where in its predicted distribution every measurement "
    "lies; flat is reliable, a valley means too narrow, a hill too wide. Right: root mean square error and predicted "
    "standard deviation, in standard deviations of the output. Grey is where reliable bands stay 95 % of the time if "
    "errors are independent; errors close in time seldom are."
)
SIMULATED = (
    "{name}: measured and simulated from a cold start, first seed. The axis follows the measured output; a simulation "
    "may leave it."
)


class ComparisonStudy(Study):
    """All models on all records, with all seeds; the simulations of the first one are drawn."""

    columns = (*ACCURACY, *TIMES)
    benchmarks: ClassVar[Sequence[Benchmark]]
    shown: ClassVar[str]  # the model that has a figure of its own
    least_skip: ClassVar[int] = 0  # first rows of a test record that are not scored, at least

    @abstractmethod
    def models(self, lags: int) -> dict[str, Any]:
        """All models, for a record with these lags."""

    def count_seeds(self, benchmark: Benchmark) -> int:
        """Number of seeds of a record."""
        return self.seeds

    def list_fits(self) -> list[Fit]:
        """Every record, model and seed."""
        return [
            Fit(benchmark.name, model, seed)
            for benchmark in self.benchmarks
            for model in self.models(1)
            for seed in range(self.count_seeds(benchmark))
        ]

    def find(self, name: str) -> Benchmark:
        """The record with this name."""
        return next(benchmark for benchmark in self.benchmarks if benchmark.name == name)

    def run_fit(self, fit: Fit) -> Result:
        """Fit a model, and score its simulations."""
        benchmark, seed = self.find(fit.dataset), fit.seed or 0
        split = benchmark.load(seed)
        skip, spec = max(self.least_skip, split.skip), self.models(split.lags)[fit.model]
        run = run_model(fit.model, spec, seed, [split.train], [split.test], score_record(split.test, skip))
        rows = [{**benchmark.source, **row} for row in run.rows]
        return Result(rows, (run.paths, split.test, skip) if seed == 0 else None)

    def caption(self, name: str) -> str:
        """What a figure shows."""
        record = name.removeprefix("reliability_").removesuffix("_all")
        return (RELIABILITY if name.startswith("reliability_") else SIMULATED).format(name=record)

    def figures(self, rows: Rows, drawn: Mapping[Fit, Any]) -> dict[str, Figure]:
        """For every record: all models of the first seed, the reliability of their bands, and one model alone.

        `drawn` has the simulations by start and method, the test record and the first row that is scored.
        """
        figures = {}
        for name in names_of(rows):
            rows_of_first = select(rows, dataset=name, seed=0)
            found = {fit.model: values for fit, values in drawn.items() if fit.dataset == name and values[0]}
            own = {model: found[model] for model in names_of(rows_of_first, "model") if model in found}
            if not own:
                continue
            _, test, skip = next(iter(own.values()))
            paths = {(model, method): each for model, (runs, _, _) in own.items() for (_, method), each in runs.items()}
            comparison = revarb.Comparison(tuple(rows_of_first), paths, (test,), skip)
            figures[f"{name}_all"] = _label(comparison.plot(), name)
            if comparison.reliability():
                figures[f"reliability_{name}"] = draw_bands(comparison)
            if self.shown in own:
                path = comparison.by_model()[self.shown][-1]
                figure = path.plot(test.y, f"{name}: free simulation of the test part")
                figures[name] = _label(figure, name)
        return figures


def _label(figure: Figure, record: str) -> Figure:
    # The names of columns with their units.
    for label in [axes.yaxis.label for axes in figure.axes]:
        label.set_text(LABELS.get(record, {}).get(label.get_text(), label.get_text()))
    return figure


def draw_bands(comparison: revarb.Comparison) -> Figure:
    """The reliability of the bands of a comparison."""
    return draw_reliability(comparison.reliability())
