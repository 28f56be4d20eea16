"""Scores of trajectories: RMSE, NRMSE, NLPD and coverage, without the rows in which a run settles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.data.dataframes import as_matrix, row_index, same_labels
from revarb.data.scaling import log_density, safe_rms, safe_std
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, check_integer

COVERAGE_LEVELS = (0.50, 0.90, 0.95)  # of the intervals that are scored


@dataclass(frozen=True)
class Scores:
    """Scores of all outputs together, over the values that were measured after the first `skip` rows.

    Attributes
    ----------
    rmse : float
        Root of the mean squared error, raw units.
    nrmse : float
        The same with every output divided by the standard deviation of its scored values.
    nlpd : float
        Mean negative log predictive density of a measured value under the distribution of the trajectory, raw units;
        nan without a std.
    coverage50, coverage90, coverage95 : float
        Share of measurements inside the central interval; nan without a std.
    skip : int
        Number of first rows that were left out.
    by_output : dict of str to Scores
        The scores of every output by itself, where there are several. Outputs may have different units: then `rmse` and
        `nlpd` of all outputs together are not comparable, and `nrmse` is the summary.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> path = revarb.Trajectory(np.zeros((4, 1)), np.ones((4, 1)), "moments", 0, ("y",))
    >>> result = revarb.scores(path, [1.0, -1.0, 1.0, -1.0])
    >>> result.rmse, result.nrmse, result.coverage50, result.coverage95
    (1.0, 1.0, 0.0, 1.0)
    """

    rmse: float
    nrmse: float
    nlpd: float
    coverage50: float
    coverage90: float
    coverage95: float
    skip: int
    by_output: Mapping[str, "Scores"] = field(default_factory=dict)

    def to_row(self) -> dict[str, Any]:
        """The scores as a row of a table: numbers by name; of several outputs also each by itself, as `outputs`.

        Returns
        -------
        dict
        """
        numbers = {name: getattr(self, name) for name in SCORE_NAMES}
        if not self.by_output:
            return numbers
        return {**numbers, "outputs": {name: each.to_row() for name, each in self.by_output.items()}}


SCORE_NAMES = tuple(each.name for each in fields(Scores) if each.name != "by_output")


def scores(path: Trajectory, y: Any, skip: int | None = None) -> Scores:
    """Score a trajectory against the measured output.

    Parameters
    ----------
    path : Trajectory
        What `simulate` or `predict` returned.
    y : array-like [T, outputs] or data frame
        Outputs measured at the same rows, raw units. NaN is not scored.
    skip : int, optional
        Number of first rows to leave out; default `path.skip`: those in which a run settles.

    Returns
    -------
    Scores

    Examples
    --------
    >>> import numpy as np, revarb
    >>> path = revarb.Trajectory(np.zeros((4, 1)), np.ones((4, 1)), "moments", 0, ("y",))
    >>> revarb.scores(path, [1.0, -1.0, 1.0, 3.0]).coverage95
    0.75
    """
    return pooled_scores([path], [y], skip)


def pooled_scores(paths: Sequence[Trajectory], outputs: Sequence[Any], skip: int | None = None) -> Scores:
    """Scores of several records together: all rows after the first `skip` of each record.

    Parameters
    ----------
    paths : list of Trajectory
        Simulations or predictions, one per record.
    outputs : list of array-like [T, outputs] or data frames
        Outputs measured at the same rows, raw units. NaN is not scored.
    skip : int, optional
        Number of first rows of every record to leave out; default: the largest `skip` of the paths, but no more than
        half of the shortest one.

    Returns
    -------
    Scores
    """
    path, y = pool_records(paths, outputs, skip)
    together = _score(path, y)
    if len(path.output_names) == 1:
        return together
    apart = {
        name: _score(_select_output(path, column), y[:, [column]])
        for column, name in enumerate(path.output_names)
        if np.isfinite(y[:, column]).any()
    }
    return replace(together, by_output=apart)


def _select_output(path: Trajectory, column: int) -> Trajectory:
    std = None if path.std is None else path.std[:, [column]]
    return replace(path, mean=path.mean[:, [column]], std=std, output_names=(path.output_names[column],))


def _score(path: Trajectory, y: np.ndarray) -> Scores:
    measured = ~np.isnan(y)
    if not measured.any():
        raise InputError(f"y has no measured value after the first {path.skip} rows; there is nothing to score")
    std = safe_std(np.where(measured.any(0), y, 0.0))  # 0 for an output that is constant in the scored rows
    with np.errstate(over="ignore"):  # differences of huge numbers, or a huge error divided by a tiny std
        error = y - path.mean
        relative = np.divide(error, std, out=np.full_like(error, np.nan), where=std > 0.0)
    errors = float(safe_rms(error[measured])), float(safe_rms(relative[measured]))
    if path.std is None:
        return Scores(*errors, np.nan, np.nan, np.nan, np.nan, path.skip)
    nlpd = -float(np.mean(log_density(error, path.std, path.degrees_of_freedom)[measured]))
    return Scores(*errors, nlpd, *(share_inside(path, y, level) for level in COVERAGE_LEVELS), skip=path.skip)


def share_inside(path: Trajectory, y: np.ndarray, level: float) -> float:
    """Share of the measured values inside the central interval."""
    lower, upper = path.interval(level)
    return float(((lower <= y) & (y <= upper))[~np.isnan(y)].mean())


def find_common_skip(paths: Sequence[Trajectory]) -> int:
    """The largest `skip` of runs, as far as it leaves half of the shortest one."""
    skips = [path.skip for path in paths]
    return min(max(skips), max(min(map(len, paths)) // 2, min(skips))) if paths else 0


def pool_records(
    paths: Sequence[Trajectory], outputs: Sequence[Any], skip: int | None
) -> tuple[Trajectory, Float64[np.ndarray, "T Dy"]]:
    """All records without their first `skip` rows as one trajectory, and the outputs measured at the same rows."""
    skip = find_common_skip([path for path in paths if isinstance(path, Trajectory)]) if skip is None else skip
    skip = check_integer("skip", skip, least=0)
    y = np.concatenate([_check_output(path, y, skip)[skip:] for path, y in zip(paths, outputs, strict=True)])
    stds = [path.std[skip:] for path in paths if path.std is not None]
    first, mean = paths[0], np.concatenate([path.mean[skip:] for path in paths])
    std = np.concatenate(stds) if len(stds) == len(paths) else None
    degrees = first.degrees_of_freedom
    return Trajectory(mean, std, first.method, skip, first.output_names, degrees_of_freedom=degrees), y


def _check_output(path: Trajectory, y: Any, skip: int) -> np.ndarray:
    if not isinstance(path, Trajectory):
        raise InputError(f"pass what simulate returned and the measured y, received a {type(path).__name__}")
    outputs = as_matrix("y", y, gaps=True, columns=path.output_names)
    if outputs.shape != path.mean.shape:
        raise InputError(
            f"y has shape {outputs.shape} but the simulated trajectory has {path.mean.shape}; "
            "pass the outputs measured at the same samples"
        )
    if not same_labels(path.index, row_index(y)):
        raise InputError(
            "y has other row labels than the inputs of the simulation; align them first, e.g. y.loc[u.index]"
        )
    if skip >= len(outputs):
        raise InputError(f"skip must leave rows to score: received skip={skip} for {len(outputs)} rows")
    return outputs
