"""Figure of a fit: outputs, latent paths and the bound."""

from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from revarb.data.series import Series
from revarb.data.trajectory_figure import draw_measured
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.status import Step
from revarb.runtime.figure_style import BAND, MEASURED, MODEL, QUIET, encode_figure, finish_figure, rows_of_axes


@rc_context({"text.parse_math": False})  # a column may be called a$b$
def fit_figure(model: FittedRGP, records: Sequence[Series]) -> bytes:
    """What the model made of its training data: output, then the latent path of every hidden layer, then the bound.

    Records stand one after the other, a thin line between them. Where the output is missing, its band is drawn.
    """
    paths = model.latent_paths()
    outputs, layers = len(model.output_names), len(paths)
    figure = Figure(figsize=(10, 1.4 + 1.9 * (outputs + layers + 1)), layout="constrained")
    axes = rows_of_axes(figure, outputs + layers + 1, share=False)
    # The latent states begin later than the record where the inputs reach back further than the states.
    begin = len(records[0]) - model.lengths[0]
    time = (begin + np.arange(sum(model.lengths))) * model.dt
    seams = np.cumsum(model.lengths)[:-1]
    broken = np.insert(time, seams, np.nan)  # lines end where a record does
    _draw_outputs(axes[:outputs], model, records, broken, seams)
    for number, (panel, (mean, std)) in enumerate(zip(axes[outputs:-1], paths, strict=True), start=1):
        _draw_latent(panel, np.insert(mean, seams, np.nan, axis=0), np.insert(std, seams, np.nan, axis=0), broken)
        panel.set_ylabel(f"layer {number}: state")
    for panel in axes[:-1]:
        for seam in time[seams]:
            panel.axvline(seam, color=QUIET, lw=0.6)
    axes[-2].set_xlabel("time")
    _draw_bound(axes[-1], model.history)
    finish_figure(
        figure, f"Training: {model.status.value} after {len(model.history)} iterations, bound {model.bound:.1f}"
    )
    return encode_figure(figure, "png")


def _draw_outputs(panels, model: FittedRGP, records: Sequence[Series], time: np.ndarray, seams: np.ndarray) -> None:
    def in_a_row(parts: Sequence[np.ndarray]) -> np.ndarray:
        # The first rows, which the lags take, have no path.
        whole = [np.pad(part, ((length - len(part), 0), (0, 0)), constant_values=np.nan)
                 for part, length in zip(parts, model.lengths, strict=True)]  # fmt: skip
        return np.insert(np.concatenate(whole), seams, np.nan, axis=0)

    measured = in_a_row([record.y[-length:] for record, length in zip(records, model.lengths, strict=True)])
    paths = model.smooth()
    fitted = in_a_row([path.mean for path in paths])
    lower, upper = (in_a_row(ends) for ends in zip(*(path.interval(0.95) for path in paths), strict=True))
    for column, axes in enumerate(panels):
        _draw_gaps(axes, time, measured[:, column], lower[:, column], upper[:, column])
        draw_measured(axes, time, measured[:, column])
        axes.plot(time, fitted[:, column], color=MODEL, lw=1.2, label="fitted")
        axes.set_ylabel(model.output_names[column])


def _draw_gaps(axes, time: np.ndarray, measured: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
    gap = np.isnan(measured) & np.isfinite(lower)
    if gap.any():
        reach = gap | np.append(gap[1:], False) | np.append(False, gap[:-1])  # from the last value to the next
        axes.fill_between(time, lower, upper, where=reach, color=BAND, lw=0, label="95 % band, not measured")


def _draw_latent(axes, mean: np.ndarray, std: np.ndarray, time: np.ndarray) -> None:
    for column in range(mean.shape[1]):
        line = axes.plot(time, mean[:, column], lw=1.0)[0]
        low, high = mean[:, column] - 1.96 * std[:, column], mean[:, column] + 1.96 * std[:, column]
        axes.fill_between(time, low, high, alpha=0.25, lw=0, color=line.get_color())


def _draw_bound(axes, history: Sequence[Step]) -> None:
    axes.plot(np.arange(1, len(history) + 1), [step.bound for step in history], color=MEASURED, lw=1.2)
    axes.set_xlabel("iteration")
    axes.set_ylabel("bound")
