"""Figures of a fit: outputs, latent paths and the bound of an RGP, the free run of other models."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from revarb.data.blocks import cut_blocks
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.trajectory_figure import draw_measured
from revarb.errors import InputError
from revarb.models.base import Fitted
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.status import Step
from revarb.runtime.figure_style import BAND, GREY, MEASURED, MODEL, OUTSIDE, add_panels, finish_figure, name_time
from revarb.runtime.thinning import thin_band, thin_line


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
    line = _TimeLine(model.lengths, model.order.first_row - model.order.lags, model.dt)
    measured = _check_records(model, records)
    _draw_outputs(axes[:outputs], line, model.smooth(), measured, "fitted")
    if measured is not None and model.trained.parameters.noise is not None:
        _draw_outliers(axes[:outputs], line, model, measured)
    for number, (panel, (mean, std)) in enumerate(zip(axes[outputs:-1], paths, strict=True), start=1):
        _draw_latent(panel, line.split(mean), line.split(std), line.split(line.time))
        panel.set_ylabel(f"layer {number}: state")
    _draw_seams(axes[:-1], line)
    axes[-2].set_xlabel(name_time(model.dt))
    _draw_bound(axes[-1], model.history)
    finish_figure(
        figure, f"Training: {model.status.words} after {len(model.history)} iterations, bound {model.bound:.1f}"
    )
    return figure


@rc_context({"text.parse_math": False})
def draw_free_runs(model: Fitted, records: Sequence[Series]) -> Figure:
    """The measured outputs of the training records and the model's free run over them, one panel per output."""
    _check_outputs(model, records)
    paths = [model.simulate(record.u) if model.input_names else model.simulate(steps=len(record)) for record in records]
    figure = Figure(figsize=(10, 1.4 + 1.9 * len(model.output_names)), layout="constrained")
    axes = add_panels(figure, len(model.output_names), time=name_time(model.dt))
    line = _TimeLine([len(record) for record in records], 0, model.dt)
    _draw_outputs(axes, line, paths, [record.y for record in records], "free run")
    _draw_seams(axes, line)
    order = model.order
    kind = "linear model" if isinstance(model, FittedARX) else "free run of a model"
    finish_figure(figure, f"Training records, {kind} with {order.lags} lags and {order.input_lags} input lags")
    return figure


class _TimeLine:
    """Records one after the other on one axis of time; lines end where a record ends."""

    def __init__(self, lengths: Sequence[int], begin: int, dt: float):
        self.lengths = lengths
        self.time = (begin + np.arange(sum(lengths))) * dt
        self.seams = np.cumsum(lengths)[:-1]

    def split(self, rows: np.ndarray) -> np.ndarray:
        """Rows of all records, with NaN between two records."""
        return np.insert(rows, self.seams, np.nan, axis=0)

    def join(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """The parts of all records as `split` rows; a part that begins later than its record has NaN before it."""
        whole = [
            np.pad(part, ((length - len(part), 0), (0, 0)), constant_values=np.nan)
            for part, length in zip(parts, self.lengths, strict=True)
        ]
        return self.split(np.concatenate(whole))


def _draw_seams(panels: Iterable[Axes], line: _TimeLine) -> None:
    for panel in panels:
        for seam in line.time[line.seams]:
            panel.axvline(seam, color=GREY, lw=0.6)


def _check_outputs(model: Fitted, records: Sequence[Series]) -> None:
    if any(record.output_names != model.output_names for record in records):
        raise InputError(f"records must have the outputs {list(model.output_names)}; pass the training records")


def _check_records(model: FittedRGP, records: Sequence[Series] | None) -> list[np.ndarray] | None:
    # The outputs of the training records, or of their blocks, at the times of the latent states.
    if records is None:
        return None
    _check_outputs(model, records)
    first = model.order.first_row - model.order.lags
    blocks = cut_blocks(records, model.order, model.spec.recipe.max_rows).records
    # Whole records too: files written before version 0.2 do not know blocks.
    for parts in (records, blocks):
        if tuple(len(part) - first for part in parts) == model.lengths:
            return [part.y[first:] for part in parts]
    raise InputError(
        f"records have {[len(record) for record in records]} samples, but the model was fitted to "
        f"{[length + first for length in model.lengths]}; pass the training records"
    )


def _draw_outputs(
    panels: Iterable[Axes],
    line: _TimeLine,
    paths: Sequence[Trajectory],
    outputs: Sequence[np.ndarray] | None,
    label: str,
) -> None:
    time, fitted = line.split(line.time), line.join([path.mean for path in paths])
    measured = None if outputs is None else line.join(outputs)
    lower, upper = (line.join(ends) for ends in zip(*(path.interval(0.95) for path in paths), strict=True))
    for column, axes in enumerate(panels):
        if measured is not None:
            _draw_gaps(axes, time, measured[:, column], lower[:, column], upper[:, column])
            draw_measured(axes, time, measured[:, column])
        axes.plot(*thin_line(time, fitted[:, column]), color=MODEL, lw=1.8, label=label)
        axes.set_ylabel(paths[0].output_names[column])


def _draw_outliers(panels: Iterable[Axes], line: _TimeLine, model: FittedRGP, outputs: Sequence[np.ndarray]) -> None:
    first, begins = model.order.first_row - model.order.lags, np.cumsum([0, *line.lengths])
    for column, (axes, name) in enumerate(zip(panels, model.output_names, strict=True)):
        found = [each for each in model.outliers() if each.output == name]
        if found:
            times = [line.time[begins[each.record] + each.row - first] for each in found]
            values = [outputs[each.record][each.row - first, column] for each in found]
            axes.plot(times, values, color=OUTSIDE, marker="x", ms=5, lw=0, label="outlier", zorder=4)


def _draw_gaps(axes, time: np.ndarray, measured: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
    gap = np.isnan(measured) & np.isfinite(lower)
    if gap.any():
        reach = gap | np.append(gap[1:], False) | np.append(False, gap[:-1])  # from the last value to the next
        axes.fill_between(time, lower, upper, where=reach, color=BAND, lw=0, label="95 % band, not measured")


def _draw_latent(axes, mean: np.ndarray, std: np.ndarray, time: np.ndarray) -> None:
    for column in range(mean.shape[1]):
        line = axes.plot(*thin_line(time, mean[:, column]), lw=1.0)[0]
        low, high = mean[:, column] - 1.96 * std[:, column], mean[:, column] + 1.96 * std[:, column]
        axes.fill_between(*thin_band(time, low, high), alpha=0.25, lw=0, color=line.get_color())


def _draw_bound(axes, history: Sequence[Step]) -> None:
    bounds = np.array([step.bound for step in history])
    axes.plot(np.arange(1, len(bounds) + 1), bounds, color=MEASURED, lw=1.2)
    low, high = bounds[len(bounds) // 5 :].min(initial=np.inf), bounds.max(initial=-np.inf)
    if bounds.min(initial=np.inf) < low < high:  # zoomed into where it still moves; the first fifth rises out of sight
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    axes.set_xlabel("iteration")
    axes.set_ylabel("bound")
