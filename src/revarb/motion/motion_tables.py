"""Tables of errors in simulated motions, as text."""

from collections.abc import Mapping, Sequence

from revarb.evaluation.comparison.lines import Line
from revarb.report.tables import Grid, format_percent, format_range

NOTES = (
    "Median (smallest – largest), or median, over seeds of the RMSE in z-scored units, from the inputs alone, cold "
    "start. The paper does not say which mean it reports. motions: mean of the RMSE of each test motion; pooled: RMSE "
    "over all rows and channels; channels: mean of the RMSE of each channel. walks, runs: mean over the four motions "
    "of each kind.",
    "57 channels: as in the paper. Four of them, the clavicles, are rounding noise of the files; 53: without them.",
    "REVARB H x D: H hidden layers of D latent states; + networks: with the recognition model.",
)
WITH_RANGE, MEDIANS = ("motions", "pooled"), ("channels", "walks", "runs")
COLUMNS = (*WITH_RANGE, *MEDIANS)


def tabulate_motions(lines: Sequence[Line], paper: Mapping[str, float]) -> list[Grid]:
    """Tabulate errors over all 57 channels, with the paper's numbers, and over the 53 that are not rounding noise."""
    best = min((line for line in lines if line.worked), key=lambda line: line.ranges["motions_57"].median, default=None)
    marked = next((number for number, line in enumerate(lines) if line is best), None)
    all_channels = [
        [*_names(line), f"{paper[line.model]:.4f}" if line.model in paper else "–", *_errors(line, 57), *_rest(line)]
        for line in lines
    ]
    informative = [[*_names(line), *_errors(line, 53)] for line in lines]
    return [
        Grid("57 channels", ("model", "method", "paper", *COLUMNS, "in 95 %", "fit s"), all_channels, marked),
        Grid("53 channels", ("model", "method", *COLUMNS), informative, marked),
    ]


def _names(line: Line) -> tuple[str, str]:
    return line.model, line.method if line.worked else "failed"


def _errors(line: Line, channels: int) -> list[str]:
    if not line.worked:
        return ["–"] * len(COLUMNS)
    ranges = [format_range(line.ranges[f"{name}_{channels}"]) for name in WITH_RANGE]
    return ranges + [f"{line.ranges[f'{name}_{channels}'].median:.3f}" for name in MEDIANS]


def _rest(line: Line) -> list[str]:
    if not line.worked:
        return ["–", "–"]
    return [format_percent(line.ranges["coverage95"].median), f"{line.ranges['fit_seconds'].median:.1f}"]
