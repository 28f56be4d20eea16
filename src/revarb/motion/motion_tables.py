"""Table 2 as text."""

from collections.abc import Mapping, Sequence

from revarb.evaluation.comparison.lines import Line
from revarb.report.tables import Grid, format_percent, format_range

NOTES = (
    "Median (smallest – largest), or median, over seeds of the RMSE in z-scored units, from the inputs alone, cold "
    "start. The paper does not say which mean it reports. motions: mean over the test motions of each one's; pooled: "
    "over all rows and channels; channels: mean over the channels of each one's. walks, runs: mean over the four "
    "motions of each kind.",
    "57 channels: as in the paper. Four of them, the clavicles, are rounding noise of the files; 53: without them.",
    "REVARB H x D: H hidden layers of D latent states; + networks: with the recognition model.",
)


WITH_SPREAD, MEDIANS = ("motions", "pooled"), ("channels", "walks", "runs")


COLUMNS = (*WITH_SPREAD, *MEDIANS)


def motion_grids(lines: Sequence[Line], paper: Mapping[str, float]) -> list[Grid]:
    """One table for all channels, with the paper's numbers, and one for those that are more than rounding noise."""
    best = min((line for line in lines if line.worked), key=lambda line: line.spread["motions_57"].median, default=None)
    marked = next((number for number, line in enumerate(lines) if line is best), None)
    every = [
        [*_names(line), f"{paper[line.model]:.4f}" if line.model in paper else "–", *_errors(line, 57), *_rest(line)]
        for line in lines
    ]
    honest = [[*_names(line), *_errors(line, 53)] for line in lines]
    return [
        Grid("57 channels", ("model", "method", "paper", *COLUMNS, "in 95 %", "fit s"), every, marked),
        Grid("53 channels", ("model", "method", *COLUMNS), honest, marked),
    ]


def _names(line: Line) -> tuple[str, str]:
    return line.model, line.method if line.worked else "failed"


def _errors(line: Line, channels: int) -> list[str]:
    if not line.worked:
        return ["–"] * len(COLUMNS)
    spreads = [format_range(line.spread[f"{name}_{channels}"]) for name in WITH_SPREAD]
    return spreads + [f"{line.spread[f'{name}_{channels}'].median:.3f}" for name in MEDIANS]


def _rest(line: Line) -> list[str]:
    if not line.worked:
        return ["–", "–"]
    return [format_percent(line.spread["coverage95"].median), f"{line.spread['fit_seconds'].median:.1f}"]
