"""Comparison of models on the test records: scores, simulations, residuals and a verdict."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from revarb.analysis.reliability import BandCheck, check_bands
from revarb.analysis.runs import Run
from revarb.analysis.scores import SCORE_NAMES, pooled_scores
from revarb.analysis.verdict import Line, Score, describe_verdict, summarise
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, check_integer
from revarb.models.residuals import Residuals

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Scores and simulations of every model on the test records, as `compare` returns them.

    Attributes
    ----------
    rows : tuple of dict
        One per model, method and seed: scores, seconds, status, the reason where a fit failed, and which candidate was
        taken where a model chooses among several.
    paths : dict
        Simulations of the first seed that did not fail, by (model, method): one trajectory per test record.
    test : tuple of Series
        The records that were simulated.
    skip : int
        Number of first rows of every record that were not scored.
    residuals : dict
        Errors one step ahead along the first test record and what is left in them, by model: of the first seed, of the
        models that predict.
    missing : tuple of (str, int)
        Models and seeds that were not done when Ctrl-C came.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0))
    >>> record = revarb.Series(u, np.convolve(u, [0.0, 0.5, 0.3])[:60])
    >>> models = {"Mean": revarb.Mean(), "ARX": revarb.ARX(lags=2, input_lags=2)}
    >>> comparison = revarb.compare(record, record, models, seeds=1)
    >>> comparison
    Comparison(Mean, ARX; 1 test record(s))
    >>> [(row["model"], row["method"], row["rmse"] < 0.01) for row in comparison.rows]
    [('Mean', 'residuals', False), ('ARX', 'residuals', True)]
    """

    rows: tuple[Mapping[str, Any], ...]
    paths: Mapping[tuple[str, str], tuple[Trajectory, ...]]
    test: tuple[Series, ...]
    skip: int
    residuals: Mapping[str, Residuals] = field(default_factory=dict)
    missing: tuple[tuple[str, int], ...] = ()

    def __repr__(self) -> str:
        models = ", ".join(dict.fromkeys(row["model"] for row in self.rows))
        return f"Comparison({models}; {len(self.test)} test record(s))"

    @property
    def lines(self) -> list[Line]:
        """The rows summarised over seeds: one line per model and method, in the order of the models."""
        return summarise(self.rows)

    @property
    def score(self) -> Score:
        """What ranks the models: RMSE, or NRMSE where several outputs may have different units."""
        return "rmse" if len(self.test[0].output_names) == 1 else "nrmse"

    @property
    def incomplete(self) -> str | None:
        """A sentence where Ctrl-C came before all fits were done; None where they were."""
        if not self.missing:
            return None
        counts = Counter(model for model, _ in self.missing)
        names = ", ".join(f"{model} ({count} seed(s))" for model, count in counts.items())
        return f"This comparison is incomplete: it was stopped by Ctrl-C before {names}."

    @property
    def verdict(self) -> str:
        """The conclusion in one or two sentences."""
        return describe_verdict(self.lines, self.score)

    def by_model(self) -> dict[str, list[Trajectory]]:
        """Simulations of the first test record by model, one per method; the mean-only run first.

        Returns
        -------
        dict of str to list of Trajectory
            Of the first seed that did not fail; a model of which all seeds failed is left out.
        """
        models = dict.fromkeys(model for model, _ in self.paths)
        return {model: [paths[0] for (name, _), paths in self.paths.items() if name == model] for model in models}

    def reliability(self) -> dict[tuple[str, str], BandCheck]:
        """Reliability of the bands over all test records, of the simulations that have a band.

        Returns
        -------
        dict of (str, str) to BandCheck
            By (model, method): coverage by level, PIT values, and error by horizon.
        """
        outputs = [record.y for record in self.test]
        banded = {key: paths for key, paths in self.paths.items() if all(path.std is not None for path in paths)}
        with np.errstate(over="ignore", invalid="ignore"):  # a model may have diverged
            return {key: check_bands(paths, outputs, self.skip) for key, paths in banded.items()}

    def plot(self, column: int = 0) -> "Figure":
        """Draw one output of the first test record as every model simulates it, a panel each.

        Parameters
        ----------
        column : int
            Which output.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("comparison.png")`; a notebook displays it.

        Raises
        ------
        InputError
            If there is no such output, or every model failed.
        """
        from revarb.analysis.figures import draw_comparison  # matplotlib is slow to import

        column = check_integer("column", column, 0, len(self.test[0].output_names) - 1)
        if not self.paths:
            raise InputError("every model failed, so there is nothing to draw; see `rows` for the reasons")
        return draw_comparison(self.by_model(), self.test[0].y, column)


class ComparisonInterrupted(KeyboardInterrupt):
    """Ctrl-C during a comparison; `comparison` has the models that were done before it."""

    def __init__(self, comparison: Comparison):
        super().__init__()
        self.comparison = comparison


def collect_runs(
    runs: Sequence[Run], test: tuple[Series, ...], skip: int | None, missing: tuple[tuple[str, int], ...] = ()
) -> Comparison:
    """Score finished runs; by default `skip` is the number of rows that the slowest model needs to settle."""
    paths: dict[tuple[str, str], tuple[Trajectory, ...]] = {}
    for run in runs:
        for method, simulated in run.simulated.items():
            paths.setdefault((run.model, method), simulated.paths)
    if skip is None:
        skip = max((path.skip for several in paths.values() for path in several), default=0)
    check_skip(skip, test)
    rows = tuple(row for run in runs for row in _rows(run, test, skip))
    residuals = {run.model: run.residuals for run in runs if run.residuals is not None}
    return Comparison(rows, paths, test, skip, residuals, missing)


def _rows(run: Run, test: Sequence[Series], skip: int) -> list[dict[str, Any]]:
    common = {"model": run.model, "start": "cold", "seed": run.seed, "status": run.status, "reason": run.reason,
              "fit_seconds": run.fit_seconds}  # fmt: skip
    if run.taken is not None:
        common["taken"] = run.taken
    if run.reason is not None:
        nothing = dict.fromkeys(SCORE_NAMES, float("nan"))
        return [{**common, "method": "", **nothing, "skip": skip, "simulate_seconds": float("nan")}]
    outputs = [record.y for record in test]
    rows = []
    for method, simulated in run.simulated.items():
        result = pooled_scores(simulated.paths, outputs, skip)
        row = {**common, "method": method, **result.to_row(), "simulate_seconds": simulated.seconds}
        if not np.isfinite(result.rmse):
            row |= {"status": "failed", "reason": f"its error is {result.rmse}: the outputs are too large"}
        rows.append(row)
    return rows


def check_skip(skip: int, test: Sequence[Series]) -> int:
    """The number of rows to leave out of every record, which must leave some."""
    skip, shortest = check_integer("skip", skip, least=0), min(len(record) for record in test)
    if skip >= shortest:
        raise InputError(f"a test record has {shortest} rows, but {skip} are left out; use a longer one or fewer lags")
    return skip
