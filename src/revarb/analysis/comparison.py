"""Comparison of models under equal conditions: the same records, the same cold start, the same rows scored."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import eq
from typing import TYPE_CHECKING, Any

import numpy as np

from revarb.analysis.reliability import BandCheck, check_bands
from revarb.analysis.runs import FitStore, Run, default_models, run_all
from revarb.analysis.scores import find_common_skip
from revarb.analysis.verdict import Line, Score, describe_verdict, summarise
from revarb.baselines import GPSSM, ReducedRankGPSSM
from revarb.baselines.state_space.fitted_state_space import SETTLING
from revarb.data.quality import warn_about_quality
from revarb.data.sampling import is_same_interval
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, as_records
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, check_integer, check_seed, warn_user
from revarb.models.base import ModelSpec
from revarb.models.residuals import Residuals
from revarb.runtime.notebook import encode_table, encode_title
from revarb.runtime.progress import progress_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


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

    def _repr_html_(self) -> str:
        title = f"{self.score.upper()} of a free simulation, median over the seeds"
        rows = [
            (line.model, line.method, f"{line.median(self.score):.3g}" if line.worked else "failed")
            for line in self.lines
        ]
        said = [self.verdict] if self.incomplete is None else [self.verdict, self.incomplete]
        return "".join([*map(encode_title, said), encode_table(title, ("model", "method", self.score.upper()), rows)])

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

    def plot(self, column: int = 0, fig: "Figure | SubFigure | None" = None) -> "Figure":
        """Draw one output of the first test record as every model simulates it, a panel each.

        Parameters
        ----------
        column : int
            Which output.
        fig : matplotlib Figure or SubFigure, optional
            Where to draw; its size and layout stay. Default: a new figure.

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
        return draw_comparison(self.by_model(), self.test[0], column, fig)


class ComparisonInterrupted(KeyboardInterrupt):
    """Ctrl-C during a comparison; `comparison` has the models that were done before it."""

    def __init__(self, comparison: Comparison):
        super().__init__()
        self.comparison = comparison


def compare(
    train: Series | Sequence[Series],
    test: Series | Sequence[Series],
    models: Mapping[str, ModelSpec] | None = None,
    seeds: int | Sequence[int] = 3,
    *,
    jobs: int = 1,
    skip: int | None = None,
    progress: bool = False,
    resume: bool = False,
) -> Comparison:
    """Fit every model to `train` with every seed and score its free simulation of `test`.

    All models have the same records, the same cold start and the same scored rows. A model that fails is a row with
    its reason. Finished fits of a comparison that is killed, or interrupted by Ctrl-C, are kept on disk.

    Parameters
    ----------
    train, test : Series or list of Series
        Records with the same columns and sampling.
    models : dict of str to configuration, optional
        Configurations by the names of their rows; default: REVARB and the baselines with ten lags, and the model that
        `revarb.fit` chooses.
    seeds : int or list of int
        How many seeds (0, 1, …), or which.
    jobs : int
        Number of processes; the numbers do not depend on it.
    skip : int, optional
        First rows of every test record that are not scored; default: what the slowest model needs to settle.
    progress : bool
        Draw a bar where the output is a terminal.
    resume : bool
        Continue a comparison of the same models and records that was killed or interrupted.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If the records, the models or the seeds are not valid.
    ComparisonInterrupted
        After Ctrl-C, a `KeyboardInterrupt` whose `comparison` has the models that were done before it.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(80.0))
    >>> record = revarb.Series(u, np.convolve(u, [0.0, 0.5, 0.3])[:80])
    >>> models = {"Mean": revarb.Mean(), "ARX": revarb.ARX(lags=2, input_lags=2)}
    >>> print(revarb.compare(record, record, models, seeds=1).verdict.partition(":")[0])
    Use ARX
    """
    records, tests = as_records(train), as_records(test)
    Standardiser.from_records(records)  # a constant column is the caller's mistake, not every model's failure
    _check_columns(records, tests)
    jobs = check_integer("jobs", jobs, least=1)
    chosen, numbers = _check_models(default_models(jobs=jobs) if models is None else models), _check_seeds(seeds)
    known_skip = SETTLING if any(isinstance(spec, GPSSM | ReducedRankGPSSM) for spec in chosen.values()) else 0
    _check_skip(known_skip if skip is None else skip, tests)  # before the fits, which may take hours
    warn_about_quality(records)  # once; the fits below do not repeat it
    store = FitStore.open(chosen, numbers, records, resume)
    ordered, runs = list(itertools.product(chosen, numbers)), {}
    try:
        with progress_bar("comparing", len(ordered), progress) as update:
            for run in run_all(chosen, numbers, records, tests, jobs, store):
                runs[run.model, run.seed] = run
                update(len(runs), f"{run.model} done")
    except KeyboardInterrupt:
        if not runs:
            raise
        done, missing = [runs[key] for key in ordered if key in runs], tuple(key for key in ordered if key not in runs)
        raise ComparisonInterrupted(_collect_runs(done, tests, skip, missing)) from None
    died = "a worker process died (out of memory?); use fewer jobs"
    done = [runs.get(key) or Run(*key, "failed", reason=died) for key in ordered]
    for message in _collect_warnings(done):
        warn_user(message)
    comparison = _collect_runs(done, tests, skip)
    store.parts.discard()
    return comparison


def _collect_runs(
    runs: Sequence[Run], test: tuple[Series, ...], skip: int | None, missing: tuple[tuple[str, int], ...] = ()
) -> Comparison:
    # By default `skip` is the number of rows that the slowest model needs to settle.
    paths: dict[tuple[str, str], tuple[Trajectory, ...]] = {}
    for run in runs:
        for method, simulated in run.simulated.items():
            paths.setdefault((run.model, method), simulated.paths)
    if skip is None:
        skip = find_common_skip([path for several in paths.values() for path in several])
    skip = _check_skip(skip, test)
    rows = tuple(row for run in runs for row in run.score(test, skip))
    residuals = {run.model: run.residuals for run in runs if run.residuals is not None}
    return Comparison(rows, paths, test, skip, residuals, missing)


def _collect_warnings(runs: Sequence[Run]) -> list[str]:
    # Each once: with the names of its models, or without where all that worked have it, as of inputs out of range.
    worked, messages = {run.model for run in runs if run.reason is None}, []
    for text in dict.fromkeys(text for run in runs for text in run.warnings):
        names = dict.fromkeys(run.model for run in runs if text in run.warnings)
        shared = len(worked) > 1 and worked <= names.keys()
        messages.append(text if shared else f"{', '.join(names)}: {text}")
    return messages


def _check_columns(train: tuple[Series, ...], test: tuple[Series, ...]) -> None:
    for what, agree in (("input_names", eq), ("output_names", eq), ("dt", is_same_interval)):
        ours, theirs = getattr(train[0], what), getattr(test[0], what)
        if not agree(ours, theirs):
            raise InputError(f"train and test must agree in {what}: train has {ours}, test has {theirs}")
    if all(np.isnan(record.y).all() for record in test):
        raise InputError("the test part has no measured output value, so there is nothing to score")


def _check_models(models: Mapping[str, ModelSpec]) -> dict[str, ModelSpec]:
    if not isinstance(models, Mapping) or not models:
        raise InputError(f"models must name at least one, such as {{'REVARB': revarb.RGP()}}, received {models!r}")
    for name, spec in models.items():
        if not isinstance(name, str):
            raise InputError(f"a model must be named by a text, received {name!r}")
        if isinstance(spec, type) or not isinstance(spec, ModelSpec):
            raise InputError(f"model {name!r} must be a configuration with fit(train, seed=…), received {spec!r}")
    return dict(models)


def _check_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(seeds, Sequence) and not isinstance(seeds, str):
        numbers = tuple(check_seed(seed) for seed in seeds)
        if not numbers or len(set(numbers)) < len(numbers):
            raise InputError(f"seeds must name at least one seed, each once, received {seeds!r}")
        return numbers
    return tuple(range(check_integer("seeds (how many, or a list of them)", seeds, least=1)))


def _check_skip(skip: int, test: Sequence[Series]) -> int:
    skip, shortest = check_integer("skip", skip, least=0), min(len(record) for record in test)
    if skip >= shortest:
        raise InputError(f"a test record has {shortest} rows, but {skip} are left out; use a longer one or fewer lags")
    return skip
