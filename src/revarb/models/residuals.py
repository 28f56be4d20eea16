"""Errors one step ahead along a measured record, and whether anything is left in them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float64, Int

from revarb.data.safe_statistics import safe_std
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.models.correlation import LEAST_PAIRS, joint_factor
from revarb.models.summary import Summary, SummaryTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.95  # of the bands, and of the joint limit
ONE_LAG = joint_factor(LEVEL, 1)


class Peak(NamedTuple):
    """The correlation that stands out most: its lag, its value, and that value over the joint limit."""

    lag: int
    value: float
    ratio: float

    @property
    def significant(self) -> bool:
        """Whether it is beyond the joint limit."""
        return self.ratio > 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Residuals:
    """Errors one step ahead along a measured record, and what is left in them, as `model.residuals` returns them.

    The residuals of a model that explains all that the inputs and past outputs tell are white (not correlated with each
    other) and independent of the inputs. A correlation with an input at a lag k ≥ 0, i.e. with the input k samples
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
        lags = np.arange(1, self.max_lag + 1)
        return tuple(
            find_peak(lags, values[1:], self.joint_factor * std[1:])
            for values, std in zip(self.autocorrelation.T, self.autocorrelation_std.T, strict=True)
        )

    @cached_property
    def cross_correlation_peaks(self) -> tuple[dict[str, Peak], ...]:
        """For every output the cross-correlation with each input that stands out most, at any lag."""
        limits = self.joint_factor * self.cross_correlation_std
        peaks = [
            {
                name: find_peak(self.cross_lags, self.cross_correlation[:, row, column], limits[:, row, column])
                for column, name in enumerate(self.input_names)
            }
            for row in range(len(self.output_names))
        ]
        return tuple({name: peak for name, peak in several.items() if peak is not None} for several in peaks)

    @property
    def white(self) -> tuple[bool | None, ...]:
        """Whether the residuals of every output are not correlated with each other; None where values are too few."""
        judged = (peak is None or not peak.significant for peak in self.autocorrelation_peaks)
        return self._where_enough(judged)

    @property
    def independent(self) -> tuple[bool | None, ...]:
        """Whether the residuals of every output follow no input; None where there are too few values.

        An input whose largest correlation is at a negative lag is feedback, and does not count.
        """
        judged = (
            not any(peak.significant and peak.lag >= 0 for peak in peaks.values())
            for peaks in self.cross_correlation_peaks
        )
        return self._where_enough(judged)

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
        from revarb.models.residual_sentence import state_residuals  # which imports this module

        return state_residuals(self)

    @property
    def sentence(self) -> str:
        """What was found and what to do, in plain words."""
        return "; ".join(self.sentences)

    def summary(self) -> Summary:
        """A row per output: values used, share of variance explained, and the correlations that stand out most.

        Returns
        -------
        Summary
            Prints itself as text; `rich.print` draws it with colours, a notebook as HTML.
        """
        heads = ("output", "values", "explained", "largest autocorrelation", "largest cross-correlation")
        rows = [
            (name, str(count), _describe_share(share), _describe_peak(own), _describe_largest(crossed))
            for name, count, share, own, crossed in zip(
                self.output_names, self.counts, self.explained, self.autocorrelation_peaks,
                self.cross_correlation_peaks, strict=True,
            )
        ]  # fmt: skip
        return Summary(
            "\n".join(self.sentences),
            (SummaryTable("residuals one step ahead (*: beyond the joint limit)", heads, rows),),
        )

    def plot(self, title: str = "", outputs: Sequence[str] | None = None) -> "Figure":
        """Draw a row per output: autocorrelation, cross-correlation with every input, histogram.

        Parameters
        ----------
        title : str
            Title of the figure; default: the sentences.
        outputs : list of str, optional
            Which outputs; default: all.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("residuals.png")`; a notebook displays it.

        Raises
        ------
        InputError
            If there is no such output.
        """
        from revarb.models.residual_figure import draw_residuals  # matplotlib is slow to import

        names = self.output_names if outputs is None else tuple(outputs)
        unknown = [name for name in names if name not in self.output_names]
        if unknown or not names:
            raise InputError(f"outputs must be of {list(self.output_names)}, received {list(names)}")
        return draw_residuals(self, title, [self.output_names.index(name) for name in names])


def joint_limit(max_lag: int, outputs: int, inputs: int) -> float:
    """Standard deviations that hold all lags of both correlations, and the offsets, with probability `LEVEL`."""
    return joint_factor(LEVEL, outputs * (max_lag + inputs * (2 * max_lag + 1) + 1))


def find_peak(
    lags: Int[np.ndarray, " K"], values: Float64[np.ndarray, " K"], limits: Float64[np.ndarray, " K"]
) -> Peak | None:
    """The correlation that is largest in units of its joint limit; None where there is none."""
    ratios = np.abs(values) / limits
    if not np.isfinite(ratios).any():
        return None
    place = int(np.nanargmax(ratios))
    return Peak(int(lags[place]), float(values[place]), float(ratios[place]))


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
