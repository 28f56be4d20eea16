"""Tables for the summary of a trained recurrent GP: layers, relevance of regressors, noises, calibration."""

from itertools import pairwise

import numpy as np

from revarb.models.calibration import Calibration
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.summary import SummaryTable
from revarb.simulation.chain import find_noise_variance

RELEVANT = 3.0  # a lag counts as relevant while its lengthscale is at most this many times the layer's shortest


def rgp_tables(model: FittedRGP) -> tuple[SummaryTable, ...]:
    """Everything but what all models share."""
    return (_fit_table(model), _relevance_table(model), _noise_table(model), _calibration_table(model.calibration))


def _fit_table(model: FittedRGP) -> SummaryTable:
    spec = model.spec
    rows = (
        ("latent states of the hidden layers", ", ".join(str(dim) for dim in spec.latent_dims)),
        ("inducing inputs per layer", str(len(model.trained.chain.last_layer.zeta))),
        ("training records", _describe_records(model)),
        ("iterations", str(len(model.history))),
        ("lower bound", f"{model.bound:.2f}"),
        ("recognition model", "none" if spec.recognition is None else f"tanh units {spec.recognition.hidden}"),
    )
    return SummaryTable("fit", ("", ""), rows)


def _describe_records(model: FittedRGP) -> str:
    records, blocks = len(model.final_states), len(model.lengths)
    rows = f"{records}, {sum(model.lengths) - blocks * model.spec.lags} rows"
    return rows if blocks == records else f"{rows} in {blocks} blocks"


def _relevance_table(model: FittedRGP) -> SummaryTable:
    # The shorter a lengthscale, the more the layer's function changes along that regressor (z-scored units).
    rows = []
    layers = (*model.trained.chain.hidden, model.trained.chain.last_layer)
    for number, layer in enumerate(layers, start=1):
        name = f"{number}" if number < len(layers) else f"{number} (output)"
        with np.errstate(divide="ignore"):
            lengthscales = 1.0 / np.sqrt(np.asarray(layer.w))
        for signal, ages, columns in _signals(model, number):
            rows.append((name, signal, *_describe_lengthscales(lengthscales[columns], ages, lengthscales.min())))
    heads = ("layer", "signal", "shortest", "at lag", "relevant lags")
    return SummaryTable("lengthscales (short: matters)", heads, rows)


def _describe_lengthscales(values: np.ndarray, ages: np.ndarray, shortest: float) -> tuple[str, str, str]:
    relevant = ages[values <= RELEVANT * shortest]
    best = int(np.argmin(values))
    return f"{values[best]:.3g}", str(ages[best]), _ranges(relevant.tolist()) or "none"


def _signals(model: FittedRGP, number: int) -> list[tuple[str, np.ndarray, np.ndarray]]:
    # Name, lags and columns of every signal among the regressors of a layer: its own states, then those below it.
    order, dims = model.order, model.spec.latent_dims
    own = _states(f"state of layer {number}", dims[number - 1], order.lags, 1) if number <= len(dims) else []
    if number == 1:
        below = [(name, order.input_delay, order.input_lags) for name in model.input_names]
    else:
        below = _states(f"state of layer {number - 1}", dims[number - 2], order.lags, 0)
    return [*_placed(own, 0), *_placed(below, sum(lags for _, _, lags in own))]


def _states(name: str, dim: int, lags: int, newest: int) -> list[tuple[str, int, int]]:
    return [(name if dim == 1 else f"{name}, {column}", newest, lags) for column in range(dim)]


def _placed(signals: list[tuple[str, int, int]], begin: int) -> list[tuple[str, np.ndarray, np.ndarray]]:
    # All entries of one sample stand together, the newest sample first.
    return [
        (name, newest + np.arange(lags), begin + column + len(signals) * np.arange(lags))
        for column, (name, newest, lags) in enumerate(signals)
    ]


def _ranges(lags: list[int]) -> str:
    # 1, 2, 3, 7 -> "1-3, 7"
    starts = [lag for lag, before in zip(lags, [None, *lags], strict=False) if before != lag - 1]
    ends = [lag for lag, after in pairwise([*lags, None]) if after != lag + 1]  # pyright: ignore[reportOptionalOperand]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _noise_table(model: FittedRGP) -> SummaryTable:
    fitted, used = model.trained.chain, model.chain
    rows = [
        (f"layer {number}, z-scored", _std(float(before.sigma2)), _std(float(after.sigma2)))
        for number, (before, after) in enumerate(zip(fitted.hidden, used.hidden, strict=True), start=1)
    ]
    for column, name in enumerate(model.output_names):
        unit = float(model.scaling.y_std[column])
        before, after = (_std(float(find_noise_variance(chain)), unit) for chain in (fitted, used))
        rows.append((name, before, after))
    return SummaryTable("noise, standard deviation", ("", "as fitted", "in simulations"), rows)


def _std(variance: float, unit: float = 1.0) -> str:
    return f"{unit * np.sqrt(variance):.3g}"


def _calibration_table(calibration: Calibration | None) -> SummaryTable:
    if calibration is None:
        return SummaryTable("calibration", ("", ""), (("held-out stretches", "none: bands are as fitted"),))
    steps = [*(f"up to {edge} steps" for edge in calibration.edges), "beyond, and cold runs"]
    rows = [
        ("held-out stretches", str(calibration.stretches)),
        ("median held-out error", f"{calibration.error:.3g} of the output's standard deviation"),
        *(
            (f"band width, {where}", f"x {factor:.3g}")
            for where, factor in zip(steps, calibration.factors, strict=True)
        ),
    ]
    return SummaryTable("calibration", ("", ""), rows)
