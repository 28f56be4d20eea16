"""Comparison of models under equal conditions: the same records, the same cold start, the same rows scored."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from revarb.analysis.comparison import Comparison, ComparisonInterrupted, check_skip, collect_runs
from revarb.analysis.runs import FitStore, Run, run_all
from revarb.baselines import ARX, GPNARX, GPSSM, LSTM, MLPNARX, Mean, ReducedRankGPSSM
from revarb.baselines.state_space.fitted_state_space import SETTLING
from revarb.data.quality import warn_about_quality
from revarb.data.sampling import is_same_interval
from revarb.data.scaling import Standardiser
from revarb.data.series import Series, as_records
from revarb.errors import InputError, check_integer, check_seed, warn_user
from revarb.models.base import ModelSpec
from revarb.models.rgp import RGP
from revarb.runtime.progress import progress_bar
from revarb.selection.choose import Chosen

WORKER_DIED = "a worker process died (out of memory?); use fewer jobs"


def default_models(spec: RGP | None = None, jobs: int = 1) -> dict[str, ModelSpec]:
    """REVARB as configured, the baselines with its lags, and the model that `revarb.fit` chooses.

    ARX chooses its order up to these lags, or up to ten if more. `jobs` is that of `compare`.
    """
    spec = spec or RGP()
    lags, input_lags, input_delay = spec.lags, spec.input_lags, spec.input_delay
    return {
        "Mean": Mean(),
        "ARX": ARX(max(lags, 10), max(input_lags, 10), input_delay),
        "MLP-NARX": MLPNARX(lags, input_lags, input_delay),
        "LSTM": LSTM(input_delay=input_delay),
        "GP-NARX": GPNARX(lags, input_lags, input_delay),
        "REVARB": spec,
        "revarb (chosen)": Chosen(jobs=None if jobs == 1 else 1),  # processes do not start processes of their own
    }


def family_models(input_delay: int = 1, outputs: int = 1) -> dict[str, ModelSpec]:
    """GP state-space models: the three structures of `GPSSM`, and reduced rank; at least one state per output."""
    structured = GPSSM(states=max(GPSSM.states, outputs), input_delay=input_delay)
    reduced = ReducedRankGPSSM(states=max(ReducedRankGPSSM.states, outputs), input_delay=input_delay)
    return {
        "GPSSM, prior": structured,
        "GPSSM, markov": replace(structured, structure="markov"),
        "GPSSM, mean-field": replace(structured, structure="mean-field"),
        "reduced-rank GPSSM": reduced,
    }


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
    records = as_records(train)
    Standardiser.from_records(records)  # a constant column is the caller's mistake, not every model's failure
    tests = _check_test(records, as_records(test))
    jobs = check_integer("jobs", jobs, least=1)
    chosen, numbers = _check_models(default_models(jobs=jobs) if models is None else models), _check_seeds(seeds)
    if skip is not None:
        skip = check_skip(skip, tests)
    elif any(isinstance(spec, GPSSM | ReducedRankGPSSM) for spec in chosen.values()):
        check_skip(SETTLING, tests)  # the rows left out are known before the fits, which may take hours
    warn_about_quality(records)  # once; the fits below do not repeat it
    store = FitStore.open(chosen, numbers, records, resume)
    runs: dict[tuple[str, int], Run] = {}
    ordered = list(itertools.product(chosen, numbers))
    try:
        with progress_bar("comparing", len(ordered), progress) as update:
            for run in run_all(chosen, numbers, records, tests, jobs, store):
                runs[run.model, run.seed] = run
                update(len(runs), f"{run.model} done")
    except KeyboardInterrupt:
        if not runs:
            raise
        done, missing = [runs[key] for key in ordered if key in runs], tuple(key for key in ordered if key not in runs)
        raise ComparisonInterrupted(collect_runs(done, tests, skip, missing)) from None
    done = [runs.get(key) or Run(*key, "failed", reason=WORKER_DIED) for key in ordered]
    for message in _collect_warnings(done):
        warn_user(message)
    comparison = collect_runs(done, tests, skip)
    store.parts.discard()
    return comparison


def _collect_warnings(runs: Sequence[Run]) -> list[str]:
    # Each once: with the names of its models, or without where all that worked have it, as of inputs out of range.
    models: dict[str, dict[str, None]] = {}
    for run in runs:
        for text in run.warnings:
            models.setdefault(text, {})[run.model] = None
    worked = {run.model for run in runs if run.reason is None}
    return [
        text if len(worked) > 1 and worked <= names.keys() else f"{', '.join(names)}: {text}"
        for text, names in models.items()
    ]


def _check_test(train: tuple[Series, ...], test: tuple[Series, ...]) -> tuple[Series, ...]:
    for what in ("input_names", "output_names", "dt"):
        ours, theirs = getattr(train[0], what), getattr(test[0], what)
        if not (is_same_interval(ours, theirs) if what == "dt" else ours == theirs):
            raise InputError(f"train and test must agree in {what}: train has {ours}, test has {theirs}")
    if all(np.isnan(record.y).all() for record in test):
        raise InputError("the test part has no measured output value, so there is nothing to score")
    return test


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
