"""Errors one step ahead along a measured record, and whether anything is left in them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int

from revarb.data.scaling import safe_std
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.errors import InputError, check_integer
from revarb.models.residual_findings import (
    LEAST_PAIRS,
    LEVEL,
    ONE_LAG,
    Peak,
    correlate,
    find_peak,
    inflate_variance,
    join_findings,
    joint_factor,
    list_findings,
)
from revarb.models.summary import Summary, SummaryTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

USUAL_LAGS = 25
BEYOND_REACH = 10  # lags older than the oldest input of a model that are tested, too


@dataclass(frozen=True, eq=False, repr=False)
class Residuals:
    """Errors one step ahead along a measured record, and what is left in them, as `model.residuals` returns them.

    The residuals of a model that uses all information in the inputs and past outputs are white (not correlated with
    each other) and independent of the inputs. A correlation with an input at a lag k ≥ 0, i.e. with the input k samples
    earlier, is something that the model does not know about this input. One at a negative lag is feedback: the input
    was set by someone or something that saw the outputs.

    How it is judged: a band holds one correlation with probability 95 %, so of 100 lags some 5 are outside by chance.
    `white` and `independent` therefore use the joint limit, which is wider: all correlations of all outputs and lags
    together are within it with a probability of at least 95 % if nothing is left (Šidák's rule). What is beyond it is
    reported at the lag that exceeds it most.

    Attributes
    ----------
    errors : array [T, outputs]
        Measured minus predicted, raw units. NaN in the first `skip` rows, where the output was not measured, and where
        it was not measured one sample before, so that the prediction reaches over a gap.
    autocorrelation, autocorrelation_std : arrays [K + 1, outputs]
        Row k is the correlation at lag k over the pairs that are both known, and its standard deviation for white
        residuals.
    cross_correlation, cross_correlation_std : arrays [2 K + 1, outputs, inputs]
        Correlation of the residuals with the input `cross_lags` samples earlier, and its standard deviation if they are
        independent. NaN for an input that does not vary.
    explained : array [outputs]
        Share of the output's variance that is explained one step ahead.
    order : Order
        How far back the model looks; the advice depends on it.
    chosen : bool
        Whether `revarb.fit` chose the model; the advice depends on it.
    skip : int
        Number of first rows that are left out.
    input_names, output_names : tuple of str
        Names of the columns.

    Examples
    --------
    The output follows the input two samples earlier, which a model with one input lag does not see:

    >>> import numpy as np, revarb
    >>> rng = np.random.default_rng(0)
    >>> u, noise = rng.normal(size=400), 0.1 * rng.normal(size=400)
    >>> record = revarb.Series(u, np.convolve(u, [0.0, 1.0, 0.5])[:400] + noise)
    >>> residuals = revarb.ARX(lags=1, input_lags=1).fit(record).residuals(record)
    >>> residuals.independent
    (False,)
    >>> revarb.ARX(lags=1, input_lags=2).fit(record).residuals(record).sentence
    'nothing is left in the residuals'
    """

    errors: Float64[np.ndarray, "T Dy"]
    autocorrelation: Float64[np.ndarray, "K Dy"]
    autocorrelation_std: Float64[np.ndarray, "K Dy"]
    cross_correlation: Float64[np.ndarray, "J Dy Du"]
    cross_correlation_std: Float64[np.ndarray, "J Dy Du"]
    explained: Float64[np.ndarray, " Dy"]
    order: Order
    skip: int
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    chosen: bool = False

    def __repr__(self) -> str:
        return f"Residuals(outputs {self.output_names}, white={self.white}, independent={self.independent})"

    @property
    def max_lag(self) -> int:
        """The largest lag K."""
        return len(self.autocorrelation) - 1

    @property
    def cross_lags(self) -> Int[np.ndarray, " J"]:
        """Lags −K … K of the rows of `cross_correlation`."""
        return np.arange(-self.max_lag, self.max_lag + 1)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of errors of every output."""
        return tuple(int(count) for count in np.isfinite(self.errors).sum(axis=0))

    @property
    def autocorrelation_band(self) -> Float64[np.ndarray, "K Dy"]:
        """Half width of the band that holds the autocorrelation at one lag with probability 95 %; NaN at lag 0."""
        return ONE_LAG * self.autocorrelation_std

    @property
    def cross_correlation_band(self) -> Float64[np.ndarray, "J Dy Du"]:
        """Half width of the band that holds the cross-correlation at one lag with probability 95 %."""
        return ONE_LAG * self.cross_correlation_std

    @property
    def joint_factor(self) -> float:
        """The joint limit, in standard deviations of a correlation."""
        return joint_limit(self.max_lag, len(self.output_names), len(self.input_names))

    @cached_property
    def autocorrelation_peaks(self) -> tuple[Peak | None, ...]:
        """The autocorrelation of every output that stands out most; None where there are too few values."""
        return _find_own_peaks(self.autocorrelation, self.joint_factor * self.autocorrelation_std)

    @cached_property
    def cross_correlation_peaks(self) -> tuple[dict[str, Peak], ...]:
        """For every output the cross-correlation with each input that stands out most, at any lag."""
        values, limits = self.cross_correlation, self.joint_factor * self.cross_correlation_std
        found: list[dict[str, Peak]] = [{} for _ in self.output_names]
        for (row, peaks), (column, name) in product(enumerate(found), enumerate(self.input_names)):
            if peak := find_peak(self.cross_lags, values[:, row, column], limits[:, row, column]):
                peaks[name] = peak
        return tuple(found)

    @property
    def white(self) -> tuple[bool | None, ...]:
        """Whether the residuals of every output are not correlated with each other; None where values are too few."""
        return self._where_enough(peak is None or not peak.significant for peak in self.autocorrelation_peaks)

    @property
    def independent(self) -> tuple[bool | None, ...]:
        """Whether the residuals of every output follow no input; None where there are too few values.

        An input whose largest correlation is at a negative lag is feedback, and does not count.
        """
        return self._where_enough(
            not any(peak.significant and peak.lag >= 0 for peak in peaks.values())
            for peaks in self.cross_correlation_peaks
        )

    @property
    def offset_ratios(self) -> tuple[float, ...]:
        """Mean of the residuals of every output over its joint limit; beyond −1 … 1 it is not due to chance."""
        return tuple(
            0.0 if share == 1.0 else _find_offset_ratio(column, self.joint_factor)  # then the errors are rounding
            for column, share in zip(self.errors.T, self.explained, strict=True)
        )

    def _where_enough(self, judged: Iterable[bool]) -> tuple[bool | None, ...]:
        return tuple(good if count >= LEAST_PAIRS else None for good, count in zip(judged, self.counts, strict=True))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found and what to do: one for every output with a finding, one for the others together."""
        peaks = self.autocorrelation_peaks, self.cross_correlation_peaks
        evidence = zip(self.output_names, self.counts, *peaks, self.offset_ratios, strict=True)
        return join_findings({
            name: list_findings(number, own, crossed, offset, self.order, self.chosen)
            for name, number, own, crossed, offset in evidence
        })  # fmt: skip

    @property
    def sentence(self) -> str:
        """The sentences as one."""
        return "; ".join(self.sentences)

    def summary(self) -> Summary:
        """A row per output: values used, share of variance explained, and the correlations that stand out most.

        Returns
        -------
        Summary
            Prints itself as text; `rich.print` draws it with colours, a notebook as HTML.
        """
        heads = ("output", "values", "explained", "largest autocorrelation", "largest cross-correlation")
        peaks = self.autocorrelation_peaks, self.cross_correlation_peaks
        rows = [
            (name, str(count), _describe_share(share), _describe_peak(own), _describe_largest(crossed))
            for name, count, share, own, crossed in zip(
                self.output_names, self.counts, self.explained, *peaks, strict=True
            )
        ]
        table = SummaryTable("residuals one step ahead (*: beyond the joint limit)", heads, rows)
        return Summary("\n".join(self.sentences), (table,))

    def plot(
        self, title: str = "", outputs: Sequence[str] | None = None, fig: "Figure | SubFigure | None" = None
    ) -> "Figure":
        """Draw a row per output: autocorrelation, cross-correlation with every input, histogram.

        Parameters
        ----------
        title : str
            Title of the figure; default: the sentences.
        outputs : list of str, optional
            Which outputs; default: all.
        fig : matplotlib Figure or SubFigure, optional
            Where to draw; its size and layout stay. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("residuals.png")`; a notebook displays it.

        Raises
        ------
        InputError
            If there is no such output.
        """
        from revarb.models.analysis_figures import draw_residuals  # matplotlib is slow to import

        names = self.output_names if outputs is None else tuple(outputs)
        unknown = [name for name in names if name not in self.output_names]
        if unknown or not names:
            raise InputError(f"outputs must be of {list(self.output_names)}, received {list(names)}")
        return draw_residuals(self, title, [self.output_names.index(name) for name in names], fig)


def analyse_residuals(
    record: Series, path: Trajectory, order: Order, max_lag: int | None = None, chosen: bool = False
) -> Residuals:
    """The residuals of `path`, predictions one step ahead along a record by a model of this order.

    `chosen` says whether `revarb.fit` chose that model.
    `max_lag` is 25 by default, or more for a model that looks further back, and at most a quarter of the rows.
    """
    errors, rows = _find_errors(record.y, path), len(record) - path.skip
    if max_lag is None:
        max_lag = min(max(USUAL_LAGS, order.reach + BEYOND_REACH), rows // 4)
    else:
        max_lag = check_integer("max_lag (at most half of the rows that count)", max_lag, least=1, most=rows // 2)
    explained = np.array([_share_explained(*columns) for columns in zip(errors.T, record.y.T, strict=True)])
    tested = np.where(explained == 1.0, np.nan, errors)  # errors that are rounding need no explanation
    several = [correlate(column, column, np.arange(max_lag + 1)) for column in tested.T]
    own, own_std = (np.stack(parts, axis=1) for parts in zip(*several, strict=True))
    own_std[0] = np.nan  # the correlation of a value with itself is no evidence
    peaks = _find_own_peaks(own, joint_limit(max_lag, record.y.shape[1], record.u.shape[1]) * own_std)
    white = [peak is None or not peak.significant for peak in peaks]
    crossed, crossed_std = _cross_correlate(tested, record.u, white, max_lag)
    return Residuals(
        errors, own, own_std, crossed, crossed_std, explained, order, path.skip, record.input_names, path.output_names,
        chosen,
    )  # fmt: skip


def joint_limit(max_lag: int, outputs: int, inputs: int) -> float:
    """Standard deviations that hold all lags of both correlations, and the offsets, with probability `LEVEL`."""
    return joint_factor(LEVEL, outputs * (max_lag + inputs * (2 * max_lag + 1) + 1))


def _find_errors(y: Float64[np.ndarray, "T Dy"], path: Trajectory) -> Float64[np.ndarray, "T Dy"]:
    before = np.concatenate([np.full((1, y.shape[1]), np.nan), y[:-1]])
    one_step = np.isfinite(before) & (np.arange(len(y)) >= path.skip)[:, None]
    with np.errstate(over="ignore"):
        errors = y - path.mean
    errors = np.where(one_step & np.isfinite(errors), errors, np.nan)
    most = int(np.isfinite(errors).sum(axis=0).max())
    if most < LEAST_PAIRS:
        raise InputError(
            f"the record has {most} output value(s) to analyse, not counting its first {path.skip} rows and values "
            f"right after a gap; residual analysis takes at least {LEAST_PAIRS}: pass a longer record"
        )
    return errors


def _share_explained(errors: Float64[np.ndarray, " T"], y: Float64[np.ndarray, " T"]) -> float:
    # Of one output; NaN where it has no errors or is constant.
    used = np.isfinite(errors)
    spread = float(safe_std(y[used, None])[0]) if used.any() else 0.0
    with np.errstate(over="ignore"):
        return 1.0 - float(np.mean((errors[used] / spread) ** 2)) if spread > 0.0 else float("nan")


def _find_own_peaks(
    values: Float64[np.ndarray, "K Dy"], limits: Float64[np.ndarray, "K Dy"]
) -> tuple[Peak | None, ...]:
    lags = np.arange(len(values))
    return tuple(find_peak(lags, *columns) for columns in zip(values.T, limits.T, strict=True))


def _cross_correlate(
    errors: Float64[np.ndarray, "T Dy"], u: Float64[np.ndarray, "T Du"], white: Sequence[bool], max_lag: int
) -> tuple[np.ndarray, np.ndarray]:
    # As in MATLAB's resid the band follows from the autocorrelations of both signals. Prewhitening would need runs of
    # consecutive values, which a record with gaps may not have. White residuals need neither: then the variance is one
    # over the number of pairs, whatever the input is, and an estimate would only add its own noise.
    lags = np.arange(-max_lag, max_lag + 1)
    values, std = (np.empty((len(lags), errors.shape[1], u.shape[1])) for _ in range(2))
    for row, column in np.ndindex(values.shape[1:]):
        e, cause = errors[:, row], u[:, column]
        values[:, row, column], std[:, row, column] = correlate(e, cause, lags)
        if not white[row]:
            std[:, row, column] *= np.sqrt(inflate_variance(e, cause))
    return values, std


def _find_offset_ratio(errors: Float64[np.ndarray, " T"], factor: float) -> float:
    measured = errors[np.isfinite(errors)]
    spread = float(safe_std(measured[:, None])[0]) if len(measured) >= LEAST_PAIRS else 0.0
    return float(np.sqrt(len(measured)) * (measured / spread).mean() / factor) if spread > 0.0 else 0.0


def _describe_share(share: float) -> str:
    return f"{100.0 * share:.2f} %" if np.isfinite(share) else "–"


def _describe_peak(peak: Peak | None) -> str:
    if peak is None:
        return "–"
    return f"{peak.value:.2f} at lag {peak.lag}{' *' if peak.significant else ''}"


def _describe_largest(peaks: Mapping[str, Peak]) -> str:
    if not peaks:
        return "–"
    name, peak = max(peaks.items(), key=lambda item: item[1].ratio)
    return f"{name}: {_describe_peak(peak)}"
