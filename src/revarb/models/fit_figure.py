"""Figure of a fit: outputs, latent paths and the bound."""

from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from revarb.data.series import Series
from revarb.data.trajectory_figure import draw_measured
from revarb.errors import InputError
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.status import Step
from revarb.runtime.figure_style import BAND, GREY, MEASURED, MODEL, add_panels, finish_figure


@rc_context({"text.parse_math": False})  # a column may be named a$b$
def draw_fit(model: FittedRGP, records: Sequence[Series] | None) -> Figure:
    """Outputs as fitted, then the latent path of every hidden layer, then the bound.

    Records stand one after the other, with a thin line between them. Where an output is missing its band is drawn.
    """
    paths = model.latent_paths()
    outputs, layers = len(model.output_names), len(paths)
    figure = Figure(figsize=(10, 1.4 + 1.9 * (outputs + layers + 1)), layout="constrained")
    axes = add_panels(figure, outputs + layers + 1, share=False)
    # Latent states begin later than the record where the inputs reach back further than the states.
    begin = model.order.first_row - model.order.lags
    time = (begin + np.arange(sum(model.lengths))) * model.dt
    seams = np.cumsum(model.lengths)[:-1]
    broken = np.insert(time, seams, np.nan)  # lines end where a record ends
    _draw_outputs(axes[:outputs], model, _check_records(model, records), broken, seams)
    for number, (panel, (mean, std)) in enumerate(zip(axes[outputs:-1], paths, strict=True), start=1):
        _draw_latent(panel, np.insert(mean, seams, np.nan, axis=0), np.insert(std, seams, np.nan, axis=0), broken)
        panel.set_ylabel(f"layer {number}: state")
    for panel in axes[:-1]:
        for seam in time[seams]:
            panel.axvline(seam, color=GREY, lw=0.6)
    axes[-2].set_xlabel("time")
    _draw_bound(axes[-1], model.history)
    finish_figure(
        figure, f"Training: {model.status.value} after {len(model.history)} iterations, bound {model.bound:.1f}"
    )
    return figure


def _check_records(model: FittedRGP, records: Sequence[Series] | None) -> list[np.ndarray] | None:
    # The outputs of the training records at the times of their latent states.
    if records is None:
        return None
    if any(record.output_names != model.output_names for record in records):
        raise InputError(f"records must have the outputs {list(model.output_names)}; pass the training records")
    first = model.order.first_row - model.order.lags
    lengths = tuple(len(record) - first for record in records)
    if lengths != model.lengths:
        raise InputError(
            f"records have {[len(record) for record in records]} samples, but the model was fitted to "
            f"{[length + first for length in model.lengths]}; pass the training records"
        )
    return [record.y[first:] for record in records]


def _draw_outputs(
    panels, model: FittedRGP, outputs: list[np.ndarray] | None, time: np.ndarray, seams: np.ndarray
) -> None:
    def join(parts: Sequence[np.ndarray]) -> np.ndarray:
        # The first rows of a record, which the lags take, have no path.
        whole = [np.pad(part, ((length - len(part), 0), (0, 0)), constant_values=np.nan)
                 for part, length in zip(parts, model.lengths, strict=True)]  # fmt: skip
        return np.insert(np.concatenate(whole), seams, np.nan, axis=0)

    paths = model.smooth()
    fitted = join([path.mean for path in paths])
    measured = None if outputs is None else join(outputs)
    lower, upper = (join(ends) for ends in zip(*(path.interval(0.95) for path in paths), strict=True))
    for column, axes in enumerate(panels):
        if measured is not None:
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
